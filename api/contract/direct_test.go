package contract

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEligibleDirect has each rule for a tool that a model calls itself, beside what
// is of no matter then.
func TestEligibleDirect(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		asked    string // x without it
		grants   []Grant
		recipes  map[string]string
		wantRule Rule // empty: it may be called
		wantSays string
	}{
		"a plain grant":          {grants: []Grant{grantOf("x", nil)}},
		"none":                   {wantRule: RuleGrant, wantSays: `declares a tool named "x"`},
		"another spelling":       {grants: []Grant{grantOf("X", nil)}, wantRule: RuleGrant},
		"a name with a blank":    {asked: "x ", grants: []Grant{grantOf("x", nil)}, wantRule: RuleGrant},
		"not Ready":              {grants: []Grant{grantOf("x", func(g *Grant) { g.Ready = false })}, wantRule: RuleGrant, wantSays: "is not Ready"},
		"at its last moment":     {grants: []Grant{grantOf("x", func(g *Grant) { g.Authority.NotAfter = now })}},
		"a moment after":         {grants: []Grant{grantOf("x", func(g *Grant) { g.Authority.NotAfter = now.Add(-1) })}, wantRule: RuleGrant, wantSays: "expired at"},
		"for a recipe":           {grants: []Grant{grantOf("x", func(g *Grant) { g.Authority.Recipes = []string{"sweep"} })}, wantRule: RuleGrant, wantSays: "only for the recipes sweep"},
		"for other labels":       {grants: []Grant{grantOf("x", func(g *Grant) { g.Authority.Selects = func(map[string]string) bool { return false } })}, wantRule: RuleGrant},
		"two that are Ready":     {grants: []Grant{grantOf("x", nil), grantOf("x", func(g *Grant) { g.Name = "other" })}, wantRule: RuleGrant, wantSays: "ToolGrants g-x and other both"},
		"one beside an expired":  {grants: []Grant{grantOf("x", nil), grantOf("x", func(g *Grant) { g.Authority.NotAfter = now.Add(-1) })}},
		"of another namespace":   {grants: []Grant{grantOf("x", func(g *Grant) { g.Namespace = "team-b" })}, wantRule: RuleGrant, wantSays: "no ToolGrant of this namespace"},
		"that another one gives": {grants: []Grant{grantOf("x", func(g *Grant) { g.Namespace, g.Authority.AllowsNamespace = "team-b", everyone })}},
		"of a kind that code may not call": {
			grants: []Grant{grantOf("x", func(g *Grant) { g.Tool.Kind = KindOrchestration })},
		},
		"of a model":              {grants: []Grant{grantOf("x", func(g *Grant) { g.Tool.Kind = KindModel })}, wantRule: RuleKind, wantSays: "a model is no tool"},
		"that denies code":        {grants: []Grant{grantOf("x", func(g *Grant) { g.Tool.CodeAct = CodeActDeny })}},
		"of another profile":      {grants: []Grant{grantOf("x", func(g *Grant) { g.Tool.Profile = ProfileLegacy })}},
		"that needs approvals":    {grants: []Grant{grantOf("x", func(g *Grant) { g.Authority.Approval = ApprovalRequired })}},
		"that is deferred":        {grants: []Grant{grantOf("x", func(g *Grant) { g.Tool.Deferred = true })}},
		"that lacks a capability": {grants: []Grant{grantOf("x", func(g *Grant) { g.Tool.Capabilities = []string{"auth"} })}, wantRule: RuleCapabilities, wantSays: `"auth"`},
		"that has its capabilities": {grants: []Grant{grantOf("x", func(g *Grant) {
			g.Tool.Capabilities, g.Authority.Capabilities = []string{"auth"}, []string{"run.labels", "auth"}
		})}},
		"that lacks one of two": {
			grants: []Grant{grantOf("x", func(g *Grant) {
				g.Tool.Capabilities, g.Authority.Capabilities = []string{"auth", "run.labels"}, []string{"auth"}
			})}, wantRule: RuleCapabilities, wantSays: `"run.labels"`,
		},
		"a model that lacks one, too": {
			grants: []Grant{grantOf("x", func(g *Grant) { g.Tool.Kind, g.Tool.Capabilities = KindModel, []string{"auth"} })}, wantRule: RuleKind,
		},
		"run_code":                                {asked: RunCodeTool, grants: []Grant{grantOf(RunCodeTool, nil)}, wantRule: RuleHardDeny, wantSays: "belongs to the runtime"},
		"run_code without a grant":                {asked: RunCodeTool, wantRule: RuleGrant},
		"run_code in other letters":               {asked: "Run_Code", grants: []Grant{grantOf("Run_Code", nil)}},
		"a name of sessions, which is the host's": {asked: "ask_user_question", grants: []Grant{grantOf("ask_user_question", nil)}},
		"called like a recipe that is offered":    {grants: []Grant{grantOf("x", nil)}, recipes: map[string]string{"x": "sweep"}, wantRule: RuleHardDeny, wantSays: "Recipe sweep, which the model is offered"},
		"called like its object":                  {grants: []Grant{grantOf("x", nil)}, recipes: map[string]string{"y": "x"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := Subject{Namespace: "team-a", NamespaceLabels: map[string]string{"env": "dev"}, Now: now}
			// What code may not call for a recipe's sake is no matter here.
			s.RecipeTools = map[string]string{"x": "not-offered"}
			asked := tc.asked
			if asked == "" {
				asked = "x"
			}
			got := EligibleDirect(s, tc.grants, []string{asked}, tc.recipes)
			if tc.wantRule == "" {
				if len(got.Tools) != 1 || got.Tools[0].Tool.Name != asked || got.Refused != nil {
					t.Errorf("refused: %+v", got.Refused)
				}
				return
			}
			if len(got.Tools) != 0 || len(got.Refused) != 1 {
				t.Fatalf("%+v", got)
			}
			if r := got.Refused[0]; r.Name != asked || r.Rule != tc.wantRule || !strings.Contains(r.Message, tc.wantSays) {
				t.Errorf("%+v, want %s with %q", r, tc.wantRule, tc.wantSays)
			}
		})
	}
}

// TestEligibleDirectIsSorted: the answer is in the order of the names, each once, and
// the arguments stay as they are.
func TestEligibleDirectIsSorted(t *testing.T) {
	asked := []string{"z", "b", "a", "b", "c", "z"}
	grants := []Grant{grantOf("c", nil), grantOf("b", nil), grantOf("a", nil)}
	p := EligibleDirect(Subject{Namespace: "team-a"}, grants, asked, nil)
	var names []string
	for _, g := range p.Tools {
		names = append(names, g.Tool.Name)
	}
	for _, r := range p.Refused {
		names = append(names, "no "+r.Name)
	}
	if d := cmp.Diff([]string{"a", "b", "c", "no z"}, names); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"z", "b", "a", "b", "c", "z"}, asked); d != "" {
		t.Error(d)
	}
	if p := EligibleDirect(Subject{}, grants, nil, nil); p.Tools != nil || p.Refused != nil {
		t.Errorf("nothing asked: %+v", p)
	}
}
