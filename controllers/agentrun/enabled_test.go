package agentrun_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// agentOf is an agent in protocol Tools that is offered these recipes.
func agentOf(recipes ...string) *builders.Run {
	return builders.MakeRun("r").Agent("gpt", "do it").AgentWith(func(a *v1alpha1.AgentSpec) {
		a.Protocol, a.Recipes = contract.ProtocolTools, recipes
	})
}

func TestDecideEnabled(t *testing.T) {
	type on map[string]string
	codeActOff := func(o *settings.Operator) { o.CodeAct.Enabled = false }
	recipesOff := func(o *settings.Operator) { o.Recipes.Enabled = false }
	override := func(o *settings.Operator) {
		o.CodeAct.AllowNamespaceOverride, o.Recipes.AllowNamespaceOverride = true, true
	}
	both := func(fs ...func(*settings.Operator)) func(*settings.Operator) {
		return func(o *settings.Operator) {
			for _, f := range fs {
				f(o)
			}
		}
	}
	code := func() *builders.Run { return builders.MakeRun("r").Code(echo) }
	byOperator, byNamespace := contract.Switch{Enabled: true, From: contract.LayerOperator}, contract.Switch{Enabled: true, From: contract.LayerNamespace}
	tests := map[string]struct {
		run         *builders.Run
		operator    func(*settings.Operator)
		annotations on
		absent      bool // neither recipe nor grants are there

		wantMessage              string // of Disabled; empty launches
		wantCodeAct, wantRecipes contract.Switch
	}{
		"on by default": {run: code(), wantCodeAct: byOperator, wantRecipes: byOperator},
		"an annotation that does not count": {
			run: code(), annotations: on{v1alpha1.AnnotationCodeActEnabled: "false"}, wantCodeAct: byOperator, wantRecipes: byOperator,
		},
		"code, off": {run: code(), operator: codeActOff, wantMessage: "codeAct is disabled by the operator"},
		"code, enabled by its namespace": {
			run: code(), operator: both(codeActOff, override), annotations: on{v1alpha1.AnnotationCodeActEnabled: "true"},
			wantCodeAct: byNamespace, wantRecipes: byOperator,
		},
		"code, disabled by its namespace": {
			run: code(), operator: override, annotations: on{v1alpha1.AnnotationCodeActEnabled: "false"},
			wantMessage: "codeAct is disabled by the annotation codeact.dev/codeact-enabled",
		},
		"code, a bad annotation": {
			run: code(), operator: override, annotations: on{v1alpha1.AnnotationCodeActEnabled: "on"},
			wantMessage: `codeAct is disabled because the annotation codeact.dev/codeact-enabled of Namespace team-a is "on"`,
		},
		"code needs no recipes": {
			run: code(), operator: recipesOff, wantCodeAct: byOperator, wantRecipes: contract.Switch{From: contract.LayerOperator},
		},
		"a recipe": {run: recipeRun(), wantCodeAct: byOperator, wantRecipes: byOperator},
		"a recipe, programs off": {
			run: recipeRun(), operator: codeActOff, wantMessage: "codeAct is disabled by the operator",
		},
		"a recipe, recipes off": {run: recipeRun(), operator: recipesOff, wantMessage: "recipes is disabled by the operator"},
		"a recipe, not enabled for programs by its namespace": {
			run: recipeRun(), operator: both(codeActOff, override), annotations: on{v1alpha1.AnnotationRecipesEnabled: "true"},
			wantMessage: "codeAct is disabled by the operator",
		},
		"a recipe, enabled by its namespace": {
			run: recipeRun(), operator: both(recipesOff, override), annotations: on{v1alpha1.AnnotationRecipesEnabled: "true"},
			wantCodeAct: byOperator, wantRecipes: byNamespace,
		},
		"a recipe that is not there, off: nothing is waited for": {
			run: recipeRun(), operator: recipesOff, absent: true, wantMessage: "recipes is disabled by the operator",
		},
		"an agent without recipes": {run: agentOf(), operator: recipesOff, wantCodeAct: byOperator, wantRecipes: contract.Switch{From: contract.LayerOperator}},
		"an agent, programs off":   {run: agentOf(), operator: codeActOff, absent: true, wantMessage: "codeAct is disabled by the operator"},
		"an agent with recipes":    {run: agentOf("sweep"), wantCodeAct: byOperator, wantRecipes: byOperator},
		"an agent with recipes, recipes off": {
			run: agentOf("sweep"), operator: recipesOff, absent: true, wantMessage: "recipes is disabled by the operator",
		},
		"a cancelled run is Cancelled": {run: code().Cancel(), operator: codeActOff, wantMessage: "nothing was started"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			op := settings.Default()
			if tc.operator != nil {
				tc.operator(&op)
			}
			s := agentrun.Snapshot{Now: now, Run: tc.run.Obj(), NamespaceAnnotations: tc.annotations}
			if !tc.absent {
				s.Recipe, s.Recipes = sweep().Obj(), []v1alpha1.Recipe{*sweep().Obj()}
				s.Grants, s.Models = []v1alpha1.ToolGrant{*search().Obj()}, []v1alpha1.ToolGrant{*gpt().Obj()}
			}
			if s.Run.Spec.Recipe == nil {
				s.Recipe = nil
			}
			p := agentrun.Decide(op, s)
			if tc.wantMessage != "" {
				if p.Verb != agentrun.VerbSettle || p.Pin != nil || !strings.Contains(p.Outcome.Message, tc.wantMessage) {
					t.Fatalf("verb %q, pin %v, outcome %+v, want %q", p.Verb, p.Pin, p.Outcome, tc.wantMessage)
				}
				if !s.Run.Spec.Cancel && p.Outcome.Reason != string(contract.ReasonDisabled) {
					t.Errorf("reason %s", p.Outcome.Reason)
				}
				checkSettled(t, op, s, p, agentrun.Done{})
				return
			}
			if p.Verb != agentrun.VerbLaunch {
				t.Fatalf("verb %q: %+v", p.Verb, p.Outcome)
			}
			b, err := contract.DecodeBundle(p.Pin.Raw, p.Pin.Digest)
			if err != nil {
				t.Fatal(err)
			}
			if f := b.CheckEnabled(); f != nil {
				t.Errorf("the runtime refuses the bundle: %v", f)
			}
			if d := cmp.Diff([]contract.Switch{tc.wantCodeAct, tc.wantRecipes}, []contract.Switch{b.CodeAct, b.Recipes}); d != "" {
				t.Errorf("bundle (-want +got): %s", d)
			}
			st := agentrun.Settle(op, s, p, agentrun.Done{Pinned: true, Launched: true})
			if d := cmp.Diff([]*contract.Switch{&tc.wantCodeAct, &tc.wantRecipes}, []*contract.Switch{st.Pinned.CodeAct, st.Pinned.Recipes}); d != "" {
				t.Errorf("status (-want +got): %s", d)
			}
		})
	}
}

