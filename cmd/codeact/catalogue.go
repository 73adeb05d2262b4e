package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

func newCatalogue() *cobra.Command {
	var files []string
	c := &cobra.Command{
		Use:   "catalogue -f FILE...",
		Short: "Print what a program's author is shown of the tools",
		Long: `Print what a program's author is shown of the tools.

The files hold one AgentRun with spec.code or spec.agent and the ToolGrants and Recipes that it
needs, as for kubectl apply. The text on the standard output is exactly what a model would
be shown of the tools that programs may call: in protocol Tools as a part of run_code,
beside the tools that it may call itself. The standard error says how much of the tools it shows: full,
withoutReturnSchemas, or empty, and then no tool may be called.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printCatalogue(cmd.Context(), files, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.Flags().StringArrayVarP(&files, "filename", "f", nil, "manifest file; - reads the standard input; may be repeated")
	_ = c.MarkFlagRequired("filename")
	return c
}

func printCatalogue(ctx context.Context, files []string, in io.Reader, out, errs io.Writer) error {
	m, err := load(ctx, files, in)
	if err != nil {
		return err
	}
	if m.run.Spec.Recipe != nil {
		return errors.New("catalogue: the program of a Recipe is reviewed and has no catalogue: give a run with spec.code or spec.agent")
	}
	l := &localRun{op: settings.Default(), m: m, now: time.Now, errs: errs}
	if err := l.judge(ctx); err != nil {
		return err
	}
	plan := agentrun.Decide(l.op, l.look())
	if plan.Verb != agentrun.VerbLaunch {
		reason, message := plan.Reason, plan.Message
		if plan.Outcome != nil {
			reason, message = plan.Outcome.Reason, plan.Outcome.Message
		}
		_, _ = fmt.Fprintf(errs, "the run has no catalogue: %s: %s\n", reason, message)
		return errFailed
	}
	shown, err := agentrun.Catalogue(plan.Pin.Bundle.Tools)
	if err != nil {
		return err
	}
	pinned := plan.Pin.Bundle.Catalogue
	if pinned == nil || contract.Digest(shown.Text) != pinned.Digest {
		return errors.New("the pinned tools do not make the pinned catalogue")
	}
	_, _ = fmt.Fprintf(errs, "step: %s (%d tools, %d bytes)\n", pinned.Step, len(shown.Names), len(shown.Text))
	_, err = out.Write(shown.Text)
	return err
}
