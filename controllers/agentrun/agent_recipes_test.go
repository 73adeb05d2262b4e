package agentrun_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// toolsRun is the run of an agent in the protocol Tools with some recipes.
func toolsRun(recipes []string, tools ...string) *builders.Run {
	return agentRun(tools...).AgentWith(func(a *v1alpha1.AgentSpec) { a.Protocol, a.Recipes = contract.ProtocolTools, recipes })
}

func one(name string, tools ...string) *builders.Recipe {
	return builders.MakeRecipe(name, "function main(){return 1}", tools...).Ready("", "")
}

func gives(name, tool string) *builders.Grant { return builders.MakeGrant(name, tool).Ready("", "") }

// numbered are so many tools, with a grant for each.
func numbered(prefix string, n int) (tools []string, grants []*builders.Grant) {
	for i := range n {
		tool := fmt.Sprintf("%s_%02d", prefix, i)
		tools = append(tools, tool)
		grants = append(grants, gives(strings.ReplaceAll(tool, "_", "-"), tool))
	}
	return tools, grants
}

// decideTools decides about a run of an agent with recipes.
func decideTools(op settings.Operator, run *builders.Run, recipes []*builders.Recipe, grants []*builders.Grant) (agentrun.Snapshot, agentrun.Plan) {
	s := agentrun.Snapshot{Now: now, Run: run.Obj(), Models: []v1alpha1.ToolGrant{*gpt().Obj()}}
	for _, r := range recipes {
		s.Recipes = append(s.Recipes, *r.Obj())
	}
	for _, g := range grants {
		s.Grants = append(s.Grants, *g.Obj())
	}
	return s, agentrun.Decide(op, s)
}

