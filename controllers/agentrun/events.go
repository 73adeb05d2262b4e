package agentrun

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// tell reports, after a status write, what a person may want to be woken by: a
// failed end, and effects of an execution that a change of the spec cut off. A
// successful run makes no event. A call that waits for somebody does.
func (r *Reconciler) tell(before, after *v1alpha1.AgentRun) {
	if n := after.Status.ExecutionGeneration; n > 1 && n != before.Status.ExecutionGeneration {
		kind, message := corev1.EventTypeNormal, fmt.Sprintf("the spec has changed: execution generation %d begins", n)
		// An execution that was never claimed leaves the report of an older one there.
		if p := after.Status.Previous; p != nil && p.Generation == n-1 {
			if calls := contract.Ambiguous(p.Calls); len(calls) > 0 {
				kind, message = corev1.EventTypeWarning, message+"; of the one before, "+nameCalls(calls)
			}
		}
		r.Events.Eventf(after, nil, kind, string(contract.ReasonSuperseded), "Supersede", "%s", message)
	}
	r.tellCatalogue(before, after)
	r.tellPending(before, after)
	if isFinished(before) || !isFinished(after) {
		return
	}
	c := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionSucceeded)
	r.Metrics.ended(after, c.Reason, string(c.Status))
	if c.Status == metav1.ConditionFalse {
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, c.Reason, "Settle", "%s", contract.Truncate(c.Message, maxEventBytes))
	}
}

// maxEventBytes is what the API server takes as an event's note.
const maxEventBytes = 1024
