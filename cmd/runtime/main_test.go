package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown": {"start"}, "no folder": {"precompile"}, "two folders": {"verify-cache", "a", "b"}, "run takes nothing": {"run", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := command(t.Context(), args, &out, &errs); code != 2 || !strings.HasPrefix(errs.String(), "usage: ") {
				t.Errorf("exit code %d, stderr %q", code, errs.String())
			}
		})
	}
}

func TestCache(t *testing.T) {
	var out, errs bytes.Buffer
	dir := filepath.Join(t.TempDir(), "cache")
	if code := command(t.Context(), []string{"verify-cache", dir}, &out, &errs); code != 1 {
		t.Errorf("a cache that is not there: exit code %d", code)
	}
	if code := command(t.Context(), []string{"precompile", dir}, &out, &errs); code != 0 {
		t.Fatalf("precompile: exit code %d, stderr %s", code, errs.String())
	}
	if code := command(t.Context(), []string{"verify-cache", dir}, &out, &errs); code != 0 {
		t.Errorf("verify-cache: exit code %d, stderr %s", code, errs.String())
	}
	if err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() || strings.HasSuffix(path, ".sha256") {
			return err
		}
		return os.Truncate(path, info.Size()/2)
	}); err != nil {
		t.Fatal(err)
	}
	if code := command(t.Context(), []string{"verify-cache", dir}, &out, &errs); code != 1 {
		t.Errorf("a cache that was cut: exit code %d", code)
	}
}
