package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// sumSuffix names the file beside a cache entry that holds its sha256. wazero
// checks only the code of an entry, not the tables around it; an entry whose
// sum is missing or wrong is never loaded.
const sumSuffix = ".sha256"

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

// compile makes the runtime and the compiled module, by way of the cache if
// that can be used. No state of the cache makes it fail.
func (e *Engine) compile(ctx context.Context, wasm []byte, dir string) error {
	if dir != "" && soundCache(dir) {
		if cache, err := wazero.NewCompilationCacheWithDir(dir); err == nil {
			if err = e.compileWith(ctx, wasm, cache); err == nil {
				sealEntries(dir)
				return nil
			}
			_ = e.release(ctx)
			e.cache = nil
		}
	}
	return e.compileWith(ctx, wasm, nil)
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

// soundCache reports whether dir holds nothing that must not be loaded. What is
// damaged is removed if it can be.
func soundCache(dir string) bool {
	entries, err := entriesOf(dir)
	if err != nil {
		return false
	}
	for _, path := range entries {
		if checkEntry(path) == nil {
			continue
		}
		for _, p := range []string{path, path + sumSuffix} {
			if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
				return false
			}
		}
	}
	return true
}

// sealEntries writes the sums of new entries; soundCache has left no other ones
// without. A failure leaves an entry that the next process replaces.
func sealEntries(dir string) {
	entries, err := entriesOf(dir)
	if err != nil {
		return
	}
	for _, path := range entries {
		if checkEntry(path) == nil {
			continue
		}
		sum, err := sumOf(path)
		if err != nil {
			continue
		}
		tmp := fmt.Sprintf("%s.%d.tmp", path+sumSuffix, os.Getpid())
		if os.WriteFile(tmp, []byte(sum+"\n"), 0o644) == nil {
			_ = os.Rename(tmp, path+sumSuffix)
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

func sumOf(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