// TestRecipesOfAgents has what comes between an agent with recipes and its launch.
func TestRecipesOfAgents(t *testing.T) {
	forty, grantsOfForty := numbered("a", 40)
	more, grantsOfMore := numbered("b", 25)
	long := strings.Repeat("d", contract.MaxDescriptionBytes)
	wordy := func(n int) (names []string, recipes []*builders.Recipe) {
		for i := range n {
			r := one(fmt.Sprintf("r%02d", i))
			names, recipes = append(names, fmt.Sprintf("r%02d", i)), append(recipes, r.InputSchema(`{"type":"object","description":"`+long+`"}`))
		}
		return names, recipes
	}
	fits, fitting := wordy(15)
	tooMany, overflowing := wordy(16)
	tests := map[string]struct {
		run     *builders.Run
		recipes []*builders.Recipe
		grants  []*builders.Grant

		want        agentrun.Verb
		wantReason  contract.Reason
		wantMessage string
	}{
		"one grant for the run and its recipe": {
			run: toolsRun([]string{"sweep"}, "pay"), recipes: []*builders.Recipe{one("sweep", "pay")}, grants: []*builders.Grant{gives("pay", "pay")}, want: agentrun.VerbLaunch,
		},
		"a grant for the recipe beside one for all": {
			run: toolsRun([]string{"sweep"}, "pay"), recipes: []*builders.Recipe{one("sweep", "pay")},
			grants: []*builders.Grant{gives("pay", "pay"), gives("pay-sweep", "pay").Recipes("sweep")},
			want:   agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted, wantMessage: "Recipe sweep: pay (rule Grant): ambiguous: ToolGrants pay and pay-sweep both give it to this run",
		},
		"a grant for each of two recipes": {
			run: toolsRun([]string{"sweep", "mop"}), recipes: []*builders.Recipe{one("sweep", "pay"), one("mop", "pay")},
			grants: []*builders.Grant{gives("pay-mop", "pay").Recipes("mop"), gives("pay-sweep", "pay").Recipes("sweep")},
			want:   agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted,
			wantMessage: "pay: ToolGrant pay-sweep gives it to Recipe sweep, and ToolGrant pay-mop to another part of this run; a run has one grant of a tool",
		},
		"a grant that only the recipe has is not the run's": {
			run: toolsRun([]string{"sweep"}, "pay"), recipes: []*builders.Recipe{one("sweep", "pay")}, grants: []*builders.Grant{gives("pay", "pay").Recipes("sweep")},
			want: agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted, wantMessage: "pay (rule Grant): ToolGrant pay is only for the recipes sweep",
		},
		"a grant that only the run has is not its recipe's": {
			run: toolsRun([]string{"sweep"}, "pay"), recipes: []*builders.Recipe{one("sweep", "pay")}, grants: []*builders.Grant{gives("pay", "pay").Approval(contract.ApprovalRequired)},
			want: agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted, wantMessage: "Recipe sweep: pay (rule Approval)",
		},
		"two recipes of one tool name": {
			run: toolsRun([]string{"sweep", "mop"}), recipes: []*builders.Recipe{one("sweep").ToolName("clean"), one("mop").ToolName("clean")},
			want: agentrun.VerbWait, wantReason: contract.ReasonRecipeNotReady, wantMessage: `Recipes mop and sweep both have the tool name "clean"; rename one of the two`,
		},
		"a tool of the run that is called like an offered recipe": {
			run: toolsRun([]string{"sweep"}, "clean"), recipes: []*builders.Recipe{one("sweep").ToolName("clean")}, grants: []*builders.Grant{gives("clean", "clean")},
			want: agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted, wantMessage: "clean (rule HardDeny): Recipe sweep, which the model is offered, is called the same",
		},
		"a tool of the run that is called like a recipe that is not offered": {
			run: toolsRun([]string{"sweep"}, "clean"), recipes: []*builders.Recipe{one("sweep"), one("mop").ToolName("clean")}, grants: []*builders.Grant{gives("clean", "clean")},
			want: agentrun.VerbLaunch,
		},
		"a tool of a recipe that is called like another recipe": {
			run: toolsRun([]string{"sweep", "mop"}), recipes: []*builders.Recipe{one("sweep", "mop"), one("mop")}, grants: []*builders.Grant{gives("mop", "mop")},
			want: agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted, wantMessage: "Recipe sweep: mop (rule HardDeny): Recipe mop is called the same, and code never calls a recipe",
		},
		"a tool of a recipe that is called run_code": {
			run: toolsRun([]string{"sweep"}), recipes: []*builders.Recipe{one("sweep", contract.RunCodeTool)}, grants: []*builders.Grant{gives("code", contract.RunCodeTool)},
			want: agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted, wantMessage: "Recipe sweep: run_code (rule HardDeny)",
		},
		"a tool of a recipe that is called like the model": {
			run: toolsRun([]string{"sweep"}), recipes: []*builders.Recipe{one("sweep", "gpt-5")}, grants: []*builders.Grant{gives("other", "gpt-5")},
			want: agentrun.VerbWait, wantReason: contract.ReasonModelNotGranted, wantMessage: `declares the name "gpt-5", which a tool of this run has, too`,
		},
		"64 tools, and those of a recipe among them": {
			run: toolsRun([]string{"sweep"}, forty...), recipes: []*builders.Recipe{one("sweep", append([]string{"a_00"}, more[:24]...)...)},
			grants: append(grantsOfForty[:40:40], grantsOfMore[:24]...), want: agentrun.VerbLaunch,
		},
		"65 tools": {
			run: toolsRun([]string{"sweep"}, forty...), recipes: []*builders.Recipe{one("sweep", more...)}, grants: append(grantsOfForty[:40:40], grantsOfMore...),
			want: agentrun.VerbSettle, wantReason: contract.ReasonInvalidInput, wantMessage: "the run and its recipes name 65 tools, more than 64",
		},
		"as much as may be offered": {run: toolsRun(fits), recipes: fitting, want: agentrun.VerbLaunch},
		"more than may be offered": {
			run: toolsRun(tooMany), recipes: overflowing, want: agentrun.VerbSettle, wantReason: contract.ReasonInvalidInput, wantMessage: "of names, descriptions and schemas, more than 131072; name fewer of them",
		},
		"a source that is longer than the run allows": {
			run: toolsRun([]string{"sweep"}).Limits(contract.Limits{SourceBytes: 24}), recipes: []*builders.Recipe{one("sweep")},
			want: agentrun.VerbSettle, wantReason: contract.ReasonSourceTooLarge, wantMessage: "the source of Recipe sweep has 25 bytes, more than limits.sourceBytes, 24",
		},
		"a source of the most bytes": {run: toolsRun([]string{"sweep"}).Limits(contract.Limits{SourceBytes: 25}), recipes: []*builders.Recipe{one("sweep")}, want: agentrun.VerbLaunch},
		"a recipe of another namespace": {
			run: toolsRun([]string{"sweep"}), recipes: []*builders.Recipe{one("sweep").In("team-b")}, want: agentrun.VerbWait, wantReason: contract.ReasonRecipeNotFound,
		},
		"a recipe that was edited and not yet checked": {
			run: toolsRun([]string{"sweep"}), recipes: []*builders.Recipe{one("sweep").Generation(2)},
			want: agentrun.VerbWait, wantReason: contract.ReasonRecipeNotReady, wantMessage: "Recipe sweep has not been checked yet",
		},
		"a recipe without grants of its own verdict": {
			run: toolsRun([]string{"sweep"}), recipes: []*builders.Recipe{one("sweep", "pay").Ready("ToolsNotGranted", "x")}, grants: []*builders.Grant{gives("pay", "pay")}, want: agentrun.VerbLaunch,
		},
		"recipes mean nothing in protocol Code": {
			run: agentRun().AgentWith(func(a *v1alpha1.AgentSpec) { a.Recipes = []string{"gone"} }), want: agentrun.VerbLaunch,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			op := settings.Default()
			s, p := decideTools(op, tc.run, tc.recipes, tc.grants)
			reason, message := p.Reason, p.Message
			if p.Outcome != nil {
				reason, message = p.Outcome.Reason, p.Outcome.Message
			}
			if p.Verb != tc.want || tc.wantReason != "" && reason != string(tc.wantReason) || !strings.Contains(message, tc.wantMessage) {
				t.Fatalf("%s %s %q, want %s %s %q", p.Verb, reason, message, tc.want, tc.wantReason, tc.wantMessage)
			}
			checkSettled(t, op, s, p, agentrun.Done{Pinned: true, Launched: p.Verb == agentrun.VerbLaunch})
		})
	}
}

