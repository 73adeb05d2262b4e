package toolgrant

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/status"
)

// Settle words the plan as the grant's status.
func Settle(s Snapshot, p Plan) v1alpha1.ToolGrantStatus {
	st := *s.Grant.Status.DeepCopy()
	st.ObservedGeneration = s.Grant.Generation
	st.DeclarationDigest = p.DeclarationDigest
	c := status.On(&st.Conditions, s.Grant.Generation, s.Now)
	if p.Schema != nil {
		c.Set(v1alpha1.ConditionSchemaValid, metav1.ConditionFalse, string(p.Schema.Reason), p.Schema.Message)
	} else {
		c.Set(v1alpha1.ConditionSchemaValid, metav1.ConditionTrue, v1alpha1.ReasonValid, "every schema compiles")
	}
	if p.Verb == VerbAccept {
		c.Set(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "runs may be pinned with this grant")
		c.Done()
		return st
	}
	c.Set(v1alpha1.ConditionReady, metav1.ConditionFalse, string(p.Fault.Reason), p.Fault.Message)
	c.Stuck(string(p.Fault.Reason), p.Fault.Message)
	return st
}
