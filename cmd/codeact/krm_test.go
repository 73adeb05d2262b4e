package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
)

// TestMain lets the test binary be the command where it is called by its name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "codeact" {
		main()
	}
	os.Exit(m.Run())
}

// kustomize finds or builds the pinned kustomize and puts this binary into PATH as
// codeact. It returns what builds a folder.
func kustomize(t *testing.T) func(dir string) (out, errs string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	path := os.Getenv("KUSTOMIZE")
	if path == "" {
		out, err := exec.CommandContext(ctx, "go", "tool", "-modfile="+filepath.Join("..", "..", "hack", "tools", "go.mod"), "-n", "kustomize").Output()
		if err != nil {
			t.Fatalf("the pinned kustomize of hack/tools: %v", err)
		}
		path = strings.TrimSpace(string(out))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "codeact")); err != nil {
		t.Skip(err) // a folder without links, as on some Windows, cannot have the command under another name
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return func(dir string) (string, string, error) {
		var out, errs bytes.Buffer
		c := exec.CommandContext(ctx, path, "build", "--enable-alpha-plugins", "--enable-exec", dir)
		c.Stdout, c.Stderr = &out, &errs
		err := c.Run()
		return out.String(), errs.String(), err
	}
}

// TestKustomizeSamples builds the sample recipes as their page says. What comes out
// is what render writes, in another order.
func TestKustomizeSamples(t *testing.T) {
	build := kustomize(t)
	dir := filepath.Join("..", "..", "config", "samples", "recipes")
	out, errs, err := build(dir)
	if err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	root, err := recipefile.Load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*v1alpha1.Recipe{}
	for _, r := range root.Recipes {
		want[r.Object.Name] = r.Object
	}
	for text := range strings.SplitSeq(out, "---\n") {
		var got v1alpha1.Recipe
		if err := yaml.UnmarshalStrict([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		r := want[got.Name]
		if r == nil {
			t.Errorf("a Recipe %q that no folder has", got.Name)
			continue
		}
		delete(want, got.Name)
		is, err := got.ManifestDigest()
		if err != nil {
			t.Fatal(err)
		}
		was, err := r.ManifestDigest()
		if err != nil {
			t.Fatal(err)
		}
		if is != was || got.Spec.SourceDigest != r.SourceDigest() || len(got.Labels) != 1 || len(got.Annotations) != 0 {
			t.Errorf("another Recipe %s came out:\n%s", got.Name, text)
		}
	}
	if len(want) > 0 {
		t.Errorf("%d Recipes are missing", len(want))
	}
}

const kustomizationFiles = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: team-a
resources: [others.yaml]
`

const folders = `apiVersion: krm.codeact.dev/v1alpha1
kind: RecipeFolders
metadata:
  name: f
  annotations:
    config.kubernetes.io/function: |
      exec: {path: codeact, args: [krm]}
spec:
  dirs: [DIR]
`

const others = `apiVersion: v1
kind: ConfigMap
metadata: {name: others}
data: {n: "010"}
---
apiVersion: codeact.dev/v1alpha1
kind: Recipe
metadata: {name: tidy, labels: {kept: "true"}}
spec: {source: old}
`

// TestKustomize has the function as a generator beside other objects, as a
// transformer of them, and with folders that are wrong.
func TestKustomize(t *testing.T) {
	build := kustomize(t)
	tests := map[string]struct {
		as       string
		dir      string
		program  string
		want     []string // parts of the output
		wantErrs string   // a part of the standard error of a build that fails
	}{
		"transformer": {
			as: "transformers", dir: "recipes", program: "function main() { return 1 }\n",
			want: []string{"function main() { return 1 }", "namespace: team-a", `kept: "true"`, `"n": "010"`},
		},
		"generator": {
			as: "generators", dir: "recipes/new", program: "function main() { return 1 }\n",
			want: []string{"function main() { return 1 }", "name: new\n  namespace: team-a", "source: old"},
		},
		"generator of a name that is there": {
			as: "generators", dir: "recipes/tidy", program: "function main() { return 1 }\n", wantErrs: "behavior must be merge or replace",
		},
		"syntax": {
			as: "transformers", dir: "recipes", program: "function main( { return 1 }\n",
			wantErrs: filepath.Join("recipes", "tidy", "main.js") + ":1:",
		},
		"outside": {as: "generators", dir: "../recipes", program: "function main() {}\n", wantErrs: "../recipes leads out of the working folder"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{
				"kustomization.yaml":       kustomizationFiles + tc.as + ": [folders.yaml]\n",
				"folders.yaml":             strings.Replace(folders, "DIR", tc.dir, 1),
				"others.yaml":              others,
				"recipes/tidy/recipe.toml": "version = 1\nname = \"tidy\"\n",
				"recipes/tidy/main.js":     tc.program,
				"recipes/new/recipe.toml":  "version = 1\nname = \"new\"\n",
				"recipes/new/main.js":      tc.program,
			} {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			out, errs, err := build(dir)
			if tc.wantErrs != "" {
				if err == nil || out != "" || !strings.Contains(errs, tc.wantErrs) {
					t.Errorf("error %v, want %q:\n%s%s", err, tc.wantErrs, out, errs)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v: %s", err, errs)
			}
			for _, part := range tc.want {
				if !strings.Contains(out, part) {
					t.Errorf("%q is missing:\n%s", part, out)
				}
			}
		})
	}
}

// TestKRM has the command line alone.
func TestKRM(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, out, errs := codeact(t, "krm"); code != exitFailed || !strings.Contains(out, "results:") || !strings.Contains(errs, "the input is empty") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	if code, _, _ := codeact(t, "krm", "recipes"); code != exitUsage {
		t.Errorf("code %d with an argument", code)
	}
}
