package contract

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func grantOf(tool string, edit func(*Grant)) Grant {
	g := Grant{Namespace: "team-a", Name: "g-" + tool, Ready: true, Tool: Tool{Name: tool}}
	if edit != nil {
		edit(&g)
	}
	return g
}

func everyone(string, map[string]string) bool { return true }

func developers(_ string, l map[string]string) bool { return l["env"] == "dev" }

func TestEligible(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		grants   []Grant
		policy   Policy
		subject  func(*Subject)
		wantRule Rule // empty: in the projection
	}{
		"a plain grant":             {grants: []Grant{grantOf("x", nil)}},
		"none":                      {wantRule: RuleGrant},
		"another spelling":          {grants: []Grant{grantOf("X", nil)}, wantRule: RuleGrant},
		"not Ready":                 {grants: []Grant{grantOf("x", func(g *Grant) { g.Ready = false })}, wantRule: RuleGrant},
		"of another namespace":      {grants: []Grant{grantOf("x", func(g *Grant) { g.Namespace = "team-b" })}, wantRule: RuleGrant},
		"at its last moment":        {grants: []Grant{grantOf("x", func(g *Grant) { g.Authority.NotAfter = now })}},
		"a moment after":            {grants: []Grant{grantOf("x", func(g *Grant) { g.Authority.NotAfter = now.Add(-1) })}, wantRule: RuleGrant},
		"for this recipe":           {grants: []Grant{grantOf("x", func(g *Grant) { g.Authority.Recipes = []string{"sweep"} })}, subject: func(s *Subject) { s.Recipe = "sweep" }},
		"for a recipe, without one": {grants: []Grant{grantOf("x", func(g *Grant) { g.Authority.Recipes = []string{"sweep"} })}, wantRule: RuleGrant},
		"for other labels": {
			grants: []Grant{grantOf("x", func(g *Grant) {
				g.Authority.Selects = func(l map[string]string) bool { return l["tier"] == "batch" }
			})},
			wantRule: RuleGrant,
		},
		"two that are Ready": {
			grants:   []Grant{grantOf("x", nil), grantOf("x", func(g *Grant) { g.Name = "other" })},
			wantRule: RuleGrant,
		},
		"two of which one is Ready": {
			grants: []Grant{grantOf("x", nil), grantOf("x", func(g *Grant) { g.Ready = false })},
		},
		"of another kind":          {grants: []Grant{grantOf("x", func(g *Grant) { g.Tool.Kind = KindOutput })}, wantRule: RuleKind},
		"that denies":              {grants: []Grant{grantOf("x", func(g *Grant) { g.Tool.CodeAct = CodeActDeny })}, wantRule: RuleCodeAct},
		"where the default denies": {grants: []Grant{grantOf("x", nil)}, policy: Policy{CodeActDefault: CodeActDeny}, wantRule: RuleCodeAct},
		"that allows against it":   {grants: []Grant{grantOf("x", func(g *Grant) { g.Tool.CodeAct = CodeActAllow })}, policy: Policy{CodeActDefault: CodeActDeny}},
		"of another profile":       {grants: []Grant{grantOf("x", func(g *Grant) { g.Tool.Profile = ProfileLegacy })}, wantRule: RuleProfile},
		"that lacks a capability":  {grants: []Grant{grantOf("x", func(g *Grant) { g.Tool.Capabilities = []string{"auth"} })}, wantRule: RuleCapabilities},
		"on the hard-deny list":    {grants: []Grant{grantOf("x", nil)}, policy: Policy{HardDeny: []string{"x"}}, wantRule: RuleHardDeny},
		"that needs approvals":     {grants: []Grant{grantOf("x", func(g *Grant) { g.Authority.Approval = ApprovalRequired })}, wantRule: RuleApproval},
		"that never needs one":     {grants: []Grant{grantOf("x", func(g *Grant) { g.Authority.Approval = ApprovalNever })}},
		"that needs approvals and is denied": {
			grants: []Grant{grantOf("x", func(g *Grant) { g.Authority.Approval = ApprovalRequired })},
			policy: Policy{HardDeny: []string{"x"}}, wantRule: RuleApproval,
		},
		"that lacks a capability and needs approvals": {
			grants: []Grant{grantOf("x", func(g *Grant) {
				g.Tool.Capabilities, g.Authority.Approval = []string{"auth"}, ApprovalRequired
			})},
			wantRule: RuleCapabilities,
		},
		"that a recipe is called like": {
			grants:  []Grant{grantOf("x", nil)},
			subject: func(s *Subject) { s.RecipeTools = map[string]string{"x": "sweep"} }, wantRule: RuleHardDeny,
		},
		"of a model": {grants: []Grant{grantOf("x", func(g *Grant) { g.Tool.Kind, g.Tool.CodeAct = KindModel, CodeActAllow })}, wantRule: RuleKind},
		"of another namespace that allows all": {
			grants: []Grant{grantOf("x", func(g *Grant) { g.Namespace, g.Authority.AllowsNamespace = "team-b", everyone })},
		},
		"of another namespace that allows this one by its labels": {
			grants: []Grant{grantOf("x", func(g *Grant) { g.Namespace, g.Authority.AllowsNamespace = "team-b", developers })},
		},
		"of another namespace that allows others": {
			grants:  []Grant{grantOf("x", func(g *Grant) { g.Namespace, g.Authority.AllowsNamespace = "team-b", developers })},
			subject: func(s *Subject) { s.NamespaceLabels = map[string]string{"env": "prod"} }, wantRule: RuleGrant,
		},
		"of the run's namespace that allows others only": {
			grants:  []Grant{grantOf("x", func(g *Grant) { g.Authority.AllowsNamespace = developers })},
			subject: func(s *Subject) { s.NamespaceLabels = nil },
		},
		"two, of which one is of a namespace that does not allow this one": {
			grants: []Grant{grantOf("x", nil), grantOf("x", func(g *Grant) { g.Namespace = "team-b" })},
		},
		"two, of which one is offered": {
			grants:   []Grant{grantOf("x", nil), grantOf("x", func(g *Grant) { g.Namespace, g.Authority.AllowsNamespace = "team-b", everyone })},
			wantRule: RuleGrant,
		},
		"with all that can be wrong": {
			grants: []Grant{grantOf("x", func(g *Grant) {
				g.Tool.CodeAct, g.Tool.Profile, g.Tool.Capabilities = CodeActDeny, ProfileLegacy, []string{"auth"}
			})},
			policy: Policy{HardDeny: []string{"x"}}, wantRule: RuleCodeAct,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := Subject{Namespace: "team-a", NamespaceLabels: map[string]string{"env": "dev"}, Now: now}
			if tc.subject != nil {
				tc.subject(&s)
			}
			p := Eligible(s, tc.policy, tc.grants, []string{"x"})
			if tc.wantRule == "" {
				if len(p.Tools) != 1 || len(p.Refused) != 0 {
					t.Fatalf("projection %+v, want the tool", p)
				}
				return
			}
			if len(p.Tools) != 0 || len(p.Refused) != 1 {
				t.Fatalf("projection %+v, want a refusal", p)
			}
			if r := p.Refused[0]; r.Name != "x" || r.Rule != tc.wantRule || r.Message == "" {
				t.Errorf("refusal %+v, want rule %s and a message", r, tc.wantRule)
			}
		})
	}
}

