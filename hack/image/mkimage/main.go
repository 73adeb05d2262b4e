// Mkimage packs files into a container image without a container engine:
//
//	mkimage -o image.tar -name localhost/app:dev -entrypoint /app bin/app:/app cache:/var/cache/app
//	mkimage -root DIR bin/app:/app
//
// Each argument is SRC:/DST; a directory brings everything below it. The first
// form writes an OCI layout as a tar, the second lays the same files out below
// DIR, for a Dockerfile to copy. The image is reproducible: the same files give
// the same digest, whatever their owner, umask and times.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"strings"
)

// words is a repeatable string flag.
type words []string

// String implements flag.Value.
func (w *words) String() string { return strings.Join(*w, " ") }

// Set implements flag.Value.
func (w *words) Set(s string) error { *w = append(*w, s); return nil }

func main() {
	log.SetFlags(0)
	var (
		m    = meta{arch: runtime.GOARCH}
		out  = flag.String("o", "", "write the image to this tar")
		root = flag.String("root", "", "lay the files out below this directory instead")
	)
	flag.StringVar(&m.name, "name", "localhost/image:dev", "image reference")
	flag.StringVar(&m.user, "user", "65532:65532", "user and group, as numbers")
	flag.StringVar(&m.arch, "arch", m.arch, "architecture of the binaries")
	flag.Var((*words)(&m.entrypoint), "entrypoint", "word of the entry point (repeatable)")
	flag.Var((*words)(&m.env), "env", "K=V (repeatable)")
	flag.Parse()
	if err := run(m, *out, *root, flag.Args()); err != nil {
		log.Fatal("mkimage: ", err)
	}
}

func run(m meta, out, root string, args []string) error {
	t := baseTree()
	for _, arg := range args {
		src, dst, ok := strings.Cut(arg, ":")
		if !ok {
			return fmt.Errorf("want SRC:/DST, got %q", arg)
		}
		if err := t.add(src, dst); err != nil {
			return err
		}
	}
	switch {
	case (out == "") == (root == ""):
		return errors.New("want exactly one of -o and -root")
	case root != "":
		return t.layOut(root)
	}
	layer, err := t.layer()
	if err != nil {
		return err
	}
	digest, err := writeImage(out, m, layer)
	if err != nil {
		_ = os.Remove(out) // half an image must not be loaded
		return err
	}
	log.Printf("%s %s %.1f MiB", m.name, digest, float64(len(layer))/(1<<20))
	return nil
}
