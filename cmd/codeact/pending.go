package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

type pendingFlags struct {
	cluster
	all    bool
	output string
}

func newPending() *cobra.Command {
	var f pendingFlags
	c := &cobra.Command{
		Use:   "pending [RUN] [-n NAMESPACE | -A] [-o json|text]",
		Short: "List the calls of runs in a cluster that wait for an answer",
		Long: `List the calls of runs in a cluster that wait for an answer, with their arguments.

Answer with codeact approve and codeact deny.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(f.output); err != nil {
				return err
			}
			api, ns, err := f.connect()
			if err != nil {
				return err
			}
			if f.all {
				ns = ""
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			list, err := waiting(cmd.Context(), api, ns, name)
			if err != nil {
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "codeact: %s\n", plain(err.Error()))
				return errFailed
			}
			return printWaiting(cmd.OutOrStdout(), f.output, list)
		},
	}
	c.Flags().BoolVarP(&f.all, "all-namespaces", "A", false, "of every namespace")
	c.Flags().StringVarP(&f.output, "output", "o", "text", "json or text")
	f.bind(c)
	return c
}

// waitingCall is one call that waits, and its run: a contract with the users of
// codeact pending -o json.
type waitingCall struct {
	Namespace string `json:"namespace"`
	Run       string `json:"run"`
	contract.Pending
}

// waiting finds what waits: in one run, or in all of the namespace, or everywhere.
func waiting(ctx context.Context, api client.Client, ns, name string) ([]waitingCall, error) {
	out := []waitingCall{}
	add := func(run *v1alpha1.AgentRun) {
		for _, p := range run.Status.Pending {
			out = append(out, waitingCall{run.Namespace, run.Name, p})
		}
	}
	if name != "" {
		if ns == "" {
			return nil, fmt.Errorf("run %s: name its namespace with -n instead of -A", name)
		}
		var run v1alpha1.AgentRun
		if err := api.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, &run); err != nil {
			return nil, err
		}
		add(&run)
		return out, nil
	}
	var runs v1alpha1.AgentRunList
	for {
		if err := api.List(ctx, &runs, client.InNamespace(ns), client.Limit(100), client.Continue(runs.Continue)); err != nil {
			return nil, err
		}
		for i := range runs.Items {
			add(&runs.Items[i])
		}
		if runs.Continue == "" {
			return out, nil
		}
	}
}

func printWaiting(w io.Writer, format string, list []waitingCall) error {
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "Nothing waits.")
		return err
	}
	for _, c := range list {
		for _, line := range []string{
			fmt.Sprintf("%s/%s %s", c.Namespace, c.Run, c.ID),
			fmt.Sprintf("  %s of %s (%s), by the grant %s, since %s", c.Kind, c.Tool, c.Effect, c.Grant, c.Since),
			"  " + arguments(c.Pending),
		} {
			if _, err := fmt.Fprintln(w, plain(line)); err != nil {
				return err
			}
		}
	}
	return nil
}

// arguments are those of a call as a person reads them.
func arguments(p contract.Pending) string {
	if p.ArgumentsCut {
		return p.Arguments + "… (cut; the digest of all is " + p.ArgumentsDigest + ")"
	}
	return p.Arguments
}