func TestEligibleHoldsOnlyWhatWasAsked(t *testing.T) {
	grants := []Grant{grantOf("z10", nil), grantOf("z9", nil), grantOf("Z", nil), grantOf("unasked", nil)}
	p := Eligible(Subject{Namespace: "team-a"}, Policy{}, grants, []string{"z9", "none", "Z", "z10", "z9"})
	var got []string
	for _, g := range p.Tools {
		got = append(got, g.Tool.Name)
	}
	if d := cmp.Diff([]string{"Z", "z10", "z9"}, got); d != "" {
		t.Errorf("tools: %s", d)
	}
	if len(p.Refused) != 1 || p.Refused[0].Name != "none" {
		t.Errorf("refused %+v", p.Refused)
	}
}

// TestEligibleNamesTheNearest holds the message of a refusal to one, whatever
// the order of the grants is: a message that changes is a status write.
func TestEligibleNamesTheNearest(t *testing.T) {
	named := func(name string, edit func(*Grant)) Grant {
		return grantOf("x", func(g *Grant) { g.Name = name; edit(g) })
	}
	unready := func(g *Grant) { g.Ready = false }
	other := func(g *Grant) { g.Authority.Recipes = []string{"sweep"} }
	old := func(g *Grant) { g.Ready, g.Authority.NotAfter = false, time.Unix(1, 0) }
	ready := func(*Grant) {}
	offered := func(g *Grant) { g.Namespace, g.Authority.AllowsNamespace = "team-b", everyone }
	hidden := func(g *Grant) { g.Namespace, g.Ready = "team-b", false }
	tests := map[string]struct {
		a, b Grant
		want string
	}{
		"for another recipe and not Ready": {named("b", other), named("a", unready), "ToolGrant b is only for the recipes sweep"},
		"expired and not Ready":            {named("b", old), named("a", unready), "ToolGrant b expired at 1970-01-01T00:00:01Z; move its spec.grant.notAfter to renew it"},
		"for another recipe and expired":   {named("b", other), named("a", old), "ToolGrant b is only for the recipes sweep"},
		"two that are not Ready":           {named("b", unready), named("a", unready), "ToolGrant a is not Ready; its conditions say why"},
		"one here and one that is offered": {named("b", ready), named("a", offered), "ambiguous: ToolGrants b and team-b/a both give it to this run; remove one, or limit one to other runs"},
		"an offered one for other recipes": {named("b", unready), named("a", func(g *Grant) { offered(g); other(g) }), "ToolGrant team-b/a is only for the recipes sweep"},
		"one that is not offered":          {named("b", unready), named("a", hidden), "ToolGrant b is not Ready; its conditions say why"},
		"two that are Ready":               {named("b", ready), named("a", ready), "ambiguous: ToolGrants a and b both give it to this run; remove one, or limit one to other runs"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, grants := range [][]Grant{{tc.a, tc.b}, {tc.b, tc.a}} {
				p := Eligible(Subject{Namespace: "team-a", Now: time.Unix(100, 0)}, Policy{}, grants, []string{"x"})
				want := []Refusal{{Name: "x", Rule: RuleGrant, Message: tc.want}}
				if d := cmp.Diff(want, p.Refused); d != "" {
					t.Errorf("refusals of %s, %s (-want +got):\n%s", grants[0].Name, grants[1].Name, d)
				}
			}
		})
	}
}
