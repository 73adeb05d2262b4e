package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runsWith makes an engine on dir and runs a program on it.
func runsWith(t *testing.T, dir string) {
	t.Helper()
	e, err := New(t.Context(), Options{CacheDir: dir})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	defer func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	res, err := e.Execute(t.Context(), Program{Source: `function main(){return 1}`}, nil)
	if err != nil || string(res.Value) != "1" {
		t.Fatalf("value %s error %v, want 1", res.Value, err)
	}
}

// precompiled returns a directory with the compiled module, and its one entry.
func precompiled(t *testing.T) (dir, entry string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "new", "cache")
	if err := Precompile(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	entries, err := entriesOf(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("entries %v error %v, want one", entries, err)
	}
	return dir, entries[0]
}

func TestCache(t *testing.T) {
	dir, entry := precompiled(t)
	whole, err := os.ReadFile(entry)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(entry); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v error %v, want readable by every user", info.Mode(), err)
	}
	if err := VerifyCache(t.Context(), dir); err != nil {
		t.Errorf("VerifyCache of a good cache: %v", err)
	}

	t.Run("found again", func(t *testing.T) {
		before, err := os.Stat(entry)
		if err != nil {
			t.Fatal(err)
		}
		runsWith(t, dir)
		if after, err := os.Stat(entry); err != nil || !after.ModTime().Equal(before.ModTime()) {
			t.Errorf("the entry was written again: %v", err)
		}
	})
	damages := map[string]func(t *testing.T){
		"function table": func(t *testing.T) { overwrite(t, entry, changed(whole, 40)) },
		"code":           func(t *testing.T) { overwrite(t, entry, changed(whole, len(whole)/2)) },
		"cut":            func(t *testing.T) { overwrite(t, entry, whole[:1000]) },
		"empty":          func(t *testing.T) { overwrite(t, entry, nil) },
		"no sum":         func(t *testing.T) { mustRemove(t, entry+sumSuffix) },
		"bad sum":        func(t *testing.T) { overwrite(t, entry+sumSuffix, []byte("x")) },
		"no entry":       func(t *testing.T) { mustRemove(t, entry) },
	}
	sum := entry + sumSuffix
	seal, err := os.ReadFile(sum)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range damages {
		t.Run("damaged: "+name, func(t *testing.T) {
			defer func() { overwrite(t, entry, whole); overwrite(t, sum, seal) }()
			damage(t)
			if err := VerifyCache(t.Context(), dir); err == nil {
				t.Error("VerifyCache found no damage")
			}
			if _, ok := soundCache(dir); !ok {
				t.Error("what is damaged was not removed")
			}
			if _, err := os.Stat(entry); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the damaged entry is still there: %v", err)
			}
		})
	}
	t.Run("mended", func(t *testing.T) {
		overwrite(t, entry, changed(whole, 40))
		runsWith(t, dir)
		if err := VerifyCache(t.Context(), dir); err != nil {
			t.Errorf("the cache was not mended: %v", err)
		}
	})
	t.Run("cannot be written", func(t *testing.T) {
		// Not even root creates files in /proc, so this is a read-only file
		// system without the entry.
		readOnly := t.TempDir()
		if err := os.Symlink("/proc/self", filepath.Join(readOnly, filepath.Base(filepath.Dir(entry)))); err != nil {
			t.Skip(err)
		}
		if _, err := os.Stat("/proc/self"); err != nil {
			t.Skip(err)
		}
		runsWith(t, readOnly)
	})
	t.Run("is a file", func(t *testing.T) { runsWith(t, entry) })
}

func TestVerifyCacheOfNothing(t *testing.T) {
	if err := VerifyCache(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "cache") {
		t.Errorf("error %v, want one about the cache", err)
	}
}

func changed(b []byte, at int) []byte {
	c := append([]byte(nil), b...)
	c[at] ^= 0xff
	return c
}

func overwrite(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustRemove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}