// TestPinnedGoesOn: what was pinned is launched, relaunched and settled whatever the
// switches say since; a run that only waits is not.
func TestPinnedGoesOn(t *testing.T) {
	run := builders.MakeRun("r").Code(echo).Obj()
	on, off := settings.Default(), settings.Default()
	off.CodeAct.Enabled = false
	first := agentrun.Decide(on, agentrun.Snapshot{Now: now, Run: run})
	if first.Verb != agentrun.VerbLaunch {
		t.Fatalf("verb %q", first.Verb)
	}
	refused := agentrun.Done{Pinned: true, Refused: &agentrun.Refusal{Reason: string(contract.ReasonQuotaExceeded), Message: "quota"}}
	run.Status = agentrun.Settle(on, agentrun.Snapshot{Now: now, Run: run}, first, refused)
	again := agentrun.Decide(off, agentrun.Snapshot{Now: now, Run: run, Pin: first.Pin.ConfigMap(run)})
	if again.Verb != agentrun.VerbLaunch || again.Pin.Digest != first.Pin.Digest {
		t.Errorf("a pinned run that quota kept: verb %q, %+v", again.Verb, again.Outcome)
	}
	run.Status = agentrun.Settle(on, agentrun.Snapshot{Now: now, Run: run}, first, agentrun.Done{Pinned: true, Launched: true})
	lost := agentrun.Decide(off, agentrun.Snapshot{Now: now, Run: run, Pin: first.Pin.ConfigMap(run)})
	if lost.Verb != agentrun.VerbLaunch {
		t.Errorf("a pod that was lost before its claim: verb %q, %+v", lost.Verb, lost.Outcome)
	}

	waits := waitingSince(recipeRun(), now.Add(-1)).Obj()
	if p := agentrun.Decide(off, agentrun.Snapshot{Now: now, Run: waits}); p.Outcome == nil || p.Outcome.Reason != string(contract.ReasonDisabled) {
		t.Errorf("a run that waits: verb %q, %+v", p.Verb, p.Outcome)
	}
	ended := waits.DeepCopy()
	ended.Status = agentrun.Settle(off, agentrun.Snapshot{Now: now, Run: waits}, agentrun.Decide(off, agentrun.Snapshot{Now: now, Run: waits}), agentrun.Done{})
	if p := agentrun.Decide(on, agentrun.Snapshot{Now: now, Run: ended, Recipe: sweep().Obj()}); p.Verb != agentrun.VerbRest {
		t.Errorf("a run that ended as Disabled, enabled again: verb %q", p.Verb)
	}
}
