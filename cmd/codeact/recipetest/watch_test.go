package recipetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	errLast := errors.New("the last one")
	write := func(path string) {
		if err := os.WriteFile(filepath.Join(dir, path), []byte("x"), 0o600); err != nil {
			t.Error(err)
		}
	}
	runs := 0
	err := Watch(ctx, []string{dir}, func(context.Context) error {
		switch runs++; runs {
		case 1: // a change during a run
			write("main.js")
		case 2: // a new folder
			if err := os.Mkdir(filepath.Join(dir, "tests"), 0o700); err != nil {
				t.Error(err)
			}
		case 3: // a file in it
			write(filepath.Join("tests", "a.json"))
		default:
			cancel()
			return errLast
		}
		return nil
	})
	if !errors.Is(err, errLast) || runs != 4 {
		t.Errorf("%d runs, want 4; error %v", runs, err)
	}
}

func TestWatchCutShort(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := Watch(ctx, []string{t.TempDir()}, func(ctx context.Context) error {
		cancel()
		return ctx.Err()
	})
	if err != nil {
		t.Errorf("error %v, want none of a round that was cut short", err)
	}
}

func TestWatchNowhere(t *testing.T) {
	err := Watch(t.Context(), []string{filepath.Join(t.TempDir(), "none")}, func(context.Context) error { return nil })
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one of a folder that is not there", err)
	}
}
