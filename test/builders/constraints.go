package builders

import "github.com/codeact-dev/codeact-operator/api/v1alpha1"

// Constraints adds conditions that every call must meet.
func (b *Grant) Constraints(expressions ...string) *Grant {
	b.o.Spec.Grant.Constraints = append(b.o.Spec.Grant.Constraints, constraints(expressions)...)
	return b
}

// ResultConstraints adds conditions that every result must meet.
func (b *Grant) ResultConstraints(expressions ...string) *Grant {
	b.o.Spec.Grant.ResultConstraints = append(b.o.Spec.Grant.ResultConstraints, constraints(expressions)...)
	return b
}

func constraints(expressions []string) (out []v1alpha1.Constraint) {
	for _, e := range expressions {
		out = append(out, v1alpha1.Constraint{Expression: e})
	}
	return out
}
