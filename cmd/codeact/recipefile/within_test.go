package recipefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLoadIn has a folder with recipes, links inside of it, and links out of it.
func TestLoadIn(t *testing.T) {
	outside := tree(t, map[string]string{"b/recipe.toml": minimal, "b/main.js": program})
	root := tree(t, map[string]string{
		"r/a/recipe.toml":    minimal,
		"r/a/main.js":        "->../../shared.js",
		"one/recipe.toml":    minimal,
		"one/main.js":        "->../shared.js",
		"shared.js":          program,
		"self/recipe.toml":   minimal,
		"self/main.js":       "->../shared.js",
		"in":                 "->one",
		"out":                "->" + outside,
		"up":                 "->../x",
		"leaks/recipe.toml":  minimal,
		"leaks/main.js":      "->" + filepath.Join(outside, "b", "main.js"),
		"empty/":             "",
		"leads/c":            "->" + filepath.Join(outside, "b"),
		"closed/recipe.toml": "->" + filepath.Join(outside, "b", "recipe.toml"),
	})
	tests := map[string]struct {
		folder, path string
		want         string // names of recipes
		wantProblem  string
		wantErr      string
	}{
		"one":               {path: "one", want: "tidy"},
		"one over a link":   {path: "in", want: "tidy"},
		"not cleaned":       {path: "./empty/../one/", want: "tidy"},
		"root":              {path: "r", wantProblem: "r/a/main.js: path escapes from parent"},
		"itself":            {folder: "self", path: ".", wantProblem: "main.js: path escapes from parent"},
		"nothing":           {path: "empty"},
		"missing":           {path: "missing", wantErr: "no such file"},
		"upwards":           {path: "..", wantErr: "leads out of the working folder"},
		"upwards by detour": {path: "r/../../x", wantErr: "leads out of the working folder"},
		"absolute":          {path: outside, wantErr: "leads out of the working folder"},
		"link out":          {path: "out", wantErr: "path escapes from parent"},
		"link up":           {path: "up", wantErr: "path escapes from parent"},
		"file out":          {path: "leaks", wantProblem: "leaks/main.js: path escapes from parent"},
		"folder out":        {path: "leads", wantProblem: "leads/c/recipe.toml: path escapes from parent"},
		"manifest out":      {path: "closed", wantProblem: "closed/recipe.toml: path escapes from parent"},
		"empty path":        {path: "", wantErr: "leads out of the working folder"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			folder, err := os.OpenRoot(filepath.Join(root, tc.folder))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = folder.Close() }()
			got, err := LoadIn(t.Context(), folder, tc.path)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names, problems []string
			for _, r := range got.Recipes {
				names = append(names, r.Object.Name)
			}
			for _, p := range got.Problems {
				problems = append(problems, filepath.ToSlash(p.Error()))
			}
			if n, p := strings.Join(names, " "), strings.Join(problems, "; "); n != tc.want || p != tc.wantProblem {
				t.Errorf("recipes %q, want %q; problems %q, want %q", n, tc.want, p, tc.wantProblem)
			}
		})
	}
}
