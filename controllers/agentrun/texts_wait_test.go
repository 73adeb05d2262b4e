package agentrun_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// TestTextsAgain has when a run looks again at recipes whose program is in a ConfigMap,
// and that it is never launched before their tests have passed.
func TestTextsAgain(t *testing.T) {
	holds := func(text string) map[string]*corev1.ConfigMap {
		return map[string]*corev1.ConfigMap{"code": {Data: map[string]string{"main.js": text}}}
	}
	rcp := func(reason string) *v1alpha1.Recipe {
		r := builders.MakeRecipe("sweep", "").SourceFrom("code", "main.js", "").Ready(reason, "").Obj()
		judged, _ := r.Effective(holds(echo))
		r.Status.ManifestDigest, _ = judged.ManifestDigest()
		return r
	}
	tests := map[string]struct {
		maps   map[string]*corev1.ConfigMap
		reason string // of the recipe's not being Ready

		wantVerb    agentrun.Verb
		wantRequeue time.Duration // of the wait
	}{
		"as judged":              {maps: holds(echo), wantVerb: agentrun.VerbLaunch},
		"another text":           {maps: holds(calling), wantVerb: agentrun.VerbWait, wantRequeue: 5 * time.Second},
		"none":                   {wantVerb: agentrun.VerbWait, wantRequeue: 5 * time.Second},
		"none, as judged":        {reason: "SourceUnavailable", wantVerb: agentrun.VerbWait, wantRequeue: time.Minute},
		"while the tests run":    {maps: holds(echo), reason: v1alpha1.ReasonRunning, wantVerb: agentrun.VerbWait, wantRequeue: time.Minute},
		"while they are waiting": {maps: holds(echo), reason: v1alpha1.ReasonQueued, wantVerb: agentrun.VerbWait, wantRequeue: time.Minute},
	}
	for name, tc := range tests {
		for kind, run := range map[string]*builders.Run{"recipe": builders.MakeRun("r").Recipe("sweep").Input(`{}`), "agent": toolsRun([]string{"sweep"})} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				s := agentrun.Snapshot{Now: now, Run: run.Obj(), Models: []v1alpha1.ToolGrant{*gpt().Obj()}, ConfigMaps: tc.maps}
				r := rcp(tc.reason)
				if s.Recipes = []v1alpha1.Recipe{*r}; kind == "recipe" {
					s.Recipe = r
				}
				p := agentrun.Decide(settings.Default(), s)
				if p.Verb != tc.wantVerb || p.Verb == agentrun.VerbWait && (p.Reason != string(contract.ReasonRecipeNotReady) || p.RequeueAfter != tc.wantRequeue) {
					t.Fatalf("%s %s (%s), again after %s; want %s after %s", p.Verb, p.Reason, p.Message, p.RequeueAfter, tc.wantVerb, tc.wantRequeue)
				}
			})
		}
	}
}
