package recipetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// MaxWatched bounds the folders that are watched.
const MaxWatched = 2048

// settle is how long files must rest before the tests run again: an editor writes
// a file in several steps.
const settle = 100 * time.Millisecond

// Watch calls run, and again after each change below one of the folders, until ctx
// ends; then it returns what the last run returned that was not cut short. Changes
// during a run count for the next one. The error is one of watching otherwise.
func Watch(ctx context.Context, dirs []string, run func(context.Context) error) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("--watch: %w", err)
	}
	defer func() { _ = w.Close() }()
	var last error
	for {
		// Before the run, so that nothing is missed; each time, for folders that are new.
		if err := follow(w, dirs); err != nil {
			return err
		}
		err := run(ctx)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return last
		}
		last = err
		if err := changed(ctx, w); err != nil {
			if ctx.Err() != nil {
				return last
			}
			return err
		}
	}
}

// follow watches every folder below dirs.
func follow(w *fsnotify.Watcher, dirs []string) error {
	n := 0
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && path != dir {
				return nil // gone since it was listed
			}
			if err != nil || !d.IsDir() {
				return err
			}
			if n++; n > MaxWatched {
				return fmt.Errorf("%s holds more than %d folders", dir, MaxWatched)
			}
			if err := w.Add(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("--watch: %w", err)
		}
	}
	return nil
}

// changed returns when something has changed and rests again, or with an error.
func changed(ctx context.Context, w *fsnotify.Watcher) error {
	var rest <-chan time.Time
	for {
		select {
		case e, ok := <-w.Events:
			if !ok {
				return errors.New("--watch: the watch has ended")
			}
			if e.Op != fsnotify.Chmod {
				rest = time.After(settle)
			}
		case err, ok := <-w.Errors:
			if !ok {
				return errors.New("--watch: the watch has ended")
			}
			// Events were lost: whatever they were, the tests run again.
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return fmt.Errorf("--watch: %w", err)
			}
			rest = time.After(settle)
		case <-rest:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
