package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/codeact-dev/codeact-operator/cmd/codeact/lint"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
)

type renderFlags struct {
	namespace string
	labels    []string
	limits    []string
}

func newRecipeRender() *cobra.Command {
	var f renderFlags
	c := &cobra.Command{
		Use:   "render [DIR...] [-n NAMESPACE] [--label k=v ...]",
		Short: "Write Recipes for kubectl apply, or for Git",
		Long: `Write Recipes for kubectl apply, or for Git.

DIR is a root of recipes or one recipe; .starweaver/recipes without it. The same
files always give the same bytes: sorted by name, each with the digest of its
program, and programs as text, so that a difference in Git can be reviewed. The
tests come with them: a cluster runs them before a Recipe turns Ready. There
is nothing in it that an API server would fill in or take out. What lint calls an
error is said on the standard error, and then nothing is written.`,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			return runRecipeRender(cmd.Context(), dirs, f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.Flags().StringVarP(&f.namespace, "namespace", "n", "", "metadata.namespace of the Recipes; none without it")
	c.Flags().StringArrayVar(&f.labels, "label", nil, "one label as key=value; may be repeated")
	c.Flags().StringArrayVar(&f.limits, "limit", nil, "the operator's ceiling for one limit as name=value; may be repeated")
	return c
}

func runRecipeRender(ctx context.Context, dirs []string, f renderFlags, out, errs io.Writer) error {
	labels, err := f.parse()
	if err != nil {
		return err
	}
	roots, found, err := lintRoots(ctx, dirs, f.limits)
	if err != nil {
		return err
	}
	if lint.Errors(found) > 0 {
		if err := lint.WriteText(errs, found); err != nil {
			return err
		}
		return errFailed
	}
	var all []*recipefile.Recipe
	for _, r := range roots {
		all = append(all, r.Recipes...)
	}
	slices.SortFunc(all, func(a, b *recipefile.Recipe) int { return strings.Compare(a.Object.Name, b.Object.Name) })
	var b bytes.Buffer
	for i, r := range all {
		if i > 0 {
			if all[i-1].Object.Name == r.Object.Name {
				return fmt.Errorf("render: %s and %s are both Recipe %s", all[i-1].Dir, r.Dir, r.Object.Name)
			}
			b.WriteString("---\n")
		}
		o := r.Object.DeepCopy()
		o.Namespace, o.Labels, o.Spec.SourceDigest = f.namespace, labels, o.SourceDigest()
		text, err := recipefile.Render(o)
		if err != nil {
			return fmt.Errorf("render: %s: %w", r.Dir, err)
		}
		b.Write(text)
	}
	_, err = out.Write(b.Bytes())
	return err
}

// parse checks what becomes metadata.
func (f renderFlags) parse() (map[string]string, error) {
	if f.namespace != "" {
		if errs := validation.IsDNS1123Label(f.namespace); len(errs) > 0 {
			return nil, fmt.Errorf("-n %s: %s", f.namespace, errs[0])
		}
	}
	var out map[string]string
	for _, pair := range f.labels {
		k, v, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("--label %s: want key=value", pair)
		}
		if errs := append(validation.IsQualifiedName(k), validation.IsValidLabelValue(v)...); len(errs) > 0 {
			return nil, fmt.Errorf("--label %s: %s", pair, errs[0])
		}
		if out == nil {
			out = map[string]string{}
		}
		out[k] = v
	}
	return out, nil
}
