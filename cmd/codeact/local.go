package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/controllers/toolgrant"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	pod "github.com/codeact-dev/codeact-operator/runtime/run"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// newUID makes the run's UID anew each time: it is part of every idempotency
// key, and real tools are called.
func newUID() types.UID { return uuid.NewUUID() }

type runFlags struct {
	local  bool
	files  []string
	output string
	limits []string
	answers
}

func newRun() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run --local -f FILE... [--approve TOOL,...] [--result TOOL=JSON ...] [--limit name=value ...] [-o json|text]",
		Short: "Run an AgentRun manifest in this process, without a cluster",
		Long: `Run an AgentRun manifest in this process, without a cluster.

The files hold one AgentRun and the Recipes and ToolGrants that it needs, that of
its model too, as for kubectl apply, and the ConfigMaps that its Recipes take texts from. They pass the API server's own checks, the controllers' own
decisions, and the runtime's own broker and sandbox: the verdict is the
cluster's. The standard error says which grants are not Ready, and why. Tools are
really called, over HTTP and MCP, also at loopback addresses, which the operator
of a cluster refuses without --allow-loopback-tools: an author's servers are
there. A credential from a secretRef is taken from a Secret in the files; tokens
of a ServiceAccount, and the certificates of a caBundle, need a cluster. Grants of
other namespaces count as in a cluster, by the labels of a Namespace in the files.

While an agent runs, its progress is shown on the standard error: in words on a
terminal, as JSON lines otherwise.

A call that waits for somebody in a cluster is answered here: by --approve and --result,
else by a question on the terminal, else it is denied.

--limit sets the operator's default and ceiling for one limit.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runLocal(cmd.Context(), f, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.Flags().BoolVar(&f.local, "local", false, "run in this process (required; a cluster is used with kubectl apply)")
	c.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "manifest file; - reads the standard input; may be repeated")
	c.Flags().StringArrayVar(&f.limits, "limit", nil, "one limit as name=value; may be repeated")
	c.Flags().StringVarP(&f.output, "output", "o", "text", "json or text")
	f.answers.bind(c)
	_ = c.MarkFlagRequired("filename")
	return c
}

func runLocal(ctx context.Context, f runFlags, in io.Reader, out, errs io.Writer) error {
	if !f.local {
		return errors.New("run: set --local; to run on a cluster, use kubectl apply")
	}
	if err := checkOutput(f.output); err != nil {
		return err
	}
	op := settings.Default()
	var err error
	if op.Defaults, err = limitsOf(f.limits); err != nil {
		return err
	}
	op.Ceilings = op.Defaults
	op.Egress.AllowLoopback = true // where the tools of somebody's own machine are
	m, err := load(ctx, f.files, in)
	if err != nil {
		return err
	}
	desk, err := f.answers.desk(f.files, in, errs)
	if err != nil {
		return err
	}
	l := &localRun{op: op, m: m, now: time.Now, errs: errs, desk: desk}
	o, err := l.do(ctx)
	if err != nil {
		return err
	}
	return printResult(out, f.output, o)
}

// localRun takes a run along the straight way of the cluster: look, decide, pin,
// run, report, settle. Only the API server and the pod are missing.
type localRun struct {
	op  settings.Operator
	m   *manifests
	now func() time.Time
	// errs is where it is told what has no other place without a cluster, and how an
	// agent gets on.
	errs io.Writer
	// desk answers the calls that wait for somebody in a cluster.
	desk loop.Desk
}

// do returns how the run ended. An error means that this process could not do
// its part.
func (l *localRun) do(ctx context.Context) (loop.Outcome, error) {
	if err := l.judge(ctx); err != nil {
		return loop.Outcome{}, err
	}
	plan := agentrun.Decide(l.op, l.look())
	switch plan.Verb {
	case agentrun.VerbLaunch:
	case agentrun.VerbSettle:
		return loop.Outcome{Fault: faultOf(plan.Outcome)}, nil
	case agentrun.VerbWait:
		// In a cluster the run would wait for somebody to mend it; here nobody will.
		return loop.Outcome{Fault: contract.Faultf(contract.Reason(plan.Reason), "%s", plan.Message)}, nil
	case agentrun.VerbIgnore, agentrun.VerbStop, agentrun.VerbSupersede, agentrun.VerbRest, agentrun.VerbExpire:
		return loop.Outcome{}, fmt.Errorf("the manifest cannot be run: the decision about it is %s", plan.Verb)
	}
	l.m.run.Status = agentrun.Settle(l.op, l.look(), plan, agentrun.Done{Pinned: true, Launched: true})
	l.warn(plan.Pin.Bundle)
	o, err := l.execute(ctx, plan.Pin)
	if err != nil {
		return o, err
	}
	return l.settle(plan.Pin, o)
}

// judge gives every ToolGrant and Recipe the verdict of its controller. Which
// grants are not Ready, and why, it tells: there are no conditions to look at.
func (l *localRun) judge(ctx context.Context) error {
	for i := range l.m.grants {
		s := toolgrant.Snapshot{Now: l.now(), Grant: &l.m.grants[i], Others: l.m.grants}
		p := toolgrant.Decide(s)
		l.m.grants[i].Status = toolgrant.Settle(s, p)
		if p.Fault != nil {
			_, _ = fmt.Fprintf(l.errs, "ToolGrant %s is not Ready: %s: %s\n", s.Grant.Name, p.Fault.Reason, plain(p.Fault.Message))
		}
	}
	for i := range l.m.recipes {
		s := recipe.Snapshot{Now: l.now(), Recipe: &l.m.recipes[i], Recipes: l.m.recipes, Grants: l.m.grants}
		s.NamespaceLabels = l.m.namespaces[s.Recipe.Namespace]
		s.ConfigMaps = l.m.configMapsOf(s.Recipe.Namespace)
		if err := l.judgeRecipe(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (l *localRun) look() agentrun.Snapshot {
	s := agentrun.Snapshot{
		Now: l.now(), Run: l.m.run, Recipes: l.m.recipes, Grants: l.m.grants, Models: l.m.grants,
		NamespaceLabels: l.m.namespaces[l.m.run.Namespace], ConfigMaps: l.m.configMapsOf(l.m.run.Namespace),
	}
	if ref := l.m.run.Spec.Recipe; ref != nil {
		for i := range l.m.recipes {
			if r := &l.m.recipes[i]; r.Name == ref.Name && r.Namespace == l.m.run.Namespace {
				s.Recipe = r
			}
		}
	}
	return s
}

// execute is the pod's part: it reads the bundle from its bytes and digest.
func (l *localRun) execute(ctx context.Context, pin *agentrun.Pin) (loop.Outcome, error) {
	b, err := contract.DecodeBundle(pin.Raw, pin.Digest)
	if err != nil {
		return loop.Outcome{}, err
	}
	creds := newSecretFiles(l.m, b)
	tools, end, f := pod.Tools(b, creds)
	defer end(context.WithoutCancel(ctx))
	if f != nil {
		return loop.Outcome{Fault: f}, nil
	}
	c := loop.Config{Bundle: b, Tools: tools, Now: l.now, Desk: l.desk}
	if b.Agent != nil {
		if c.Model, f = pod.Model(b, creds); f != nil {
			return loop.Outcome{Fault: f}, nil
		}
		c.Events = loop.NewEvents(progressTo(l.errs), l.now)
		if d, ok := l.desk.(*localDesk); ok {
			d.flush = c.Events.Flush
		}
	}
	e, err := sandbox.New(ctx, sandbox.Options{CacheDir: cacheDir(), Ceiling: b.Limits})
	if err != nil {
		return loop.Outcome{}, err
	}
	defer func() { _ = e.Close(context.WithoutCancel(ctx)) }()
	timeout := time.Duration(b.TimeoutMs) * time.Millisecond
	ctx, cancel := context.WithTimeoutCause(ctx, timeout,
		contract.Faultf(contract.ReasonDeadlineExceeded, "the run took longer than its timeout of %s", timeout))
	defer cancel()
	c.Sandbox = e
	return loop.Run(ctx, c), nil
}

// settle brings the report through the controller's verification.
func (l *localRun) settle(pin *agentrun.Pin, o loop.Outcome) (loop.Outcome, error) {
	e := contract.Execution{
		Generation: pin.Bundle.Run.Generation, RunUID: pin.Bundle.Run.UID, BundleDigest: pin.Digest,
		Claim: contract.Claim{PodName: pin.Name, PodUID: pin.Bundle.Run.UID, Time: l.now().UTC().Format(time.RFC3339)},
	}
	o.Report(&e, l.now())
	l.m.run.Status.Execution = &e
	s := l.look()
	s.Pin = pin.ConfigMap(l.m.run)
	plan := agentrun.Decide(l.op, s)
	if plan.Verb != agentrun.VerbSettle || plan.Outcome == nil {
		return o, fmt.Errorf("the report of the run was not accepted: %s", plan.Message)
	}
	if !plan.Outcome.Succeeded && o.Fault == nil {
		o.Value, o.Fault = nil, faultOf(plan.Outcome)
	}
	return o, nil
}

func faultOf(o *agentrun.Outcome) *contract.Fault {
	return contract.Faultf(contract.Reason(o.Reason), "%s", o.Message).At(o.Line, o.Column)
}

// secretFiles takes the credentials of the tools, and of the model, from the
// Secrets in the files.
type secretFiles struct {
	m    *manifests
	auth map[string]contract.Auth // by tool
}

func newSecretFiles(m *manifests, b contract.Bundle) secretFiles {
	s := secretFiles{m: m, auth: map[string]contract.Auth{}}
	for _, t := range b.Tools {
		s.auth[t.Tool.Name] = t.Auth
	}
	if b.Agent != nil {
		s.auth[b.Agent.Model.Tool] = b.Agent.Model.Auth
	}
	return s
}

// Credential implements the HTTP backend's Credentials.
func (s secretFiles) Credential(tool string) ([]byte, error) {
	a, ok := s.auth[tool]
	if !ok {
		return nil, errors.New("no such tool")
	}
	if a.Type != contract.AuthSecretRef {
		return nil, errors.New("the token of a ServiceAccount needs a cluster")
	}
	for _, ns := range []string{s.m.run.Namespace, ""} {
		if v, ok := s.m.secrets[ns+"/"+a.SecretName][a.SecretKey]; ok {
			return v, nil
		}
	}
	return nil, fmt.Errorf("no file holds the Secret %s with the key %s", a.SecretName, a.SecretKey)
}
