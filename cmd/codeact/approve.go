package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// answerFlags are those of codeact approve and codeact deny.
type answerFlags struct {
	cluster
	result string
}

func newApprove() *cobra.Command {
	var f answerFlags
	c := &cobra.Command{
		Use:   "approve RUN [ID] [--result JSON|@FILE] [-n NAMESPACE]",
		Short: "Approve a call of a run in a cluster that waits for it",
		Long: `Approve a call of a run in a cluster that waits for it.

Without ID it is the one call of the run that waits. A call of a deferred tool is
answered with its result. The answer is added to the run's spec.resolutions in the
name of the user that the cluster takes you for; it takes the right to update
agentruns and agentruns/approve, as in the ClusterRole codeact-approver. An answer
is never changed.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, contract.DecisionApprove, args)
		},
	}
	c.Flags().StringVar(&f.result, "result", "", "result of a deferred call: JSON, or @FILE (@- reads the standard input)")
	f.bind(c)
	return c
}

func newDeny() *cobra.Command {
	var f answerFlags
	c := &cobra.Command{
		Use:   "deny RUN [ID] [-n NAMESPACE]",
		Short: "Refuse a call of a run in a cluster that waits for an answer",
		Long: `Refuse a call of a run in a cluster that waits for an answer.

Without ID it is the one call of the run that waits. See codeact approve for what
it takes.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, contract.DecisionDeny, args)
		},
	}
	f.bind(c)
	return c
}

func (f *answerFlags) run(cmd *cobra.Command, d contract.Decision, args []string) error {
	r := v1alpha1.Resolution{Decision: d}
	if len(args) > 1 {
		r.ID = args[1]
	}
	var err error
	if r.Result, err = resultFlag(f.result, cmd.InOrStdin()); err != nil {
		return err
	}
	api, ns, err := f.connect()
	if err != nil {
		return err
	}
	said, err := answer(cmd.Context(), api, types.NamespacedName{Namespace: ns, Name: args[0]}, r)
	if err != nil {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "codeact: %s\n", plain(err.Error()))
		return errFailed
	}
	_, _ = fmt.Fprintln(cmd.OutOrStdout(), said)
	return nil
}

// resultFlag reads the value of --result; nil is none.
func resultFlag(value string, in io.Reader) (*apiextensionsv1.JSON, error) {
	if value == "" {
		return nil, nil
	}
	text := []byte(value)
	if name, ok := strings.CutPrefix(value, "@"); ok {
		from := in
		if name != "-" {
			file, err := os.Open(name)
			if err != nil {
				return nil, fmt.Errorf("--result: %w", err)
			}
			defer func() { _ = file.Close() }()
			from = file
		}
		var err error
		if text, err = io.ReadAll(io.LimitReader(from, 16*contract.MaxResolutionResultBytes)); err != nil {
			return nil, fmt.Errorf("--result: %w", err)
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, fmt.Errorf("--result: not JSON: %w", err)
	}
	if n := compact.Len(); n > contract.MaxResolutionResultBytes {
		return nil, fmt.Errorf("--result: %d bytes, more than %d", n, contract.MaxResolutionResultBytes)
	}
	return &apiextensionsv1.JSON{Raw: compact.Bytes()}, nil
}

// maxAnswers bounds how often an answer is tried again because somebody else
// answered in between.
const maxAnswers = 5

// answer adds r to the run's answers, in the name of who asks, and says what it
// did. An r without an ID answers the one call that waits.
func answer(ctx context.Context, api client.Client, name types.NamespacedName, r v1alpha1.Resolution) (string, error) {
	by, err := whoami(ctx, api)
	if err != nil {
		return "", err
	}
	r.By = by
	for i := 1; ; i++ {
		var run v1alpha1.AgentRun
		if err := api.Get(ctx, name, &run); err != nil {
			return "", err
		}
		p, err := chosen(&run, r.ID)
		if err == nil {
			err = fits(p, r)
		}
		if err != nil {
			return "", err
		}
		r.ID = p.ID
		err = api.Patch(ctx, &run, client.RawPatch(types.JSONPatchType, addition(&run, r)), client.FieldOwner("codeact"))
		if err == nil {
			verb := map[contract.Decision]string{contract.DecisionApprove: "approved", contract.DecisionDeny: "denied"}[r.Decision]
			return plain(fmt.Sprintf("%s by %s: %s of run %s/%s, %s with %s", verb, r.By, p.ID, run.Namespace, run.Name, p.Tool, arguments(p))), nil
		}
		if !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) || i == maxAnswers {
			return "", err
		}
	}
}

// chosen is the call that waits under the id; without one, the only call.
func chosen(run *v1alpha1.AgentRun, id string) (contract.Pending, error) {
	for _, r := range run.Spec.Resolutions {
		if r.ID == id {
			return contract.Pending{}, fmt.Errorf("%s has been answered by %s: %s", id, r.By, r.Decision)
		}
	}
	var ids []string
	for _, p := range run.Status.Pending {
		if p.ID == id {
			return p, nil
		}
		ids = append(ids, p.ID)
	}
	switch {
	case len(ids) == 0:
		return contract.Pending{}, fmt.Errorf("no call of run %s/%s waits for an answer", run.Namespace, run.Name)
	case id != "":
		return contract.Pending{}, fmt.Errorf("no call %s of run %s/%s waits; what waits: %s", id, run.Namespace, run.Name, strings.Join(ids, ", "))
	case len(ids) > 1:
		return contract.Pending{}, fmt.Errorf("several calls of run %s/%s wait: name one of %s", run.Namespace, run.Name, strings.Join(ids, ", "))
	}
	return run.Status.Pending[0], nil
}

// fits reports whether the answer is one to what the call waits for.
func fits(p contract.Pending, r v1alpha1.Resolution) error {
	switch {
	case r.Decision == contract.DecisionDeny:
		return nil
	case p.Kind == contract.PendingResult && r.Result == nil:
		return errors.New("the call waits for its result: give it with --result JSON (null is one)")
	case p.Kind == contract.PendingApproval && r.Result != nil:
		return errors.New("the call waits for an approval, and its tool gives the result: leave out --result")
	}
	return nil
}

// addition is the JSON patch that adds one answer, to this very run, behind those
// that are there. That the run has none yet is part of it: another's first answer
// is not written over. A second one to the same call is refused by the API server.
func addition(run *v1alpha1.AgentRun, r v1alpha1.Resolution) []byte {
	type op struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	const path = "/spec/resolutions"
	patch := []op{{"test", "/metadata/uid", run.UID}}
	if len(run.Spec.Resolutions) == 0 {
		if run.Spec.Resolutions == nil {
			patch = append(patch, op{"test", path, nil})
		} else {
			patch = append(patch, op{"test", path, []any{}})
		}
		patch = append(patch, op{"add", path, []v1alpha1.Resolution{r}})
	} else {
		patch = append(patch, op{"add", path + "/-", r})
	}
	b, err := json.Marshal(patch)
	if err != nil {
		return nil // plain values: it cannot fail, and no patch is refused
	}
	return b
}
