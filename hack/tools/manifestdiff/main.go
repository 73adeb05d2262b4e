// Manifestdiff compares two files of Kubernetes manifests object by object:
//
//	manifestdiff WANT.yaml GOT.yaml
//
// Order, comments and formatting do not count; neither do Namespace objects and
// the marks that Helm puts on what it installs. It exits 1 when they differ.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"slices"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// helmMarks say who installed an object and when it goes, not what it is.
var helmMarks = map[string][]string{
	"labels":      {"app.kubernetes.io/managed-by", "helm.sh/chart"},
	"annotations": {"helm.sh/resource-policy"},
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: manifestdiff WANT.yaml GOT.yaml")
	}
	report, err := compare(os.Args[1], os.Args[2])
	if err != nil {
		log.Fatal("manifestdiff: ", err)
	}
	if report != "" {
		log.Fatal(report)
	}
}

// compare returns what differs, or "".
func compare(wantFile, gotFile string) (string, error) {
	want, err := read(wantFile)
	if err != nil {
		return "", err
	}
	got, err := read(gotFile)
	if err != nil {
		return "", err
	}
	var report bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(want)) {
		g, ok := got[name]
		if !ok {
			fmt.Fprintf(&report, "only in %s: %s\n", wantFile, name)
		} else if d := cmp.Diff(want[name], g); d != "" {
			fmt.Fprintf(&report, "%s (-%s +%s):\n%s\n", name, wantFile, gotFile, d)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			fmt.Fprintf(&report, "only in %s: %s\n", gotFile, name)
		}
	}
	return report.String(), nil
}

// read returns the objects of a file by kind, namespace and name.
func read(file string) (map[string]map[string]any, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	objects := map[string]map[string]any{}
	for d := yaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		var content map[string]any
		if err := d.Decode(&content); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		u := unstructured.Unstructured{Object: content}
		if len(content) == 0 || u.GetKind() == "Namespace" {
			continue
		}
		name := fmt.Sprintf("%s %s %s/%s", u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName())
		if _, ok := objects[name]; ok {
			return nil, fmt.Errorf("%s: %s is there twice", file, name)
		}
		dropHelmMarks(content)
		objects[name] = content
	}
}

// dropHelmMarks looks at plain maps: a label that is no string, and so no
// label to the typed accessors, has to show up as a difference.
func dropHelmMarks(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	for field, marks := range helmMarks {
		m, ok := metadata[field].(map[string]any)
		if !ok {
			continue
		}
		for _, k := range marks {
			delete(m, k)
		}
		if len(m) == 0 {
			delete(metadata, field)
		}
	}
}
