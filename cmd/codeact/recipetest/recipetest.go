// Package recipetest runs the tests of recipes in files, and writes what came of
// them for people, for programs and for continuous integration.
package recipetest

import (
	"context"
	"regexp"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/runtime/fixture"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// Config says how tests are run.
type Config struct {
	// Operator gives the limits that a recipe does not set, and the ceilings.
	Operator settings.Operator
	// CacheDir keeps the compiled sandbox; "" keeps nothing.
	CacheDir string
	// Match, when set, chooses the tests by "recipe/test".
	Match *regexp.Regexp
	// Now tells the time.
	Now func() time.Time
}

// Report is what came of all tests.
type Report struct {
	// Recipes are those that could be read, in the order of their roots.
	Recipes []Recipe `json:"recipes"`
	// Problems are why recipes could not be read; each counts as a failure.
	Problems []Problem `json:"problems,omitempty"`
	// Passed, Failed and Skipped count the tests; the skipped ones were not chosen.
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	// Duration is the time that everything took, the start of the sandbox included.
	Duration time.Duration `json:"durationNs"`
}

// Recipe is what came of the tests of one recipe.
type Recipe struct {
	// Name is the one that it has as a tool, and Dir its folder.
	Name string `json:"name"`
	Dir  string `json:"dir"`
	// Tests are the results, in the order of the files.
	Tests []fixture.Result `json:"tests"`
	// Tools counts the declared tools, and Uncalled names those that no test calls. It
	// is empty when only some tests were chosen: the others may call them.
	Tools    int      `json:"tools"`
	Uncalled []string `json:"uncalled,omitempty"`

	source string
}

// Problem is why a recipe could not be read.
type Problem struct {
	Path    string          `json:"path"`
	Line    int             `json:"line,omitempty"`
	Column  int             `json:"column,omitempty"`
	Reason  contract.Reason `json:"reason,omitempty"`
	Message string          `json:"message"`

	text string
}

// OK reports whether nothing failed.
func (r *Report) OK() bool { return r.Failed == 0 && len(r.Problems) == 0 }

// Run runs the tests of everything that was read, one after another: what they
// measure is not disturbed, and the order is always the same. The error is one of
// the sandbox, or of ctx.
func Run(ctx context.Context, c Config, roots []*recipefile.Root) (*Report, error) {
	start := c.Now()
	out := &Report{Recipes: []Recipe{}}
	e, err := sandbox.New(ctx, sandbox.Options{CacheDir: c.CacheDir, Ceiling: ceiling(c.Operator, roots)})
	if err != nil {
		return nil, err
	}
	defer func() { _ = e.Close(context.WithoutCancel(ctx)) }()
	run := fixture.Runner{Sandbox: e, Now: c.Now}
	for _, root := range roots {
		for _, p := range root.Problems {
			out.Problems = append(out.Problems, Problem{Path: p.Path, Line: p.Line, Column: p.Column, Reason: p.Reason, Message: p.Message, text: p.Error()})
		}
		for _, r := range root.Recipes {
			if err := out.recipe(ctx, c, run, r); err != nil {
				return nil, err
			}
		}
	}
	out.Duration = c.Now().Sub(start)
	return out, nil
}

// recipe runs the tests of one recipe.
func (r *Report) recipe(ctx context.Context, c Config, run fixture.Runner, from *recipefile.Recipe) error {
	x := program(c.Operator, from)
	out := Recipe{Name: x.Name, Dir: from.Dir, Tests: []fixture.Result{}, Tools: len(x.Tools), source: from.Source.Path}
	for _, f := range from.Tests {
		if c.Match != nil && !c.Match.MatchString(x.Name+"/"+f.Name) {
			r.Skipped++
			continue
		}
		res := run.Run(ctx, x, f)
		if err := ctx.Err(); err != nil {
			return err
		}
		if out.Tests = append(out.Tests, res); res.Passed {
			r.Passed++
		} else {
			r.Failed++
		}
	}
	if len(out.Tests) == len(from.Tests) {
		out.Uncalled = fixture.Uncalled(x.Tools, out.Tests)
	}
	r.Recipes = append(r.Recipes, out)
	return nil
}

// program is the recipe under the limits that a run of it would have.
func program(op settings.Operator, r *recipefile.Recipe) fixture.Recipe {
	o := r.Object
	x := fixture.Recipe{
		Name: o.EffectiveToolName(), Source: o.Spec.Source, Limits: op.Limits(o.Spec.Limits, nil),
		InputSchema: o.InputSchema(), OutputSchema: o.OutputSchema(),
	}
	for _, name := range o.Spec.Tools {
		x.Tools = append(x.Tools, contract.Tool{Name: name})
	}
	return x
}

// ceiling is the most of heap and stack that any of the recipes may use.
func ceiling(op settings.Operator, roots []*recipefile.Root) contract.Limits {
	most := op.Limits(nil, nil)
	for _, root := range roots {
		for _, r := range root.Recipes {
			l := op.Limits(r.Object.Spec.Limits, nil)
			most.HeapBytes, most.StackBytes = max(most.HeapBytes, l.HeapBytes), max(most.StackBytes, l.StackBytes)
		}
	}
	return most
}
