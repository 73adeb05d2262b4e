package agentrun

import (
	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/controllers/enable"
)

func (l *look) codeAct() enable.Verdict {
	return enable.CodeAct(l.op, l.Run.Namespace, l.NamespaceAnnotations)
}

func (l *look) recipes() enable.Verdict {
	return enable.Recipes(l.op, l.Run.Namespace, l.NamespaceAnnotations)
}

// disabled ends a run at once that may not start here: nobody waits for a switch.
// An agent that is offered recipes is refused as a whole where these are off, since
// it would not be the agent that was asked for without them.
func disabled(l *look) *Plan {
	v := l.codeAct()
	if v.Enabled && l.usesRecipes() {
		v = l.recipes()
	}
	if v.Enabled {
		return nil
	}
	return settle(failed(contract.ReasonDisabled, "%s. This run stays ended: submit it again once it is enabled", v.Why))
}

// usesRecipes reports whether the run is one of a Recipe, or its model is offered
// some.
func (l *look) usesRecipes() bool {
	a := l.Run.Spec.Agent
	return l.Run.Spec.Recipe != nil || a != nil && len(a.Recipes) > 0
}
