package toolgrant

import (
	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// checkConstraints compiles every expression as the runtime will. Their number and
// length are bounded, and so is what compiling one takes.
func checkConstraints(s Snapshot) *contract.Fault {
	a := s.Grant.Spec.Grant
	for _, x := range []struct {
		list   []v1alpha1.Constraint
		result bool
	}{{a.Constraints, false}, {a.ResultConstraints, true}} {
		list := make([]contract.Constraint, len(x.list))
		for i, c := range x.list {
			list[i] = contract.Constraint{Expression: c.Expression, Message: c.Message}
		}
		if _, err := contract.CompileConstraints(list, x.result); err != nil {
			return contract.Faultf(contract.ReasonConstraintInvalid, "spec.grant.%s", message(err))
		}
	}
	return nil
}
