package agentrun

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// Snapshot is all that the decision sees. Absent objects are nil.
type Snapshot struct {
	// Now is the time of the look.
	Now time.Time
	// Run is the object.
	Run *v1alpha1.AgentRun
	// Recipe is the one that the run names.
	Recipe *v1alpha1.Recipe
	// NamespaceLabels are those of the run's namespace.
	NamespaceLabels map[string]string
	// NamespaceAnnotations are those of the run's namespace that may switch it on or
	// off. They are only there where the operator lets them.
	NamespaceAnnotations map[string]string
	// Recipes are Recipes of the run's namespace; only those that have the tool name
	// of a tool that the program asks for matter.
	Recipes []v1alpha1.Recipe
	// Grants are ToolGrants of the run's namespace, and those that others offer;
	// only those of tools that the program asks for matter.
	Grants []v1alpha1.ToolGrant
	// Models are ToolGrants of the same that are called like the agent's model.
	Models []v1alpha1.ToolGrant
	// Pod is the one with the derived name of the current generation.
	Pod *corev1.Pod
	// Pin is the ConfigMap with that name. It is only looked for when what it
	// must hold is known: from the run's status, or from its pod.
	Pin *corev1.ConfigMap
}

// Verb says what a Plan does. The zero Verb is invalid.
type Verb string

// The verbs.
const (
	// VerbIgnore leaves a run alone that has ended and is being deleted.
	VerbIgnore Verb = "Ignore"
	// VerbWait does nothing but say what is waited for.
	VerbWait Verb = "Wait"
	// VerbLaunch pins what the run may see, unless it is pinned, and creates the pod.
	VerbLaunch Verb = "Launch"
	// VerbStop deletes the pod.
	VerbStop Verb = "Stop"
	// VerbSettle writes down how the run ended.
	VerbSettle Verb = "Settle"
	// VerbSupersede closes this execution generation and opens the next.
	VerbSupersede Verb = "Supersede"
	// VerbRest leaves an ended run as it is.
	VerbRest Verb = "Rest"
	// VerbExpire deletes an ended run.
	VerbExpire Verb = "Expire"
)

// Plan is the decision.
type Plan struct {
	Verb Verb
	// Generation and ExecutionDigest are those of the execution that the plan is about.
	Generation      int64
	ExecutionDigest string
	// Pin is what is pinned, or is to be pinned by VerbLaunch; nil before that.
	Pin *Pin
	// Reason and Message say what is waited for (VerbWait, VerbStop, VerbLaunch).
	Reason, Message string
	// Pending are the calls that wait for somebody's answer (VerbWait).
	Pending []contract.Pending
	// Outcome is how the run ended (VerbSettle).
	Outcome *Outcome
	// Report is the execution's report when it is known better than from the
	// run's status: it came by the second way, or ends a superseded execution.
	Report *contract.Execution
	// RequeueAfter is when to look again, because of time alone; 0 is never.
	RequeueAfter time.Duration
}

// writes reports whether the plan changes more than the status.
func (p Plan) writes() bool {
	switch p.Verb {
	case VerbLaunch, VerbStop, VerbSupersede, VerbExpire:
		return true
	case VerbIgnore, VerbWait, VerbSettle, VerbRest:
		return false
	}
	return false
}

// Outcome is how a run ended.
type Outcome struct {
	// Succeeded is true only for a verified report that says so.
	Succeeded bool
	// Reason is the report's, or a contract.Reason of the run.
	Reason  string
	Message string
	// Line and Column point into the program, from 1; 0 is unknown.
	Line, Column int
	// Output is the result, empty when it was left out of the report; its digest
	// is there for every success.
	Output       json.RawMessage
	OutputDigest string
	// Media names the pictures that the tools left, whether the run succeeded or
	// not.
	Media *contract.MediaRef
}

// Done says how far act came.
type Done struct {
	// Pinned and Launched say that the ConfigMap and the pod are there.
	Pinned, Launched bool
	// Refused says why the API server refuses the pod for now; nil if it does not.
	Refused *Refusal
	// Fault ends the run: what was found in the way cannot be mended.
	Fault *contract.Fault
	// Stale says that the decision was made on an old look: nothing was done.
	Stale bool
}

// Refusal is a refusal of the pod that may be lifted without a change of the run.
type Refusal struct {
	// Reason is QuotaExceeded or v1alpha1.ReasonWaiting.
	Reason  string
	Message string
}
