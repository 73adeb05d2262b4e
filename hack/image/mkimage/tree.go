package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// epoch is the time of everything in an image, so that no clock enters it.
var epoch = time.Unix(0, 0).UTC()

// node is one file or directory of the image. Only the mode's permission bits
// and the sticky bit count.
type node struct {
	dir     bool
	mode    fs.FileMode
	content []byte // of a file that has no src
	src     string // path of a file on this machine
}

// tree is an image's file system by absolute, clean path.
type tree map[string]node

// baseTree is what every image has: the accounts, and the directories that a
// container runtime mounts over. /tmp is there for an emptyDir; the root file
// system itself is meant to be read-only.
func baseTree() tree {
	t := tree{
		"/tmp":        {dir: true, mode: 0o777 | fs.ModeSticky},
		"/proc":       {dir: true, mode: 0o555},
		"/sys":        {dir: true, mode: 0o555},
		"/etc/passwd": {mode: 0o644, content: []byte("root:x:0:0:root:/:/nologin\nnonroot:x:65532:65532:nonroot:/:/nologin\n")},
		"/etc/group":  {mode: 0o644, content: []byte("root:x:0:\nnonroot:x:65532:\n")},
	}
	for _, d := range []string{"/etc", "/dev", "/run", "/var"} {
		t[d] = node{dir: true, mode: 0o755}
	}
	return t
}

// add puts the file or directory src at dst, with its parents. Modes become 755
// or 644, so that the builder's umask does not matter. It refuses a relative
// dst, anything that is neither file nor directory, and a path added before.
func (t tree) add(src, dst string) error {
	if dst != path.Clean(dst) || !path.IsAbs(dst) || dst == "/" {
		return fmt.Errorf("want a clean absolute path in the image, got %q", dst)
	}
	for d := path.Dir(dst); d != "/"; d = path.Dir(d) {
		if _, ok := t[d]; !ok {
			t[d] = node{dir: true, mode: 0o755}
		}
	}
	src, err := filepath.EvalSymlinks(src) // only the named path may be a link
	if err != nil {
		return err
	}
	return filepath.WalkDir(src, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Type()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a symbolic link", p)
		}
		rel, err := filepath.Rel(src, p)
		if err != nil {
			return err
		}
		return t.addOne(p, path.Join(dst, filepath.ToSlash(rel)))
	})
}

func (t tree) addOne(src, dst string) error {
	info, err := os.Stat(src)
	if err != nil {
		return err
	}
	old, taken := t[dst]
	switch {
	case taken && old.dir && info.IsDir(): // what is there keeps its mode
	case taken:
		return fmt.Errorf("%s is in the image twice", dst)
	case info.IsDir():
		t[dst] = node{dir: true, mode: 0o755}
	case info.Mode().IsRegular():
		t[dst] = node{mode: 0o644 | info.Mode()&0o111, src: src}
	default:
		return fmt.Errorf("%s is neither a file nor a directory", src)
	}
	return nil
}

func (n node) read() ([]byte, error) {
	if n.src == "" {
		return n.content, nil
	}
	return os.ReadFile(n.src)
}

// layer is the tree as a tar in path order, owned by root.
func (t tree) layer() ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, p := range slices.Sorted(maps.Keys(t)) {
		n := t[p]
		h := &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(p, "/"), Mode: tarMode(n.mode), ModTime: epoch, Format: tar.FormatPAX}
		var content []byte
		if n.dir {
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		} else {
			var err error
			if content, err = n.read(); err != nil {
				return nil, err
			}
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// tarMode is mode as a tar has it: Go keeps the sticky bit elsewhere.
func tarMode(mode fs.FileMode) int64 {
	m := int64(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		m |= 0o1000
	}
	return m
}

// layOut writes the tree below root, which need not exist.
func (t tree) layOut(root string) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(t)) { // a parent sorts before its children
		n, at := t[p], filepath.Join(root, filepath.FromSlash(p))
		if n.dir {
			if err := os.MkdirAll(at, 0o755); err != nil {
				return err
			}
		} else {
			content, err := n.read()
			if err != nil {
				return err
			}
			if err := os.WriteFile(at, content, 0o644); err != nil {
				return err
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(t)) { // apart from the umask, and after all is written
		if err := os.Chmod(filepath.Join(root, filepath.FromSlash(p)), t[p].mode); err != nil {
			return err
		}
	}
	return nil
}
