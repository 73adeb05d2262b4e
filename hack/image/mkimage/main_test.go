package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// source makes a program and a directory to pack, with modes as given.
func source(t *testing.T, file, dir os.FileMode) string {
	t.Helper()
	src := t.TempDir()
	for name, mode := range map[string]os.FileMode{"app": file | 0o111, "cache/b/two": file, "cache/one": file} {
		p := filepath.Join(src, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(src, "cache"), dir); err != nil {
		t.Fatal(err)
	}
	return src
}

func args(src string) []string {
	return []string{src + "/app:/app", src + "/cache:/var/cache/app"}
}

func pack(t *testing.T, args []string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image.tar")
	if err := run(meta{name: "localhost/app:dev", user: "65532:65532", arch: "amd64", entrypoint: []string{"/app"}}, out, "", args); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func untar(t *testing.T, b []byte) map[string]string {
	t.Helper()
	got := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = string(content)
		if !h.ModTime.Equal(epoch) || h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s: time %v, owner %d:%d; want the epoch and root", h.Name, h.ModTime, h.Uid, h.Gid)
		}
	}
}

func TestImageIsReproducible(t *testing.T) {
	first := source(t, 0o644, 0o755)
	second := source(t, 0o600, 0o700) // as another umask would leave it
	old := time.Unix(1, 0)
	if err := os.Chtimes(filepath.Join(second, "app"), old, old); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pack(t, args(first)), pack(t, args(second))) {
		t.Error("the same files gave two different images")
	}
}

func TestImageContent(t *testing.T) {
	files := untar(t, pack(t, args(source(t, 0o644, 0o755))))
	var idx index
	if err := json.Unmarshal([]byte(files["index.json"]), &idx); err != nil {
		t.Fatal(err)
	}
	if got := idx.Manifests[0].Annotations["io.containerd.image.name"]; got != "localhost/app:dev" {
		t.Errorf("name is %q", got)
	}
	blobOf := func(d descriptor) string {
		b, ok := files["blobs/sha256/"+d.Digest[len("sha256:"):]]
		if !ok || len(b) != d.Size {
			t.Fatalf("no blob of %d bytes for %s", d.Size, d.Digest)
		}
		return b
	}
	var man manifest
	if err := json.Unmarshal([]byte(blobOf(idx.Manifests[0])), &man); err != nil {
		t.Fatal(err)
	}
	var cfg imageConfig
	if err := json.Unmarshal([]byte(blobOf(man.Config)), &cfg); err != nil {
		t.Fatal(err)
	}
	if cfg.Config.User != "65532:65532" || !slices.Equal(cfg.Config.Entrypoint, []string{"/app"}) || cfg.Architecture != "amd64" {
		t.Errorf("config is %+v", cfg)
	}
	if cfg.RootFS.DiffIDs[0] != man.Layers[0].Digest {
		t.Error("the uncompressed layer and its diff ID differ")
	}
	got := slices.Sorted(maps.Keys(untar(t, []byte(blobOf(man.Layers[0])))))
	want := []string{"app", "dev/", "etc/", "etc/group", "etc/passwd", "proc/", "run/", "sys/", "tmp/", "var/", "var/cache/", "var/cache/app/", "var/cache/app/b/", "var/cache/app/b/two", "var/cache/app/one"}
	if !slices.Equal(got, want) {
		t.Errorf("layer holds %q\nwant %q", got, want)
	}
}

func TestLayOut(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	if err := run(meta{}, "", root, args(source(t, 0o600, 0o700))); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]os.FileMode{
		"app": 0o755, "tmp": 0o777 | os.ModeSticky, "proc": 0o555, "etc/passwd": 0o644, "var/cache/app": 0o755, "var/cache/app/b/two": 0o644,
	} {
		info, err := os.Stat(filepath.Join(root, p))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode() &^ os.ModeDir; got != want {
			t.Errorf("%s has mode %v, want %v", p, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	src := source(t, 0o644, 0o755)
	if err := os.Symlink("/etc/passwd", filepath.Join(src, "cache", "link")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	tests := map[string]struct {
		out, root string
		args      []string
	}{
		"no destination":        {out: out, args: []string{src + "/app"}},
		"relative":              {out: out, args: []string{src + "/app:app"}},
		"unclean":               {out: out, args: []string{src + "/app:/a/../app"}},
		"the root":              {out: out, args: []string{src + "/cache:/"}},
		"missing":               {out: out, args: []string{src + "/none:/none"}},
		"link below":            {out: out, args: []string{src + "/cache:/cache"}},
		"twice":                 {out: out, args: []string{src + "/app:/app", src + "/cache/one:/app"}},
		"file over base":        {out: out, args: []string{src + "/app:/etc/passwd"}},
		"no output":             {args: []string{src + "/app:/app"}},
		"two kinds of output":   {out: out, root: out, args: []string{src + "/app:/app"}},
		"file over directory":   {out: out, args: []string{src + "/app:/tmp"}},
		"directory over a file": {out: out, args: []string{src + "/app:/x", src + "/cache/b:/x"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := run(meta{}, tc.out, tc.root, tc.args); err == nil {
				t.Error("want an error")
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("a refused image left a file")
			}
		})
	}
}
