package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/codeact-dev/codeact-operator/cmd/codeact/lint"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

func newRecipeLint() *cobra.Command {
	var output string
	var limits []string
	c := &cobra.Command{
		Use:   "lint [DIR...] [--limit name=value ...] [-o text|json|sarif]",
		Short: "Say what a cluster would refuse, and what may be meant otherwise",
		Long: `Say what a cluster would refuse, and what may be meant otherwise.

DIR is a root of recipes or one recipe; .starweaver/recipes without it. The
verdicts are those of the API server and of the operator, in the same words:
digest, syntax and forbidden constructs with line and column, schemas, names,
limits. Beside them it is an error to call a tool by a literal name that the
manifest does not declare, and a warning to declare one that is never called, or
to call one by a name that nobody can tell from the text. Whether tools are
granted only a cluster can say.

--limit sets the operator's default and ceiling for one limit.

Exit codes: 0 no errors, 1 errors, 2 usage.`,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			return runRecipeLint(cmd.Context(), dirs, limits, output, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.Flags().StringArrayVar(&limits, "limit", nil, "one limit as name=value; may be repeated")
	c.Flags().StringVarP(&output, "output", "o", "text", "text, json or sarif")
	return c
}

func runRecipeLint(ctx context.Context, dirs, limits []string, output string, out, errs io.Writer) error {
	write := map[string]func(io.Writer, []lint.Finding) error{
		"text": lint.WriteText, "json": lint.WriteJSON, "sarif": lint.WriteSARIF,
	}[output]
	if write == nil {
		return fmt.Errorf("-o %s: want text, json or sarif", output)
	}
	roots, found, err := lintRoots(ctx, dirs, limits)
	if err != nil {
		return err
	}
	if err := write(out, found); err != nil {
		return err
	}
	n := lint.Errors(found)
	if output == "text" {
		recipes := 0
		for _, r := range roots {
			recipes += len(r.Recipes)
		}
		_, _ = fmt.Fprintf(errs, "%d recipes read, %d errors, %d warnings\n", recipes, n, len(found)-n)
	}
	if n > 0 {
		return errFailed
	}
	return nil
}

// lintRoots reads and judges what the folders hold.
func lintRoots(ctx context.Context, dirs, limits []string) ([]*recipefile.Root, []lint.Finding, error) {
	op := settings.Default()
	var err error
	if op.Defaults, err = limitsOf(limits); err != nil {
		return nil, nil, err
	}
	op.Ceilings = op.Defaults
	l, err := lint.New(op, time.Now())
	if err != nil {
		return nil, nil, err
	}
	roots, err := loadRoots(ctx, dirs)
	if err != nil {
		return nil, nil, err
	}
	var found []lint.Finding
	for _, r := range roots {
		found = append(found, l.Root(ctx, r)...)
	}
	return roots, found, nil
}
