package contract

import (
	"fmt"
	"slices"
)

// EligibleModel finds the grant of the one model that an agent may ask, by the
// name of the ToolGrant object, or says which rule refuses it: the grant must be
// usable by the run like a tool's, be of kind Model and give the credential that
// it asks for. Nothing else of a run leads to an endpoint of a model.
func EligibleModel(s Subject, grants []Grant, name string) (Grant, *Refusal) {
	refuse := func(r Rule, format string, args ...any) (Grant, *Refusal) {
		return Grant{}, &Refusal{Name: name, Rule: r, Message: fmt.Sprintf(format, args...)}
	}
	g, why := usable(s, grants, func(g Grant) bool { return g.Name == name },
		fmt.Sprintf("there is no ToolGrant %q in this namespace, and none that another one offers to it", name))
	if why != "" {
		return refuse(RuleGrant, "%s", why)
	}
	of := g.seenFrom(s.Namespace)
	if k := g.Tool.Defaulted().Kind; k != KindModel || g.Backend.Model == nil {
		return refuse(RuleKind, "ToolGrant %s gives a tool of kind %s, and an agent asks a Model; name one with spec.backend.model", of, k)
	}
	for _, c := range g.Tool.Capabilities {
		if !slices.Contains(g.Authority.Capabilities, c) {
			return refuse(RuleCapabilities, "it asks for the capability %q, which ToolGrant %s does not grant; add it to spec.grant.capabilities", c, of)
		}
	}
	return g, nil
}
