package agentrun_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// TestTextsOfConfigMaps has runs of a recipe, and of an agent that is offered it,
// whose program and input schema are in a ConfigMap.
func TestTextsOfConfigMaps(t *testing.T) {
	const program, schema = "function main(){return 1}", `{"type":"object","required":["a"]}`
	op := settings.Default()
	holds := func(program, schema string) map[string]*corev1.ConfigMap {
		return map[string]*corev1.ConfigMap{"code": {Data: map[string]string{"main.js": program, "input.json": schema}}}
	}
	rcp := builders.MakeRecipe("sweep", "").SourceFrom("code", "main.js", contract.Digest([]byte(program))).InputSchemaFrom("code", "input.json").Obj()
	judged := recipe.Snapshot{Now: now, Recipe: rcp, ConfigMaps: holds(program, schema)}
	rcp.Status = recipe.Settle(judged, recipe.Decide(op, judged))

	tests := map[string]struct {
		maps map[string]*corev1.ConfigMap
		// wantWait is what the run waits for; "" launches it.
		wantWait string
	}{
		"what was judged":       {maps: holds(program, schema)},
		"none":                  {wantWait: "SourceUnavailable: there is no ConfigMap code"},
		"another program":       {maps: holds("function main(){return 2}", schema), wantWait: "DigestMismatch"},
		"another schema":        {maps: holds(program, `{"type":"object"}`), wantWait: "has not been checked yet with what its ConfigMaps hold now"},
		"a schema that is none": {maps: holds(program, `7`), wantWait: "SchemaInvalid"},
	}
	for name, tc := range tests {
		for kind, run := range map[string]*v1alpha1.AgentRun{
			"recipe": builders.MakeRun("run").Recipe("sweep").Input(`{"a":1}`).Obj(), "agent": toolsRun([]string{"sweep"}).Obj(),
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				s := agentrun.Snapshot{Now: now, Run: run, Models: []v1alpha1.ToolGrant{*gpt().Obj()}, Recipes: []v1alpha1.Recipe{*rcp}, ConfigMaps: tc.maps}
				if kind == "recipe" {
					s.Recipe = rcp
				}
				p := agentrun.Decide(op, s)
				if tc.wantWait != "" {
					if p.Verb != agentrun.VerbWait || p.Reason != string(contract.ReasonRecipeNotReady) || !strings.Contains(p.Message, tc.wantWait) {
						t.Errorf("%s %s %q %+v", p.Verb, p.Reason, p.Message, p.Outcome)
					}
					return
				}
				if p.Verb != agentrun.VerbLaunch {
					t.Fatalf("%s %s %q %+v", p.Verb, p.Reason, p.Message, p.Outcome)
				}
				source, input := p.Pin.Bundle.Source, string(p.Pin.Bundle.InputSchema)
				if kind == "agent" {
					source, input = p.Pin.Bundle.Agent.Recipes[0].Source, string(p.Pin.Bundle.Agent.Recipes[0].InputSchema)
				}
				if source != program || input != schema {
					t.Errorf("pinned %q %q", source, input)
				}
			})
		}
	}
}
