package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// recipeDigests are the digests that a cluster shows in a Recipe's status.
type recipeDigests struct {
	ToolName          string `json:"toolName"`
	Source            string `json:"source"`
	SourceDigest      string `json:"sourceDigest"`
	InputSchemaDigest string `json:"inputSchemaDigest"`
	ManifestDigest    string `json:"manifestDigest"`
}

func newRecipeDigest() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "digest [DIR...] [-o json|text]",
		Short: "Print the digest of each program, as source_digest takes it",
		Long: `Print the digest of each program, as source_digest takes it.

DIR is a root of recipes or one recipe; .starweaver/recipes without it. With -o
json there are also the digests of the input schema and of the whole manifest, as
a Recipe's status shows them.`,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			return runRecipeDigest(cmd.Context(), dirs, output, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "json or text")
	return c
}

func runRecipeDigest(ctx context.Context, dirs []string, output string, out, errs io.Writer) error {
	if err := checkOutput(output); err != nil {
		return err
	}
	roots, err := loadRoots(ctx, dirs)
	if err != nil {
		return err
	}
	list, bad := []recipeDigests{}, false
	for _, root := range roots {
		for _, p := range root.Problems {
			bad = true
			_, _ = fmt.Fprintln(errs, plain(p.Error()))
		}
		for _, r := range root.Recipes {
			d := recipeDigests{ToolName: r.Object.EffectiveToolName(), Source: r.Source.Path, SourceDigest: r.Object.SourceDigest()}
			schema, err := contract.Canonical(r.Object.InputSchema())
			if err != nil {
				return err
			}
			d.InputSchemaDigest = contract.Digest(schema)
			if d.ManifestDigest, err = r.Object.ManifestDigest(); err != nil {
				return err
			}
			list = append(list, d)
		}
	}
	if err := printDigests(out, output, list); err != nil {
		return err
	}
	if bad {
		return errFailed
	}
	return nil
}

func printDigests(out io.Writer, output string, list []recipeDigests) error {
	if output == "json" {
		return printIndented(out, list)
	}
	for _, d := range list {
		if _, err := fmt.Fprintf(out, "%s  %s\n", d.SourceDigest, plain(d.Source)); err != nil {
			return err
		}
	}
	return nil
}