// TestRecipeIsPinnedOnce: what becomes of a recipe after the pin is seen by nobody.
func TestRecipeIsPinnedOnce(t *testing.T) {
	op := settings.Default()
	s, p := decideTools(op, toolsRun([]string{"sweep"}), []*builders.Recipe{one("sweep", "pay")}, []*builders.Grant{gives("pay", "pay").Recipes("sweep")})
	if p.Verb != agentrun.VerbLaunch {
		t.Fatalf("%s %s %+v", p.Verb, p.Message, p.Outcome)
	}
	for name, done := range map[string]agentrun.Done{"pinned": {Pinned: true}, "launched": {Pinned: true, Launched: true}} {
		t.Run(name, func(t *testing.T) {
			run := s.Run.DeepCopy()
			run.Status = agentrun.Settle(op, s, p, done)
			later := agentrun.Snapshot{
				Now: now.Add(time.Second), Run: run, Pin: p.Pin.ConfigMap(run), Recipes: []v1alpha1.Recipe{*one("sweep").Ready("SyntaxError", "x").Generation(2).Obj()},
			}
			if done.Launched {
				later.Pod = agentrun.NewPod(op.Runtime, run, p.Pin)
				later.Pod.UID, later.Pod.CreationTimestamp = "pod-1", metav1.NewTime(now)
			}
			got := agentrun.Decide(op, later)
			want := agentrun.VerbLaunch
			if done.Launched {
				want = agentrun.VerbWait
			}
			if got.Verb != want || got.Reason != v1alpha1.ReasonRunning || got.Pin == nil || got.Pin.Digest != p.Pin.Digest {
				t.Errorf("%s %s %q", got.Verb, got.Reason, got.Message)
			}
		})
	}
	r := p.Pin.Bundle.Agent.Recipes[0]
	want := []string{"sweep", "uid-of-sweep", "function main(){return 1}", "pay"}
	if d := cmp.Diff(want, []string{r.Name, r.UID, r.Source, strings.Join(r.Tools, " ")}); d != "" || r.SourceDigest != contract.Digest([]byte(r.Source)) {
		t.Error(d)
	}
}

// TestRecipeIsWaitedFor: a recipe that becomes not Ready before the pin is waited for
// until the startDeadline.
func TestRecipeIsWaitedFor(t *testing.T) {
	bad := one("sweep").Ready("SyntaxError", "line 1")
	for since, want := range map[time.Time]agentrun.Verb{now: agentrun.VerbWait, now.Add(-time.Minute): agentrun.VerbSettle} {
		s, p := decideTools(settings.Default(), waitingSince(toolsRun([]string{"sweep"}), since), []*builders.Recipe{bad}, nil)
		after := checkSettled(t, settings.Default(), s, p, agentrun.Done{})
		if p.Verb != want || p.Pin != nil || after.Status.Conditions == nil {
			t.Errorf("%s %s %+v", p.Verb, p.Message, p.Outcome)
		}
	}
}
