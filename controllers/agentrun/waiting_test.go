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

const (
	echo    = "function main(input) { return input }"
	calling = "function main(input) { return tools.call('search', input) }"
)

func sweep() *builders.Recipe { return builders.MakeRecipe("sweep", calling, "search").Ready("", "") }

func search() *builders.Grant { return builders.MakeGrant("search", "search").Ready("", "") }

func labels(k, v string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{k: v}}
}

func recipeRun() *builders.Run { return builders.MakeRun("r").Recipe("sweep").Input(`{}`) }

// waitingSince gives a run the status of one that has waited since t.
func waitingSince(r *builders.Run, t time.Time) *builders.Run {
	o := r.Obj()
	d, _ := o.ExecutionDigest()
	start := metav1.NewTime(t)
	return r.Status(v1alpha1.AgentRunStatus{ExecutionGeneration: 1, ExecutionDigest: d, StartTime: &start})
}

func TestDecideBeforeLaunch(t *testing.T) {
	code := func(src string, tools ...string) *builders.Run { return builders.MakeRun("r").Code(src, tools...) }
	tests := map[string]struct {
		run      *builders.Run
		recipe   *builders.Recipe
		beside   *builders.Recipe // another recipe of the namespace
		grants   []*builders.Grant
		operator func(*settings.Operator)

		wantVerb    agentrun.Verb
		wantReason  contract.Reason // of the wait or of the end
		wantMessage string
		wantRequeue time.Duration // 0: not looked at
	}{
		"code without tools is launched at the first look": {run: code(echo), wantVerb: agentrun.VerbLaunch},
		"code with a granted tool": {
			run: code(calling, "search"), grants: []*builders.Grant{search()}, wantVerb: agentrun.VerbLaunch,
		},
		"a recipe that is Ready": {
			run: recipeRun(), recipe: sweep(), grants: []*builders.Grant{search()}, wantVerb: agentrun.VerbLaunch,
		},
		"a recipe that only lacked a grant which is here now": {
			run: recipeRun(), recipe: sweep().Ready("ToolsNotGranted", "old news"), grants: []*builders.Grant{search()}, wantVerb: agentrun.VerbLaunch,
		},

		"a missing recipe is waited for": {
			run: recipeRun(), wantVerb: agentrun.VerbWait, wantReason: contract.ReasonRecipeNotFound,
			wantMessage: "no Recipe sweep", wantRequeue: time.Minute,
		},
		"until the start deadline": {
			run: waitingSince(recipeRun(), now.Add(-time.Minute)), wantVerb: agentrun.VerbSettle,
			wantReason: contract.ReasonRecipeNotFound, wantMessage: "waited 1m0s",
		},
		"the wait that is left": {
			run: waitingSince(recipeRun(), now.Add(-20*time.Second)), wantVerb: agentrun.VerbWait,
			wantReason: contract.ReasonRecipeNotFound, wantRequeue: 40 * time.Second,
		},
		"a start deadline of zero waits for nothing": {
			run: recipeRun().StartDeadline(0), wantVerb: agentrun.VerbSettle, wantReason: contract.ReasonRecipeNotFound,
		},
		"a recipe that nobody has judged yet": {
			run: recipeRun(), recipe: builders.MakeRecipe("sweep", calling, "search"), grants: []*builders.Grant{search()},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonRecipeNotReady, wantMessage: "not been checked",
		},
		"a verdict about an older generation is none": {
			run: recipeRun(), recipe: sweep().Generation(2), grants: []*builders.Grant{search()},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonRecipeNotReady, wantMessage: "not been checked",
		},
		"a recipe that is refused, with its own reason": {
			run: recipeRun(), recipe: sweep().Ready("DigestMismatch", "other bytes"), grants: []*builders.Grant{search()},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonRecipeNotReady, wantMessage: "DigestMismatch: other bytes",
		},

		"a missing grant is waited for, by tool and rule": {
			run: recipeRun(), recipe: sweep().Ready("ToolsNotGranted", "no grant"), wantVerb: agentrun.VerbWait,
			wantReason: contract.ReasonToolsNotGranted, wantMessage: "search (rule Grant): no ToolGrant",
		},
		"a grant that is not Ready": {
			run: code(calling, "search"), grants: []*builders.Grant{builders.MakeGrant("search", "search")},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted, wantMessage: "not Ready",
		},
		"a grant that has expired": {
			run: code(calling, "search"), grants: []*builders.Grant{search().NotAfter(now.Add(-time.Second))},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted, wantMessage: "expired",
		},
		"a grant for other labels": {
			run:      code(calling, "search").Label("tier", "web"),
			grants:   []*builders.Grant{search().Selector(metav1.LabelSelector{MatchLabels: map[string]string{"tier": "batch"}})},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted, wantMessage: "labels",
		},
		"a name that the operator denies, after the wait": {
			run:      waitingSince(code(echo, "delegate"), now.Add(-time.Hour)),
			grants:   []*builders.Grant{builders.MakeGrant("d", "delegate").Ready("", "")},
			wantVerb: agentrun.VerbSettle, wantReason: contract.ReasonToolsNotGranted, wantMessage: "rule HardDeny",
		},

		"a grant that needs approvals, by tool and rule": {
			run: code(calling, "search"), grants: []*builders.Grant{search().Approval(contract.ApprovalRequired)},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted, wantMessage: "search (rule Approval): ToolGrant search",
		},
		"a grant of another namespace": {
			run: code(calling, "search"), grants: []*builders.Grant{search().In("team-b")},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted, wantMessage: "no ToolGrant",
		},
		"a grant that another namespace offers": {
			run: code(calling, "search"), grants: []*builders.Grant{search().In("team-b").Allowed()}, wantVerb: agentrun.VerbLaunch,
		},
		"a grant that is offered to this namespace by its labels": {
			run: code(calling, "search"), grants: []*builders.Grant{search().In("team-b").AllowedBy(labels("env", "dev"))}, wantVerb: agentrun.VerbLaunch,
		},
		"a grant that is offered to others": {
			run: code(calling, "search").Label("env", "prod"), grants: []*builders.Grant{search().In("team-b").AllowedBy(labels("env", "prod"))},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted, wantMessage: "no ToolGrant",
		},
		"a grant here and one that is offered": {
			run: code(calling, "search"), grants: []*builders.Grant{search(), search().In("team-b").Allowed()},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted, wantMessage: "ambiguous: ToolGrants search and team-b/search",
		},
		"a tool that a recipe is called like": {
			run: code(calling, "search"), beside: builders.MakeRecipe("other", echo).ToolName("search"), grants: []*builders.Grant{search()},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted, wantMessage: "search (rule HardDeny): Recipe other",
		},

		"a syntax error does not wait": {
			run: code("function main( {"), wantVerb: agentrun.VerbSettle, wantReason: contract.ReasonSyntaxError, wantMessage: "main.js:1:",
		},
		"a forbidden construct": {
			run: code("function main(x) {\n  return eval(x);\n}"), wantVerb: agentrun.VerbSettle,
			wantReason: contract.ReasonProhibited, wantMessage: "main.js:2:",
		},
		"no main": {run: code("var x = 1"), wantVerb: agentrun.VerbSettle, wantReason: contract.ReasonJavaScriptError},
		"a source above the run's own limit": {
			run: code(echo).Limits(contract.Limits{SourceBytes: 10}), wantVerb: agentrun.VerbSettle, wantReason: contract.ReasonSourceTooLarge,
		},
		"a recipe's source above the run's limit": {
			run: recipeRun().Limits(contract.Limits{SourceBytes: 10}), recipe: sweep(), grants: []*builders.Grant{search()},
			wantVerb: agentrun.VerbSettle, wantReason: contract.ReasonSourceTooLarge, wantMessage: "Recipe sweep",
		},
		"an input that breaks the recipe's schema does not wait for grants": {
			run: recipeRun().Input(`{"n":"x"}`), recipe: sweep().InputSchema(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
			wantVerb: agentrun.VerbSettle, wantReason: contract.ReasonInvalidInput, wantMessage: "/n",
		},
		"no input where the recipe wants an object": {
			run: builders.MakeRun("r").Recipe("sweep"), recipe: sweep(), grants: []*builders.Grant{search()},
			wantVerb: agentrun.VerbSettle, wantReason: contract.ReasonInvalidInput, wantMessage: "rule type",
		},
		"an input of exactly the limit": {
			run: code(echo).Input(`"` + strings.Repeat("x", 65534) + `"`), wantVerb: agentrun.VerbLaunch,
		},
		"an input of one byte more": {
			run: code(echo).Input(`"` + strings.Repeat("x", 65535) + `"`), wantVerb: agentrun.VerbSettle, wantReason: contract.ReasonInputTooLarge,
		},
		"an input that is no JSON": {
			run: code(echo).Input(`{"a":`), wantVerb: agentrun.VerbSettle, wantReason: contract.ReasonInvalidInput,
		},
		"limits above the ceilings": {
			run: code(echo).Limits(contract.Limits{WallClockMs: 60000}), wantVerb: agentrun.VerbSettle, wantReason: contract.ReasonLimitsTooHigh,
		},
		"a bundle that fits no ConfigMap": {
			run: recipeRun(), recipe: builders.MakeRecipe("sweep", echo, "a", "b", "c", "d").Ready("", ""), grants: large("a", "b", "c", "d"),
			wantVerb: agentrun.VerbSettle, wantReason: contract.ReasonBundleTooLarge,
		},

		"an input that nobody may allow, without its recipe": {
			run:      builders.MakeRun("r").Recipe("sweep").Input(`"` + strings.Repeat("x", 1<<20) + `"`),
			wantVerb: agentrun.VerbSettle, wantReason: contract.ReasonInputTooLarge,
		},
		"cancelled before it started": {
			run: recipeRun().Cancel(), wantVerb: agentrun.VerbSettle, wantReason: contract.ReasonCancelled, wantMessage: "nothing was started",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			op := settings.Default()
			if tc.operator != nil {
				tc.operator(&op)
			}
			s := agentrun.Snapshot{Now: now, Run: tc.run.Obj(), NamespaceLabels: map[string]string{"env": "dev"}}
			if tc.recipe != nil {
				s.Recipe = tc.recipe.Obj()
			}
			if tc.beside != nil {
				s.Recipes = append(s.Recipes, *tc.beside.Obj())
			}
			for _, g := range tc.grants {
				s.Grants = append(s.Grants, *g.Obj())
			}
			p := agentrun.Decide(op, s)
			if p.Verb != tc.wantVerb {
				t.Fatalf("verb %q, want %q: %+v", p.Verb, tc.wantVerb, p.Outcome)
			}
			reason, message := p.Reason, p.Message
			if p.Outcome != nil {
				reason, message = p.Outcome.Reason, p.Outcome.Message
			}
			if tc.wantReason != "" && reason != string(tc.wantReason) {
				t.Errorf("reason %q (%s), want %q", reason, message, tc.wantReason)
			}
			if !strings.Contains(message, tc.wantMessage) {
				t.Errorf("message %q, want %q in it", message, tc.wantMessage)
			}
			if tc.wantRequeue != 0 && p.RequeueAfter != tc.wantRequeue {
				t.Errorf("requeue after %s, want %s", p.RequeueAfter, tc.wantRequeue)
			}
			if tc.wantVerb == agentrun.VerbLaunch && (p.Pin == nil || p.Generation != 1) {
				t.Errorf("launch of generation %d with pin %v", p.Generation, p.Pin)
			}
			checkSettled(t, op, s, p, agentrun.Done{Pinned: true, Launched: tc.wantVerb == agentrun.VerbLaunch})
		})
	}
}

