package agentrun_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// TestPinOfNativeTools says who may call which tool of an agent in the protocol Tools.
func TestPinOfNativeTools(t *testing.T) {
	sweep := func() *builders.Recipe {
		return builders.MakeRecipe("sweep", "function main(){return 1}", "hidden").Ready("", "")
	}
	grant := func(tool string) *builders.Grant { return builders.MakeGrant("g-"+tool, tool).Ready("", "") }
	tests := map[string]struct {
		tools   []string
		recipes []*builders.Recipe
		grants  []*builders.Grant
		want    []string // or else the message
		reason  contract.Reason
		message string
	}{
		"all kinds": {
			tools: []string{"search", "wire"}, recipes: []*builders.Recipe{sweep()},
			grants: []*builders.Grant{search(), grant("wire").Approval(contract.ApprovalRequired), grant("hidden").Recipes("sweep")},
			want:   []string{"hidden false true ", "search true false ", "wire true true Required"},
		},
		"no recipe":       {reason: contract.ReasonRecipeNotFound, message: "there is no Recipe sweep"},
		"an unready one":  {recipes: []*builders.Recipe{sweep().Ready("SyntaxError", "x")}, reason: contract.ReasonRecipeNotReady, message: "Recipe sweep is not Ready"},
		"without a grant": {recipes: []*builders.Recipe{sweep()}, reason: contract.ReasonToolsNotGranted, message: "Recipe sweep: hidden (rule Grant)"},
		"called like it":  {tools: []string{"sweep"}, recipes: []*builders.Recipe{sweep()}, grants: []*builders.Grant{grant("hidden"), grant("sweep")}, reason: contract.ReasonToolsNotGranted, message: "sweep (rule HardDeny)"},
		"a model as tool": {tools: []string{"gpt-5"}, recipes: []*builders.Recipe{sweep()}, grants: []*builders.Grant{grant("hidden"), gpt()}, reason: contract.ReasonToolsNotGranted, message: "gpt-5 (rule Kind)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run := agentRun(tc.tools...).AgentWith(func(a *v1alpha1.AgentSpec) { a.Protocol, a.Recipes = contract.ProtocolTools, []string{"sweep"} })
			s := agentrun.Snapshot{Now: now, Run: run.Obj(), Models: []v1alpha1.ToolGrant{*gpt().Obj()}}
			for _, r := range tc.recipes {
				s.Recipes = append(s.Recipes, *r.Obj())
			}
			for _, g := range tc.grants {
				s.Grants = append(s.Grants, *g.Obj())
			}
			p := agentrun.Decide(settings.Default(), s)
			if tc.want == nil {
				if p.Verb != agentrun.VerbWait || p.Reason != string(tc.reason) || !strings.Contains(p.Message, tc.message) {
					t.Errorf("%s %s %q", p.Verb, p.Reason, p.Message)
				}
				return
			}
			if p.Verb != agentrun.VerbLaunch {
				t.Fatalf("%s %s %+v", p.Verb, p.Message, p.Outcome)
			}
			var got []string
			for _, x := range p.Pin.Bundle.Tools {
				got = append(got, fmt.Sprintf("%s %t %t %s", x.Tool.Name, x.Direct, x.NotFromCode, x.Approval))
			}
			if d := cmp.Diff(tc.want, got); d != "" || len(p.Pin.Bundle.Agent.Recipes) != 1 {
				t.Error(d)
			}
		})
	}
}
