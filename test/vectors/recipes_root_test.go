package vectors_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
)

// bounds are the cases that are about how much one root holds. Here a root holds
// folders of recipes: each Recipe of such a case is written as one.
var bounds = map[string]bool{"RC22": true, "RC23": true, "RC23b": true}

// root reads the files of the case as a root of recipe folders.
func (c recipeCase) root(t *testing.T) {
	dir := t.TempDir()
	for name, f := range c.Files {
		for i := range max(f.Count, 1) {
			f.write(t, filepath.Join(dir, strings.ReplaceAll(name, "{i}", fmt.Sprint(i))), i)
		}
	}
	found, err := recipefile.Load(t.Context(), dir)
	ok := err == nil && len(found.Problems) == 0 && len(found.Recipes) > 0
	if ok != c.Expect.OK {
		t.Errorf("read %+v, %v", found, err)
	}
}

func (f recipeFile) write(t *testing.T, path string, i int) {
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if f.JSON == nil {
		write(path, strings.ReplaceAll(f.Text, "{i}", fmt.Sprint(i)))
		return
	}
	var r struct {
		Metadata struct{ Name string }
		Spec     struct{ Source string }
	}
	text, err := json.Marshal(f.JSON)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	path = strings.TrimSuffix(path, ".json")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(path, "recipe.toml"), fmt.Sprintf("version = 1\nname = %q\n", strings.ReplaceAll(r.Metadata.Name, "{i}", fmt.Sprint(i))))
	write(filepath.Join(path, "main.js"), r.Spec.Source)
}
