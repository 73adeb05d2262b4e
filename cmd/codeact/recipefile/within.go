package recipefile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LoadIn is Load for a path that is seen from folder and, over links as well, does
// not lead out of it. Where the path is the folder itself and one recipe, its links
// reach no further than it. The paths of what is read are seen from folder.
func LoadIn(ctx context.Context, folder *os.Root, path string) (*Root, error) {
	if !filepath.IsLocal(path) {
		return nil, fmt.Errorf("%s leads out of the working folder", path)
	}
	path = filepath.Clean(path)
	ctx, cancel := context.WithTimeout(ctx, Preparation)
	defer cancel()
	l := &loader{ctx: ctx, out: &Root{Path: path}}
	_, err := folder.Lstat(filepath.Join(path, ManifestName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	one, root := err == nil, path
	if one {
		root = filepath.Dir(path)
	}
	if l.root, err = folder.OpenRoot(root); err != nil {
		return nil, err
	}
	defer func() { _ = l.root.Close() }()
	if !one {
		l.every(path)
		return l.out, nil
	}
	l.shown = func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	l.recipe(filepath.Base(path))
	return l.out, nil
}
