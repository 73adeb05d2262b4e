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
	// MaxCallsPerRun bounds the calls of one run, from 1; 0 means no bound of its own.
	MaxCallsPerRun int64
	// NotAfter ends the grant; zero means never.
	NotAfter time.Time
	// Timeout bounds one call.
	Timeout time.Duration
}

// Subject is the run for which tools are sought.
type Subject struct {
	Namespace string
	Labels    map[string]string
	// Recipe is the name of the run's Recipe, or "".
	Recipe string
	Now    time.Time
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
	g, why := usable(s, grants, name)
	if why != "" {
		return g, RuleGrant, why
	}
	t := g.Tool.Defaulted()
	switch {
	case t.Kind != KindFunction:
		return g, RuleKind, fmt.Sprintf("a tool of kind %s is never callable from code", t.Kind)
	case t.CodeAct == CodeActDeny:
		return g, RuleCodeAct, "its declaration says codeAct: Deny"
	case t.CodeAct == CodeActInherit && p.CodeActDefault == CodeActDeny:
		return g, RuleCodeAct, "its declaration says codeAct: Inherit and the operator's default is Deny"
	case t.Profile != ProfileStrict:
		return g, RuleProfile, fmt.Sprintf("its dependency profile is %s; only Strict is callable from code", t.Profile)
	}
	for _, c := range t.Capabilities {
		if !slices.Contains(g.Authority.Capabilities, c) {
			return g, RuleCapabilities, fmt.Sprintf("it asks for the capability %q, which ToolGrant %s does not grant", c, g.Name)
		}
	}
	if slices.Contains(p.HardDeny, name) {
		return g, RuleHardDeny, "the operator denies this name to code"
	}
	return g, "", ""
}

// usable finds the one Ready grant of exactly this name that the run may use,
// or says why there is none: of several grants, the one that comes nearest. The
// order of the grants does not matter, since a cache has none.
func usable(s Subject, grants []Grant, name string) (Grant, string) {
	var found []Grant
	why, nearest, by := fmt.Sprintf("no ToolGrant of this namespace declares a tool named %q", name), tooFar, ""
	for _, g := range grants {
		if g.Tool.Name != name || g.Namespace != s.Namespace {
			continue
		}
		how, w := barred(s, g)
		if how == within {
			found = append(found, g)
		}
		if how > nearest || how == nearest && g.Name < by {
			why, nearest, by = w, how, g.Name
		}
	}
	switch len(found) {
	case 0:
		return Grant{}, why
	case 1:
		return found[0], ""
	default:
		slices.SortFunc(found, func(a, b Grant) int { return strings.Compare(a.Name, b.Name) })
		return Grant{}, fmt.Sprintf("ambiguous: ToolGrants %s and %s both declare it; remove one", found[0].Name, found[1].Name)
	}
}

// How near a grant comes to a run that asks for its tool.
const (
	tooFar = iota
	notReady
	expired
	notForRun
	within
)

// barred says why the run may not use a grant of the right name.
func barred(s Subject, g Grant) (how int, why string) {
	a := g.Authority
	switch {
	case !a.NotAfter.IsZero() && s.Now.After(a.NotAfter):
		return expired, fmt.Sprintf("ToolGrant %s expired at %s", g.Name, a.NotAfter.UTC().Format(time.RFC3339))
	case !g.Ready:
		return notReady, fmt.Sprintf("ToolGrant %s is not Ready", g.Name)
	case len(a.Recipes) > 0 && !slices.Contains(a.Recipes, s.Recipe):
		return notForRun, fmt.Sprintf("ToolGrant %s is only for the recipes %s", g.Name, strings.Join(a.Recipes, ", "))
	case a.Selects != nil && !a.Selects(s.Labels):
		return notForRun, fmt.Sprintf("ToolGrant %s does not select the labels of this run", g.Name)
	}
	return within, ""
}