// large makes grants whose declarations do not fit one bundle together.
func large(tools ...string) []*builders.Grant {
	var out []*builders.Grant
	for _, n := range tools {
		schema := fmt.Sprintf(`{"description":%q}`, strings.Repeat("x", contract.MaxSchemaBytes-100))
		out = append(out, builders.MakeGrant(n, n).Schemas(schema, "").Ready("", ""))
	}
	return out
}

// TestPinHolds holds what a pin contains, and that the same snapshot gives the
// same bytes.
func TestPinHolds(t *testing.T) {
	s := agentrun.Snapshot{
		Now:    now,
		Run:    recipeRun().Label("tier", "batch").Limits(contract.Limits{HeapBytes: 16 << 20}).Timeout(time.Minute).Obj(),
		Recipe: sweep().Limits(contract.Limits{HeapBytes: 8 << 20, WallClockMs: 1000}).Obj(),
		Grants: []v1alpha1.ToolGrant{*search().MaxCalls(3).Timeout(2 * time.Second).Obj(), *builders.MakeGrant("other", "other").Ready("", "").Obj()},
	}
	a, b := agentrun.Decide(settings.Default(), s), agentrun.Decide(settings.Default(), s)
	if a.Verb != agentrun.VerbLaunch {
		t.Fatalf("verb %q: %+v", a.Verb, a.Outcome)
	}
	if d := cmp.Diff(string(a.Pin.Raw), string(b.Pin.Raw)); d != "" {
		t.Errorf("two looks pin different bytes: %s", d)
	}
	got, err := contract.DecodeBundle(a.Pin.Raw, a.Pin.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if got.Limits.HeapBytes != 8<<20 || got.Limits.WallClockMs != 1000 || got.TimeoutMs != 60000 {
		t.Errorf("limits %+v, timeout %d ms", got.Limits, got.TimeoutMs)
	}
	if got.Labels != nil {
		t.Errorf("labels %v are pinned, though no tool has run.labels", got.Labels)
	}
	if len(got.Tools) != 1 || got.Tools[0].Tool.Name != "search" || got.Tools[0].MaxCalls != 3 || got.Tools[0].TimeoutMs != 2000 {
		t.Errorf("tools %+v", got.Tools)
	}
	s.Grants[0] = *search().Capabilities([]string{contract.CapabilityRunLabels}, []string{contract.CapabilityRunLabels}).Obj()
	if d := cmp.Diff(map[string]string{"tier": "batch"}, agentrun.Decide(settings.Default(), s).Pin.Bundle.Labels); d != "" {
		t.Errorf("labels: %s", d)
	}
}
