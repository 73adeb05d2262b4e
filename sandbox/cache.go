package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// sumSuffix names the file beside a cache entry that holds its sha256. wazero
// checks only the code of an entry, not the tables around it; an entry whose
// sum is missing or wrong is never loaded.
const sumSuffix = ".sha256"

// moduleName is the file in a cache directory that holds the rewritten module.
const moduleName = "qjs.wasm"

var entryName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Precompile fills dir with the compiled module, so that New finds it there. It
// is for building an image: run it with the binary that will be shipped, on the
// architecture that it is for. Everything is made readable for every user,
// because the image runs as another one.
func Precompile(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("sandbox: precompile: %w", err)
	}
	e, err := New(ctx, Options{CacheDir: dir})
	if err != nil {
		return err
	}
	if err := e.Close(ctx); err != nil {
		return err
	}
	if err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		if info.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return os.Chmod(path, 0o644)
	}); err != nil {
		return fmt.Errorf("sandbox: precompile: %w", err)
	}
	return VerifyCache(ctx, dir)
}

// VerifyCache fails if New would not find the compiled module in dir, or would
// not trust it. It changes nothing there.
func VerifyCache(ctx context.Context, dir string) error {
	if _, ok := readModule(dir); !ok {
		return fmt.Errorf("sandbox: cache: %s has no sound %s", dir, moduleName)
	}
	entries, err := entriesOf(dir)
	if err != nil {
		return fmt.Errorf("sandbox: cache: %w", err)
	}
	if len(entries) == 0 {
		return fmt.Errorf("sandbox: cache: %s is empty", dir)
	}
	for _, path := range entries {
		if err := checkEntry(path); err != nil {
			return fmt.Errorf("sandbox: cache: %w", err)
		}
	}
	// A lookup that misses writes, so look in a copy and see whether it grows.
	tmp, err := os.MkdirTemp("", "codeact-cache-")
	if err != nil {
		return fmt.Errorf("sandbox: cache: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := os.CopyFS(tmp, os.DirFS(dir)); err != nil {
		return fmt.Errorf("sandbox: cache: %w", err)
	}
	e, err := New(ctx, Options{CacheDir: tmp})
	if err != nil {
		return err
	}
	if err := e.Close(ctx); err != nil {
		return err
	}
	after, err := entriesOf(tmp)
	if err != nil {
		return fmt.Errorf("sandbox: cache: %w", err)
	}
	if len(after) != len(entries) {
		return fmt.Errorf("sandbox: cache: %s has no entry for this build and processor", dir)
	}
	return nil
}

// moduleFrom returns the rewritten module: the copy in dir, if there is a sound
// one, or a new one, of which it leaves a copy if it can.
func moduleFrom(dir string) ([]byte, error) {
	if m, ok := readModule(dir); ok {
		return m, nil
	}
	m, err := rewritten()
	if err == nil && dir != "" && os.MkdirAll(dir, 0o755) == nil {
		replaceFile(filepath.Join(dir, moduleName), m)
	}
	return m, err
}

func readModule(dir string) ([]byte, bool) {
	if dir == "" {
		return nil, false
	}
	m, err := os.ReadFile(filepath.Join(dir, moduleName))
	return m, err == nil && sha256Of(m) == rewrittenSHA256
}

// replaceFile writes a file at once or not at all. A failure leaves the work to
// the next process.
func replaceFile(path string, b []byte) {
	tmp := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	if os.WriteFile(tmp, b, 0o644) != nil || os.Rename(tmp, path) != nil {
		_ = os.Remove(tmp)
	}
}

// compile makes the runtime and the compiled module, by way of the cache if
// that can be used. No state of the cache makes it fail.
func (e *Engine) compile(ctx context.Context, wasm []byte, dir string) error {
	sound, ok := soundCache(dir)
	if !ok {
		return e.compileWith(ctx, wasm, nil)
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return e.compileWith(ctx, wasm, nil)
	}
	if err := e.compileWith(ctx, wasm, cache); err != nil {
		_ = e.release(ctx)
		e.cache = nil
		return e.compileWith(ctx, wasm, nil)
	}
	sealEntries(dir, sound)
	return nil
}

func (e *Engine) compileWith(ctx context.Context, wasm []byte, cache wazero.CompilationCache) error {
	config := wazero.NewRuntimeConfigCompiler()
	if cache != nil {
		config = config.WithCompilationCache(cache)
	}
	ctx = experimental.WithCompilationWorkers(ctx, min(4, runtime.GOMAXPROCS(0)))
	e.cache = cache
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := addHost(ctx, e.runtime); err != nil {
		return err
	}
	var err error
	if e.module, err = e.runtime.CompileModule(ctx, wasm); err != nil && cache != nil {
		// A read-only directory without the entry: the module is compiled but
		// was not written. The runtime has it in memory now.
		e.module, err = e.runtime.CompileModule(ctx, wasm)
	}
	return err
}

// soundCache lists the entries of dir that may be loaded. What is damaged is
// removed; ok is false if that cannot be done, or if there is no directory.
func soundCache(dir string) (sound []string, ok bool) {
	if dir == "" {
		return nil, false
	}
	entries, err := entriesOf(dir)
	if err != nil {
		return nil, false
	}
	for _, path := range entries {
		if checkEntry(path) == nil {
			sound = append(sound, path)
			continue
		}
		for _, p := range []string{path, path + sumSuffix} {
			if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, false
			}
		}
	}
	return sound, true
}

// sealEntries writes the sums of the entries that soundCache has not seen. A
// failure leaves an entry that the next process replaces.
func sealEntries(dir string, sound []string) {
	entries, err := entriesOf(dir)
	if err != nil {
		return
	}
	for _, path := range entries {
		if slices.Contains(sound, path) {
			continue
		}
		if sum, err := sumOf(path); err == nil {
			replaceFile(path+sumSuffix, []byte(sum+"\n"))
		}
	}
}

// entriesOf lists the compiled modules in dir, of whatever version. A directory
// that does not exist has none.
func entriesOf(dir string) ([]string, error) {
	versions, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, v := range versions {
		if !v.IsDir() || !strings.HasPrefix(v.Name(), "wazero-") {
			continue
		}
		files, err := os.ReadDir(filepath.Join(dir, v.Name()))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if entryName.MatchString(f.Name()) {
				out = append(out, filepath.Join(dir, v.Name(), f.Name()))
			}
		}
	}
	return out, nil
}

func checkEntry(path string) error {
	want, err := os.ReadFile(path + sumSuffix)
	if err != nil {
		return err
	}
	got, err := sumOf(path)
	if err != nil {
		return err
	}
	if got+"\n" != string(want) {
		return fmt.Errorf("%s is damaged", path)
	}
	return nil
}

// sumOf reads the file in small pieces: every page of memory that a new process
// touches costs it time.
func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
