package toolgrant

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
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
		c.Set(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, ready(s.Grant))
		c.Done()
		return st
	}
	c.Set(v1alpha1.ConditionReady, metav1.ConditionFalse, string(p.Fault.Reason), p.Fault.Message)
	c.Stuck(string(p.Fault.Reason), p.Fault.Message)
	return st
}

// ready says what a grant is good for. One that is sound may still give nothing to
// code, and whoever applied it should not learn that from a run. The operator's own
// part in that is left out.
func ready(g *v1alpha1.ToolGrant) string {
	c := g.Contract()
	c.Ready, c.Authority.Recipes, c.Authority.Selects, c.Authority.NotAfter = true, nil, nil, time.Time{} // for any run
	got := contract.Eligible(contract.Subject{Namespace: g.Namespace}, contract.Policy{}, []contract.Grant{c}, []string{c.Tool.Name})
	if len(got.Refused) > 0 {
		r := got.Refused[0]
		return fmt.Sprintf("the grant is sound, but no run may call its tool from code (rule %s): %s", r.Rule, r.Message)
	}
	return "runs may be pinned with this grant"
}
