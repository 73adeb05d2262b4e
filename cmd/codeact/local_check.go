package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/runtime/check"
	"github.com/codeact-dev/codeact-operator/runtime/fixture"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// judgeRecipe gives a Recipe the verdict of its controller. The tests of one that the
// run executes are run first, as a check pod would.
func (l *localRun) judgeRecipe(ctx context.Context, s recipe.Snapshot) error {
	op := l.op
	op.RecipeTests.Run = l.executes(s.Recipe)
	p := recipe.Decide(op, s)
	if p.Tests.Launch != nil {
		report, err := runTests(ctx, l, p.Tests.Launch.Check)
		if err != nil {
			return fmt.Errorf("run the tests of Recipe %s: %w", s.Recipe.Name, err)
		}
		s.Recipe.Status.Tests = &v1alpha1.RecipeTests{ManifestDigest: p.Tests.Launch.ManifestDigest, Attempts: 1}
		s.Recipe.Status.Tests.Take(p.Tests.Launch.Tests, report)
		p = recipe.Decide(op, s)
	}
	s.Recipe.Status = recipe.Settle(s, p)
	return nil
}

// executes says whether the run may execute the recipe.
func (l *localRun) executes(r *v1alpha1.Recipe) bool {
	spec := l.m.run
	switch {
	case spec == nil || r.Namespace != spec.Namespace:
		return false
	case spec.Spec.Recipe != nil:
		return spec.Spec.Recipe.Name == r.Name
	case spec.Spec.Agent != nil:
		return slices.Contains(spec.Spec.Agent.Recipes, r.Name)
	}
	return false
}

func runTests(ctx context.Context, l *localRun, c contract.Check) (contract.CheckReport, error) {
	e, err := sandbox.New(ctx, sandbox.Options{CacheDir: cacheDir(), Ceiling: c.Limits})
	if err != nil {
		return contract.CheckReport{}, err
	}
	defer func() { _ = e.Close(context.WithoutCancel(ctx)) }()
	report := check.Tests(ctx, fixture.Runner{Sandbox: e, Now: l.now}, c)
	return report, context.Cause(ctx)
}
