package vectors_test

import (
	"slices"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/admit"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/stub"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/sandbox"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// call runs the recipe the cluster's way: judged, pinned, and its bundle executed
// with the stubs that were granted.
func (c recipeCase) call(t *testing.T, kind *admit.Kind, e *sandbox.Engine) {
	all, maps, refused := c.read(t, kind)
	if refused != "" {
		t.Fatal(refused)
	}
	stubs, err := stub.Parse(c.Call.Tools)
	if err != nil {
		t.Fatal(err)
	}
	input, err := stub.Expand(c.Call.Input)
	if err != nil {
		t.Fatal(err)
	}
	var grants []v1alpha1.ToolGrant
	for name := range stubs {
		grants = append(grants, *builders.MakeGrant(name, name).Ready("", "").Obj())
	}
	now := time.Unix(1_800_000_000, 0)
	for i := range all {
		all[i].Namespace, all[i].Generation = builders.Namespace, 1
	}
	s := agentrun.Snapshot{Now: now, Recipes: all, Grants: grants, ConfigMaps: maps}
	for i := range all {
		x := recipe.Snapshot{Now: now, Recipe: &all[i], Recipes: all, Grants: grants, ConfigMaps: maps}
		all[i].Status = recipe.Settle(x, recipe.Decide(settings.Default(), x))
		if c.Call.Recipe == "" || c.Call.Recipe == all[i].Name {
			s.Recipe = &all[i]
		}
	}
	s.Run = builders.MakeRun("call").Recipe(s.Recipe.Name).Input(string(input)).Obj()
	op := settings.Default()
	op.Runtime.Image = "registry.example/codeact:v0"
	p := agentrun.Decide(op, s)
	tools, got, why := stub.New(stubs), contract.Reason(p.Reason), p.Message
	if p.Outcome != nil {
		got, why = contract.Reason(p.Outcome.Reason), p.Outcome.Message
	}
	if p.Verb == agentrun.VerbLaunch {
		list := slices.DeleteFunc(slices.Clone(tools.List), func(x broker.Tool) bool {
			return !slices.ContainsFunc(p.Pin.Bundle.Tools, func(y contract.PinnedTool) bool { return y.Tool.Name == x.Tool.Name })
		})
		o := loop.Run(t.Context(), loop.Config{Sandbox: e, Bundle: p.Pin.Bundle, Tools: list, Now: time.Now})
		got, why = "", ""
		if o.Fault != nil {
			got, why = o.Fault.Reason, o.Fault.Message
		}
		if c.Expect.OK && !sameJSON(t, o.Value, c.Expect.Value) {
			t.Errorf("value %s, want %s", o.Value, c.Expect.Value)
		}
	}
	want := contract.Reason("")
	if c.Expect.Reason != nil {
		want = *c.Expect.Reason
	}
	if got != want {
		t.Errorf("%s (%s), want %q", got, why, want)
	}
	if n := c.Expect.ChildCalls; n != nil && tools.Entered() != *n {
		t.Errorf("tools were entered %d times, want %d", tools.Entered(), *n)
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	text := func(b []byte) string {
		x, err := contract.DecodeJSON(b)
		if err != nil {
			t.Fatal(err)
		}
		out, err := contract.Canonical(x)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	return text(a) == text(b)
}
