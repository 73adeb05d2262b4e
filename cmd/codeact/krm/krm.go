// Package krm makes Recipes of recipe folders as a KRM function: a ResourceList comes
// in, the same list with the Recipes goes out. Tools that build manifests from many
// sources, kustomize among them, run it as one step of theirs.
package krm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/codeact-dev/codeact-operator/cmd/codeact/lint"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

// MaxRecipes bounds the recipes of all folders together.
const MaxRecipes = 512

// ErrFailed says that the results hold an error; what it is has been said in them
// and for people.
var ErrFailed = errors.New("krm: the function failed")

// Function is one run of the function.
type Function struct {
	// Folder is the working folder. No path of the configuration leads out of it.
	Folder *os.Root
	// Now is the time of the look.
	Now time.Time
}

// Run reads a ResourceList of at most MaxListBytes from in and writes it to out: its
// Recipes are those of the folders that its functionConfig names, all other items are
// as they were. What is wrong with the folders becomes results, with the file, its
// line and column, and text on errs. After an error the items are unchanged and Run
// returns ErrFailed; the list is written all the same. Other errors are those of
// reading and writing.
func (f *Function) Run(ctx context.Context, in io.Reader, out, errs io.Writer) error {
	text, err := io.ReadAll(io.LimitReader(in, MaxListBytes+1))
	if err != nil {
		return fmt.Errorf("krm: %w", err)
	}
	l, err := parseList(text)
	if err != nil {
		l = emptyList()
		return f.finish(l, []Result{failure("%v", err)}, nil, out, errs)
	}
	results, found := f.fill(ctx, l)
	return f.finish(l, results, found, out, errs)
}

// fill puts the Recipes into the list, or says why it does not.
func (f *Function) fill(ctx context.Context, l *list) ([]Result, []lint.Finding) {
	c, bad := parseConfig(l.config)
	if bad != nil {
		return []Result{*bad}, nil
	}
	op := settings.Default()
	op.Defaults, op.Ceilings = c.limits, c.limits
	linter, err := lint.New(op, f.Now)
	if err != nil {
		return []Result{failure("%v", err)}, nil
	}
	var results []Result
	var found []lint.Finding
	var all []*recipefile.Recipe
	for i, dir := range c.Spec.Dirs {
		field := fmt.Sprintf("spec.dirs[%d]", i)
		root, err := recipefile.LoadIn(ctx, f.Folder, dir)
		switch {
		case err != nil:
			results = append(results, c.failure(field, "%v", err))
			continue
		case len(root.Recipes)+len(root.Problems) == 0:
			results = append(results, c.failure(field, "%s holds no recipe: no folder in it has a %s", dir, recipefile.ManifestName))
			continue
		}
		for _, one := range linter.Root(ctx, root) {
			found = append(found, one)
			results = append(results, resultOf(one))
		}
		if all = append(all, root.Recipes...); len(all) > MaxRecipes {
			return append(results, c.failure("spec.dirs", "the folders hold more than %d recipes", MaxRecipes)), found
		}
	}
	if failed(results) {
		return results, found
	}
	recipes, bad := c.recipes(all)
	if bad == nil {
		bad = l.merge(recipes)
	}
	if bad != nil {
		results = append(results, *bad)
	}
	return results, found
}

// finish writes the list with its results. Findings among them are said to people
// with an excerpt of the file.
func (f *Function) finish(l *list, results []Result, found []lint.Finding, out, errs io.Writer) error {
	text, err := l.render(results)
	if err != nil {
		results = append(results, failure("%v", err))
		if text, err = emptyList().render(results); err != nil {
			return fmt.Errorf("krm: %w", err)
		}
	}
	var b bytes.Buffer
	if err := lint.WriteText(&b, found); err != nil {
		return fmt.Errorf("krm: %w", err)
	}
	for _, r := range results {
		if r.File == nil {
			fmt.Fprintf(&b, "codeact: krm: %s\n", r.text())
		}
	}
	if _, err := errs.Write(b.Bytes()); err != nil {
		return fmt.Errorf("krm: %w", err)
	}
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("krm: %w", err)
	}
	if failed(results) {
		return ErrFailed
	}
	return nil
}
