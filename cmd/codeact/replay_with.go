package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/runtime/replay"
)

// replacement is a recorded program and the recipe in its place.
type replacement struct {
	program replay.Program
	recipe  *recipefile.Recipe
}

// comparisons is the report of replay --with.
type comparisons struct {
	Run        string `json:"run"`
	RunUID     string `json:"runUID"`
	Generation int64  `json:"generation"`
	// Same says that nothing differs.
	Same     bool              `json:"same"`
	Programs []replacementDiff `json:"programs"`
}

type replacementDiff struct {
	Dir string `json:"dir"`
	replay.Comparison
}

// compare executes recipes in files in the place of the recorded programs.
func (f *replayFlags) compare(cmd *cobra.Command, t *transcript, rec replay.Record) error {
	op := settings.Default()
	var err error
	if op.Defaults, err = limitsOf(f.limits); err != nil {
		return err
	}
	op.Ceilings = op.Defaults
	root, err := recipefile.Load(cmd.Context(), f.with)
	if err != nil {
		return err
	}
	if len(root.Problems) > 0 {
		return errors.New(plain(root.Problems[0].Error()))
	}
	list, err := f.replacements(rec, root.Recipes)
	if err != nil {
		return err
	}
	out := comparisons{Run: rec.Run, RunUID: rec.RunUID, Generation: rec.Generation, Same: true}
	lacking := false
	ceiling := rec.Ceiling()
	for _, x := range list {
		l := op.Limits(x.recipe.Object.Spec.Limits, nil)
		ceiling.HeapBytes, ceiling.StackBytes = max(ceiling.HeapBytes, l.HeapBytes), max(ceiling.StackBytes, l.StackBytes)
	}
	err = inSandbox(cmd.Context(), ceiling, func(r replay.Replayer) error {
		for _, x := range list {
			o := x.recipe.Object
			c := r.With(cmd.Context(), x.program, replay.Other{
				Recipe: o.Name, Tools: o.Spec.Tools, Source: o.Spec.Source, Limits: op.Limits(o.Spec.Limits, nil),
				InputSchema: o.InputSchema(), OutputSchema: o.OutputSchema(),
			})
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			out.Programs = append(out.Programs, replacementDiff{Dir: x.recipe.Dir, Comparison: c})
			out.Same, lacking = out.Same && c.Same, lacking || c.Unverified
		}
		return nil
	})
	if err != nil {
		return err
	}
	if f.output == "json" {
		err = writeReplay(cmd.OutOrStdout(), out)
	} else {
		err = writeComparisons(cmd.OutOrStdout(), t, out)
	}
	switch {
	case err != nil:
		return err
	case lacking:
		return errors.New("the record lacks what it takes to compare all of it")
	case !out.Same:
		return errFailed
	}
	return nil
}

// replacements chooses the programs that the recipes take the place of.
func (f *replayFlags) replacements(rec replay.Record, recipes []*recipefile.Recipe) ([]replacement, error) {
	var out []replacement
	for _, p := range rec.Programs {
		switch {
		case f.step > 0 && p.Step != f.step:
		case f.step > 0 || len(rec.Programs) == 1 && p.Recipe == "":
			if len(recipes) != 1 {
				return nil, fmt.Errorf("%s holds %d recipes: name the folder of one", f.with, len(recipes))
			}
			out = append(out, replacement{p, recipes[0]})
		default:
			for _, r := range recipes {
				if p.Recipe == r.Object.Name {
					out = append(out, replacement{p, r})
				}
			}
		}
	}
	switch {
	case len(out) > 0:
		return out, nil
	case f.step > 0:
		return nil, fmt.Errorf("step %d of the run has no program", f.step)
	case len(rec.Programs) == 0:
		return nil, errors.New("the run has no program")
	}
	return nil, fmt.Errorf("no program of the run is one of a recipe in %s; choose a step of it with --step", f.with)
}
