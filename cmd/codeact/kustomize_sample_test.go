package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

// TestKustomizeSample judges the sample as its ConfigMap is generated, and holds its
// configuration, which kustomize wants below its folder, to the published one.
func TestKustomizeSample(t *testing.T) {
	dir := filepath.Join("..", "..", "config", "samples", "kustomize")
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const file = "namereference.yaml"
	if d := cmp.Diff(read(filepath.Join("..", "..", "config", "kustomize", file)), read(filepath.Join(dir, file))); d != "" {
		t.Error(d)
	}
	m, err := loadAny(t.Context(), []string{filepath.Join(dir, "recipe.yaml")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]string{}
	for _, name := range []string{"main.js", "input.schema.json"} {
		data[name] = read(filepath.Join(dir, name))
	}
	s := recipe.Snapshot{Now: time.Unix(0, 0), Recipe: &m.recipes[0], ConfigMaps: map[string]*corev1.ConfigMap{"add-up": {Data: data}}}
	if p := recipe.Decide(settings.Default(), s); p.Verb != recipe.VerbAccept {
		t.Errorf("%s: %v", p.Verb, p.Fault)
	}
}
