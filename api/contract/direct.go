package contract

import (
	"fmt"
	"slices"
)

// EligibleDirect decides which of the tools asked for the model of one run may call
// itself. The grant must be usable by the run, of any kind but Model, and give what
// the tool asks for; profile, codeAct and approval are of no matter. recipes are
// the tool names of the recipes that the model is offered, each with the Recipe's
// name: no tool may be called like one, nor like run_code.
func EligibleDirect(s Subject, grants []Grant, asked []string, recipes map[string]string) Projection {
	var out Projection
	names := slices.Clone(asked)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		g, rule, why := judgeDirect(s, grants, name, recipes)
		if rule != "" {
			out.Refused = append(out.Refused, Refusal{Name: name, Rule: rule, Message: why})
			continue
		}
		out.Tools = append(out.Tools, g)
	}
	return out
}

func judgeDirect(s Subject, grants []Grant, name string, recipes map[string]string) (Grant, Rule, string) {
	g, why := usable(s, grants, func(g Grant) bool { return g.Tool.Name == name },
		fmt.Sprintf("no ToolGrant of this namespace, and none that another one offers to it, declares a tool named %q", name))
	if why != "" {
		return g, RuleGrant, why
	}
	of := g.seenFrom(s.Namespace)
	if g.Tool.Defaulted().Kind == KindModel {
		return g, RuleKind, fmt.Sprintf("ToolGrant %s gives a tool of kind %s, and a model is no tool", of, KindModel)
	}
	for _, c := range g.Tool.Capabilities {
		if !slices.Contains(g.Authority.Capabilities, c) {
			return g, RuleCapabilities, fmt.Sprintf("it asks for the capability %q, which ToolGrant %s does not grant; add it to spec.grant.capabilities", c, of)
		}
	}
	if name == RunCodeTool {
		return g, RuleHardDeny, "the name belongs to the runtime; give the tool another name"
	}
	if recipe, called := recipes[name]; called {
		return g, RuleHardDeny, fmt.Sprintf("Recipe %s, which the model is offered, is called the same; rename one of the two", recipe)
	}
	return g, "", ""
}
