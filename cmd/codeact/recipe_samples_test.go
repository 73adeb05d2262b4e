package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/cmd/codeact/lint"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipetest"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

// TestSampleRecipes holds the recipes that authors learn from to what their page
// says: no finding of the linter, tests that pass, and every tool called in one.
func TestSampleRecipes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := filepath.Join("..", "..", "config", "samples", "recipes")
	root, err := recipefile.Load(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lint.New(settings.Default(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range l.Root(ctx, root) {
		t.Errorf("%s:%d:%d: %s: %s", f.Path, f.Line, f.Column, f.Rule, f.Message)
	}
	c := recipetest.Config{Operator: settings.Default(), Now: time.Now}
	report, err := recipetest.Run(ctx, c, []*recipefile.Root{root})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() {
		var b strings.Builder
		_ = recipetest.WriteText(&b, report)
		t.Error(b.String())
	}
	page, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Recipes) != 10 {
		t.Errorf("%d recipes, want 10", len(report.Recipes))
	}
	for _, r := range report.Recipes {
		if n := len(r.Tests); n < 2 || n > 4 {
			t.Errorf("%s has %d tests, want 2 to 4", r.Name, n)
		}
		if len(r.Uncalled) > 0 {
			t.Errorf("no test of %s calls %v", r.Name, r.Uncalled)
		}
		if !strings.Contains(string(page), "("+filepath.Base(r.Dir)+")") {
			t.Errorf("the page does not lead to %s", r.Dir)
		}
	}
}
