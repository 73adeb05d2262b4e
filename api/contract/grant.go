package contract

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Grant is one ToolGrant as the eligibility rules and the pin see it.
type Grant struct {
	// Namespace, Name, UID and Generation identify the ToolGrant object.
	Namespace, Name, UID string
	Generation           int64
	// Ready is the grant's own Ready condition.
	Ready bool
	// Tool is the declaration, with its defaults filled in.
	Tool Tool
	// Backend and Auth say how the tool is reached.
	Backend Backend
	Auth    Auth
	// Authority is what the grant gives.
	Authority Authority
}

// Authority is the part of a grant that gives, and bounds, the right to call.
type Authority struct {
	// Capabilities are given exactly; there are no patterns.
	Capabilities []string
	// Recipes limits the grant to runs of these Recipes; empty means every run.
	Recipes []string
	// Selects reports whether a run with these labels may use the grant; nil
	// means every run.
	Selects func(labels map[string]string) bool
	// AllowsNamespace reports whether runs of another namespace, with this name
	// and these labels, may use the grant; nil means none. Those of the grant's own
	// namespace always may.
	AllowsNamespace func(name string, labels map[string]string) bool
	// Approval says whether somebody must approve each call; empty is Never.
	Approval Approval
	// Constraints must hold for every call, ResultConstraints for every result.
	Constraints, ResultConstraints []Constraint
	// Retry says how often a call is tried; nil is once.
	Retry *Retry
	// MaxCallsPerRun bounds the calls of one run, from 1; 0 means no bound of its own.
	MaxCallsPerRun int64
	// MaxTokensPerRun bounds the tokens that one run may have of a model; 0 means no
	// bound of its own.
	MaxTokensPerRun int64
	// NotAfter ends the grant; zero means never.
	NotAfter time.Time
	// Timeout bounds one attempt of a call.
	Timeout time.Duration
}

// Subject is the run for which tools are sought.
type Subject struct {
	// Namespace is the run's, with its labels.
	Namespace       string
	NamespaceLabels map[string]string
	// Labels are the run's own.
	Labels map[string]string
	// Recipe is the name of the run's Recipe, or "".
	Recipe string
	// RecipeTools are the tool names of the Recipes of the namespace, each with the
	// Recipe's name. Code never calls a recipe, nor a tool that is called like one.
	RecipeTools map[string]string
	Now         time.Time
}

// Policy is the operator's part in eligibility.
type Policy struct {
	// CodeActDefault is what Inherit means: CodeActAllow or CodeActDeny.
	CodeActDefault CodeActPolicy
	// HardDeny names tools that code may never call, whatever a grant says.
	HardDeny []string
}

// Rule is one rule of eligibility. They are asked in the order of the constants.
type Rule string

// The rules of eligibility in their order.
const (
	RuleGrant        Rule = "Grant"
	RuleKind         Rule = "Kind"
	RuleCodeAct      Rule = "CodeAct"
	RuleProfile      Rule = "Profile"
	RuleCapabilities Rule = "Capabilities"
	RuleApproval     Rule = "Approval"
	RuleHardDeny     Rule = "HardDeny"
)

// Refusal says why one tool that was asked for is not in the projection.
type Refusal struct {
	Name string
	// Rule is the first rule that refused the tool.
	Rule Rule
	// Message says what to do about it.
	Message string
}

// Projection is what survives every rule, and what did not; both are sorted by
// the bytes of the name and hold nothing that was not asked for.
type Projection struct {
	Tools   []Grant
	Refused []Refusal
}

// Eligible decides which of the tools asked for one run may call from code. It
// is the only place where that is decided: pinning uses it, and a Recipe's
// status shows it.
func Eligible(s Subject, p Policy, grants []Grant, asked []string) Projection {
	var out Projection
	names := slices.Clone(asked)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		g, rule, why := judge(s, p, grants, name)
		if rule != "" {
			out.Refused = append(out.Refused, Refusal{Name: name, Rule: rule, Message: why})
			continue
		}
		out.Tools = append(out.Tools, g)
	}
	return out
}

