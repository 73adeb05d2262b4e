package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipetest"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

type recipeTestFlags struct {
	run, output string
	limits      []string
	watch       bool
}

func newRecipeTest() *cobra.Command {
	var f recipeTestFlags
	c := &cobra.Command{
		Use:   "test [DIR...] [--run REGEXP] [--watch] [--limit name=value ...] [-o text|json|junit]",
		Short: "Run the tests of recipes in the sandbox, with a script in the place of their tools",
		Long: `Run the tests of recipes in the sandbox, with a script in the place of their tools.

DIR is a root of recipes or one recipe; .starweaver/recipes without it. What the
manifest's tests names holds tests like this one, alone, in a list, or under the
key tests; in JSON, YAML or TOML:

  name: trims the name          unique; that of the file for a single test
  input: {"id": "7"}            null without it
  calls:                        the calls of tools, in exactly this order
  - tool: get_item
    args: {"id": "7"}           any without it
    returns: {"name": " Lamp "} null without it; or else
    fails: {"reason": "ToolFailed", "message": "gone"}
  expect:
    output: {"name": "Lamp"}    any without it; or else
    reason: JavaScriptError     why the run fails,
    message: gone               and a part of the message

Input and output pass their schemas, and every call passes the runtime's broker
under the recipe's limits. Of the failures of a call, the program can catch
ToolFailed and InvalidArguments; every other one ends the run.

--run chooses the tests whose recipe/test matches.
--watch runs them again after each change of a file, until it is interrupted, and
ends as the last round did.
--limit sets the operator's default and ceiling for one limit.

Exit codes: 0 all passed, 1 a test failed or a recipe cannot be read, 2 usage.`,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			return runRecipeTest(cmd.Context(), f, dirs, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&f.run, "run", "", "regular expression of the tests to run, as recipe/test")
	c.Flags().BoolVar(&f.watch, "watch", false, "run them again after each change of a file")
	c.Flags().StringArrayVar(&f.limits, "limit", nil, "one limit as name=value; may be repeated")
	c.Flags().StringVarP(&f.output, "output", "o", "text", "text, json or junit")
	return c
}

func runRecipeTest(ctx context.Context, f recipeTestFlags, dirs []string, out, errs io.Writer) error {
	c, err := f.config()
	if err != nil {
		return err
	}
	if !f.watch {
		return testOnce(ctx, f, c, dirs, out)
	}
	if len(dirs) == 0 {
		dirs = []string{recipefile.DefaultRoot}
	}
	return recipetest.Watch(ctx, dirs, func(ctx context.Context) error {
		// What is half written now may be right after the next change.
		err := testOnce(ctx, f, c, dirs, out)
		if err != nil && !errors.Is(err, errFailed) && ctx.Err() == nil {
			_, _ = fmt.Fprintf(errs, "codeact: %v\n", err)
		}
		if ctx.Err() == nil {
			_, _ = fmt.Fprintln(errs, "waiting for a change")
		}
		return err
	})
}

func (f recipeTestFlags) write() func(io.Writer, *recipetest.Report) error {
	return map[string]func(io.Writer, *recipetest.Report) error{
		"text": recipetest.WriteText, "json": recipetest.WriteJSON, "junit": recipetest.WriteJUnit,
	}[f.output]
}

func (f recipeTestFlags) config() (recipetest.Config, error) {
	c := recipetest.Config{Operator: settings.Default(), CacheDir: cacheDir(), Now: time.Now}
	if f.write() == nil {
		return c, fmt.Errorf("-o %s: want text, json or junit", f.output)
	}
	var err error
	if c.Operator.Defaults, err = limitsOf(f.limits); err != nil {
		return c, err
	}
	c.Operator.Ceilings = c.Operator.Defaults
	if f.run != "" {
		if c.Match, err = regexp.Compile(f.run); err != nil {
			return c, fmt.Errorf("--run: %w", err)
		}
	}
	return c, nil
}

// testOnce reads the recipes and runs their tests.
func testOnce(ctx context.Context, f recipeTestFlags, c recipetest.Config, dirs []string, out io.Writer) error {
	roots, err := loadRoots(ctx, dirs)
	if err != nil {
		return err
	}
	report, err := recipetest.Run(ctx, c, roots)
	if err != nil {
		return err
	}
	if err := f.write()(out, report); err != nil {
		return err
	}
	switch {
	case !report.OK():
		return errFailed
	case report.Passed == 0 && c.Match != nil:
		return fmt.Errorf("--run %s: no test of these recipes matches", f.run)
	case report.Passed == 0:
		return errors.New("these recipes have no tests: name a file or a folder as tests in " + recipefile.ManifestName)
	}
	return nil
}
