// Package golden compares what a test has made with a file of its package's testdata.
// `go test -update` writes the files anew.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Check compares a text with testdata/FILE.
func Check(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s is not the golden one (-want +got); go test -update writes it anew:\n%s", path, d)
	}
}

// CheckYAML compares an object's YAML with testdata/FILE.
func CheckYAML(t *testing.T, file string, o any) {
	t.Helper()
	got, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	Check(t, file, string(got))
}
