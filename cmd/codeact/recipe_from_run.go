package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/fromrun"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/lint"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/runtime/fixture"
	"github.com/codeact-dev/codeact-operator/runtime/replay"
)

type fromRunFlags struct {
	recorded
	dir, name string
	step      int64
}

func newRecipeFromRun() *cobra.Command {
	var f fromRunFlags
	c := &cobra.Command{
		Use:   "from-run RUN|FILE [-o DIR] [--name NAME] [--step N] [-f FILE] [-n NAMESPACE]",
		Short: "Make a recipe in files of the program of a run, ready for review",
		Long: `Make a recipe in files of the program of a run, ready for review.

RUN is a run in a cluster, and FILE its transcript, as for codeact replay. Of an
agent that has succeeded it is the last program whose value is the run's output, or
else the last one that succeeded; --step chooses another. The folder has the
program, the tools that it calls, an input schema that is inferred from its one
input, and a test with the calls and the output that were recorded. The program is
replayed and the test is run before anything is written, and lint is asked
afterwards.

DIR is the folder of the recipe; .starweaver/recipes/NAME without it. It must not be
there. NAME is the name as a tool: that of DIR, or of the run, without it.

What was recorded is copied: it may hold data that does not belong into a
repository. A credential is in no transcript.

Exit codes: 0 written, 1 written but lint finds errors, 2 nothing was written.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.recorded.bind(c)
	c.Flags().StringVarP(&f.dir, "output", "o", "", "the folder of the recipe, which is made")
	c.Flags().StringVar(&f.name, "name", "", "the name of the recipe as a tool")
	c.Flags().Int64Var(&f.step, "step", 0, "the step of the agent whose program is taken")
	return c
}

func (f *fromRunFlags) run(cmd *cobra.Command, run string) error {
	_, rec, err := f.read(cmd, run)
	if err != nil {
		return err
	}
	name, dir, err := f.target(rec)
	if err != nil {
		return err
	}
	p, err := fromrun.Choose(rec, f.step)
	if err != nil {
		return fmt.Errorf("recipe from-run: %w", err)
	}
	var files []fromrun.File
	var d fromrun.Draft
	err = inSandbox(cmd.Context(), rec.Ceiling(), func(r replay.Replayer) error {
		d, err = provenDraft(cmd.Context(), r, name, rec, p)
		if err == nil {
			files, err = d.Files()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("recipe from-run: %w", err)
	}
	if err := writeRecipe(dir, files); err != nil {
		return err
	}
	_, found, err := lintRoots(cmd.Context(), []string{dir}, nil)
	if err != nil {
		return err
	}
	if err := f.tell(cmd, dir, files, d, found); err != nil {
		return err
	}
	if lint.Errors(found) > 0 {
		return errFailed
	}
	return nil
}

// target is the name of the recipe and its folder.
func (f *fromRunFlags) target(rec replay.Record) (name, dir string, err error) {
	_, run, _ := strings.Cut(rec.Run, "/")
	name = f.name
	switch {
	case name != "":
	case f.dir != "":
		name = filepath.Base(filepath.Clean(f.dir))
	default:
		name = strings.NewReplacer("-", "_", ".", "_").Replace(run)
	}
	switch {
	case !contract.ValidToolName(name):
		return "", "", fmt.Errorf("recipe from-run: %q is no name of a recipe: only letters, digits, '_' and '-', at most 64; give one with --name", contract.Truncate(name, 64))
	case contract.ReservedName(name):
		return "", "", fmt.Errorf("recipe from-run: the name %q belongs to the runtime; give another one with --name", name)
	}
	dir = f.dir
	if dir == "" {
		dir = filepath.Join(recipefile.DefaultRoot, name)
	}
	if _, err := os.Lstat(dir); err == nil {
		return "", "", fmt.Errorf("recipe from-run: %s exists already", dir)
	}
	return name, dir, nil
}

// provenDraft is the recipe of a program whose replay holds, with a test that passes.
func provenDraft(ctx context.Context, r replay.Replayer, name string, rec replay.Record, p replay.Program) (fromrun.Draft, error) {
	one := rec
	one.Programs, one.Direct = []replay.Program{p}, 0
	rep, err := r.Run(ctx, one)
	if err != nil {
		return fromrun.Draft{}, err
	}
	if res := rep.Programs[0]; res.Verdict != replay.Holds {
		why := res.Why
		if res.Divergence != nil {
			why = res.Divergence.Title()
		}
		return fromrun.Draft{}, fmt.Errorf("its replay does not hold: %s", why)
	}
	d, err := fromrun.Make(name, rec, p)
	if err != nil {
		return d, err
	}
	passes := func() fixture.Result {
		l := settings.Default().Limits(nil, nil)
		return fixture.Runner{Sandbox: r.Sandbox, Now: time.Now}.Run(ctx, d.Recipe(l), d.Test)
	}
	if string(p.Input) == "null" {
		// A run without an input has null, and a recipe has an object, unless the
		// program takes it for something else.
		if err := d.WithInput(json.RawMessage("{}")); err != nil {
			return d, err
		}
		if passes().Passed {
			return d, nil
		}
		if err := d.WithInput(p.Input); err != nil {
			return d, err
		}
	}
	if res := passes(); !res.Passed {
		return d, fmt.Errorf("its program, as a recipe under the default limits, does not do the same: %s", res.Diffs[0].Title())
	}
	return d, ctx.Err()
}

// writeRecipe writes a folder that is not there yet.
func writeRecipe(dir string, files []fromrun.File) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("recipe from-run: %s exists already", dir)
	} else if err != nil {
		return err
	}
	for _, x := range files {
		path := filepath.Join(dir, filepath.FromSlash(x.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(x.Text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// tell says what was written, and what a reviewer must look at.
func (f *fromRunFlags) tell(cmd *cobra.Command, dir string, files []fromrun.File, d fromrun.Draft, found []lint.Finding) error {
	var out bytes.Buffer
	v := view{&out}
	for _, x := range files {
		v.line(0, "%s", filepath.Join(dir, filepath.FromSlash(x.Path)))
	}
	v.line(0, "")
	v.line(0, "The program of %s, %s: its replay holds, and its test passes.", d.From, d.Program.SourceDigest)
	v.line(0, "Before it is used, look at:")
	v.line(0, "- %s: nobody has reviewed this program; it calls %s", recipefile.DefaultSource, someTools(d))
	v.line(0, "- %s: the description, which a model chooses it by", recipefile.ManifestName)
	v.line(0, "- %s: inferred from one input, so that nobody knows what is optional, or how long", fromrun.SchemaFile)
	v.line(0, "- %s: a copy of the recorded input, output and %s, which may hold private data", fromrun.TestFile, counted(len(d.Test.Calls), "call"))
	if _, err := cmd.OutOrStdout().Write(out.Bytes()); err != nil {
		return err
	}
	return lint.WriteText(cmd.OutOrStdout(), found)
}

func someTools(d fromrun.Draft) string {
	text := "no tool"
	if len(d.Tools) > 0 {
		text = strings.Join(d.Tools, ", ")
	}
	if d.Dynamic {
		text += ", and perhaps others, by names that nobody can tell from the text"
	}
	return text
}