func judge(s Subject, p Policy, grants []Grant, name string) (Grant, Rule, string) {
	none := fmt.Sprintf("no ToolGrant of this namespace, and none that another one offers to it, declares a tool named %q", name)
	recipe, called := s.RecipeTools[name]
	if called {
		none += fmt.Sprintf("; it is Recipe %s, and code never calls a recipe", recipe)
	}
	g, why := usable(s, grants, func(g Grant) bool { return g.Tool.Name == name }, none)
	if why != "" {
		return g, RuleGrant, why
	}
	t, of := g.Tool.Defaulted(), g.seenFrom(s.Namespace)
	switch {
	case t.Kind != KindFunction:
		return g, RuleKind, fmt.Sprintf("ToolGrant %s declares a tool of kind %s, and only a Function is callable from code", of, t.Kind)
	case t.CodeAct == CodeActDeny:
		return g, RuleCodeAct, fmt.Sprintf("ToolGrant %s declares it with codeAct: Deny", of)
	case t.CodeAct == CodeActInherit && p.CodeActDefault == CodeActDeny:
		return g, RuleCodeAct, fmt.Sprintf("ToolGrant %s declares it with codeAct: Inherit, and the operator's default is Deny; declare codeAct: Allow if code may call it", of)
	case t.Profile != ProfileStrict:
		return g, RuleProfile, fmt.Sprintf("ToolGrant %s declares it with the dependency profile %s, and only Strict is callable from code", of, t.Profile)
	}
	for _, c := range t.Capabilities {
		if !slices.Contains(g.Authority.Capabilities, c) {
			return g, RuleCapabilities, fmt.Sprintf("it asks for the capability %q, which ToolGrant %s does not grant; add it to spec.grant.capabilities", c, of)
		}
	}
	switch {
	case g.Authority.Approval != "" && g.Authority.Approval != ApprovalNever:
		return g, RuleApproval, fmt.Sprintf("ToolGrant %s has approval: %s, and nobody can approve a call from code", of, g.Authority.Approval)
	case slices.Contains(p.HardDeny, name):
		return g, RuleHardDeny, "the operator denies this name to code; give the tool another name"
	case called:
		return g, RuleHardDeny, fmt.Sprintf("Recipe %s is called the same, and code never calls a recipe; rename one of the two", recipe)
	}
	return g, "", ""
}

// seenFrom names the grant to users of a namespace: a grant of another one is
// named with it.
func (g Grant) seenFrom(namespace string) string {
	if g.Namespace == namespace {
		return g.Name
	}
	return g.Namespace + "/" + g.Name
}

// offeredTo reports whether runs of the subject's namespace may know the grant.
func (g Grant) offeredTo(s Subject) bool {
	return g.Namespace == s.Namespace ||
		g.Authority.AllowsNamespace != nil && g.Authority.AllowsNamespace(s.Namespace, s.NamespaceLabels)
}

// usable finds the one Ready grant that matches and that the run may use, or says
// why there is none: of several grants, the one that comes nearest, and missing
// where there are none at all. The order of the grants does not matter, since a
// cache has none. Of a grant that is not offered to the namespace nothing is told.
func usable(s Subject, grants []Grant, match func(Grant) bool, missing string) (Grant, string) {
	var found []Grant
	why, nearest, by := missing, tooFar, ""
	for _, g := range grants {
		if !match(g) || !g.offeredTo(s) {
			continue
		}
		of := g.seenFrom(s.Namespace)
		how, w := barred(s, g, of)
		if how == within {
			found = append(found, g)
		}
		if how > nearest || how == nearest && of < by {
			why, nearest, by = w, how, of
		}
	}
	switch len(found) {
	case 0:
		return Grant{}, why
	case 1:
		return found[0], ""
	}
	names := make([]string, 0, len(found))
	for _, g := range found {
		names = append(names, g.seenFrom(s.Namespace))
	}
	slices.Sort(names)
	return Grant{}, fmt.Sprintf("ambiguous: ToolGrants %s and %s both give it to this run; remove one, or limit one to other runs", names[0], names[1])
}

// How near a grant comes to a run that asks for its tool.
const (
	tooFar = iota
	notReady
	expired
	notForRun
	within
)

// barred says why the run may not use a grant of the right name, which is called
// of there.
func barred(s Subject, g Grant, of string) (how int, why string) {
	a := g.Authority
	switch {
	case !a.NotAfter.IsZero() && s.Now.After(a.NotAfter):
		return expired, fmt.Sprintf("ToolGrant %s expired at %s; move its spec.grant.notAfter to renew it", of, a.NotAfter.UTC().Format(time.RFC3339))
	case !g.Ready:
		return notReady, fmt.Sprintf("ToolGrant %s is not Ready; its conditions say why", of)
	case len(a.Recipes) > 0 && !slices.Contains(a.Recipes, s.Recipe):
		return notForRun, fmt.Sprintf("ToolGrant %s is only for the recipes %s", of, strings.Join(a.Recipes, ", "))
	case a.Selects != nil && !a.Selects(s.Labels):
		return notForRun, fmt.Sprintf("ToolGrant %s does not select the labels of this run", of)
	}
	return within, ""
}
