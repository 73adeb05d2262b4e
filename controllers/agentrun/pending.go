package agentrun

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// pending are the calls that wait for an answer, on the word of the pod that
// executes: of its report, if that verifies. A call whose answer is in the spec
// waits no more, even if the pod has yet to find it.
func (l *look) pending() []contract.Pending {
	e := l.execution()
	if e == nil || e.Result != "" || l.pod == nil || string(l.pod.UID) != e.Claim.PodUID || e.Verify(l.expected()) != nil {
		return nil
	}
	var out []contract.Pending
	for _, p := range e.Pending {
		if !slices.ContainsFunc(l.Run.Spec.Resolutions, func(r v1alpha1.Resolution) bool { return r.ID == p.ID }) {
			out = append(out, p)
		}
	}
	return out
}

// awaiting words what a run waits for; both are "" when it waits for nobody.
func awaiting(run *v1alpha1.AgentRun, pending []contract.Pending) (reason, message string) {
	if len(pending) == 0 {
		return "", ""
	}
	p := pending[0]
	if p.Kind == contract.PendingResult {
		reason = v1alpha1.ReasonAwaitingResult
		message = fmt.Sprintf("the call %s of tool %s waits for its result: give it with codeact approve %s %s -n %s --result JSON, or refuse with codeact deny",
			p.ID, p.Tool, run.Name, p.ID, run.Namespace)
	} else {
		reason = v1alpha1.ReasonAwaitingApproval
		message = fmt.Sprintf("the call %s of tool %s waits for an approval: look at it in status.pending, and answer with codeact approve %s %s -n %s, or codeact deny",
			p.ID, p.Tool, run.Name, p.ID, run.Namespace)
	}
	if n := len(pending) - 1; n > 0 {
		message += fmt.Sprintf("; %d more wait", n)
	}
	return reason, message
}

// tellPending makes an event of each call that begins to wait.
func (r *Reconciler) tellPending(before, after *v1alpha1.AgentRun) {
	for _, p := range after.Status.Pending {
		if slices.ContainsFunc(before.Status.Pending, func(b contract.Pending) bool { return b.ID == p.ID }) {
			continue
		}
		reason, message := awaiting(after, []contract.Pending{p})
		r.Events.Eventf(after, nil, corev1.EventTypeNormal, reason, "Await", "%s", contract.Truncate(message, maxEventBytes))
	}
}
