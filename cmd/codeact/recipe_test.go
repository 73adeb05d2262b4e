package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// codeact runs one command line.
func codeact(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestRecipeCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	steps := []struct {
		args []string
		code int
		out  string // a part of the standard output
		errs string // and of the standard error
	}{
		{args: []string{"recipe"}, code: exitUsage, errs: "name a subcommand"},
		{args: []string{"recipe", "lint"}, code: exitUsage, errs: "no such file"},
		{args: []string{"recipe", "new", "a b"}, code: exitUsage, errs: "may only hold"},
		{args: []string{"recipe", "new", "run_code"}, code: exitUsage, errs: "belongs to the runtime"},
		{args: []string{"recipe", "new", "look_up"}, out: "recipe.toml"},
		{args: []string{"recipe", "new", "look_up"}, code: exitUsage, errs: "exists already"},
		{args: []string{"recipe", "lint"}, errs: "1 recipes read, 0 errors, 0 warnings"},
		{args: []string{"recipe", "lint", "-o", "sarif"}, out: `"results": []`},
		{args: []string{"recipe", "lint", "-o", "xml"}, code: exitUsage, errs: "want text, json or sarif"},
		{args: []string{"recipe", "lint", "--limit", "childCalls=0"}, code: exitFailed, out: "LimitsTooHigh"},
		{args: []string{"recipe", "digest"}, out: "sha256:"},
		{args: []string{"recipe", "digest", "-o", "json", filepath.Join(".starweaver", "recipes", "look_up")}, out: `"manifestDigest": "sha256:`},
		{args: []string{"recipe", "render", "-n", "team-a", "--label", "a=b"}, out: "sourceDigest: sha256:"},
		{args: []string{"recipe", "render", "-n", "A"}, code: exitUsage, errs: "-n A"},
		{args: []string{"recipe", "render", "--label", "a"}, code: exitUsage, errs: "want key=value"},
		{args: []string{"recipe", "render", "--limit", "childCalls=0"}, code: exitFailed, errs: "LimitsTooHigh"},
		{args: []string{"recipe", "render", ".starweaver/recipes", ".starweaver/recipes/look_up"}, code: exitUsage, errs: "are both Recipe look-up"},
	}
	for _, s := range steps {
		code, out, errs := codeact(t, s.args...)
		if code != s.code || !strings.Contains(out, s.out) || !strings.Contains(errs, s.errs) {
			t.Errorf("%q: code %d, want %d\n%s\n%s", s.args, code, s.code, out, errs)
		}
	}
}
