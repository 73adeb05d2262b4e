package recipe_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// TestTestsOfTexts has the check carry the texts of ConfigMaps.
func TestTestsOfTexts(t *testing.T) {
	w := newWorld(t, from().InputSchemaFrom("code", "input.json").Tests(fixtures("a")...))
	w.snap.ConfigMaps = texts(map[string]string{"main.js": program, "input.json": `{ "type": "object" }`})
	w.expect(unknown, v1alpha1.ReasonRunning, "")
	if c := w.plan.Tests.Launch; c.Source != program || string(c.InputSchema) != `{"type":"object"}` {
		t.Errorf("the check has the source %q and the schema %s", c.Source, c.InputSchema)
	}
	w.report(1)
	w.expect(yes, v1alpha1.ReasonPassed, "")
	w.snap.ConfigMaps["code"].Data["input.json"] = `{"type":"object","required":["q"]}`
	w.expect(unknown, v1alpha1.ReasonRunning, "")
	if w.launched != 2 {
		t.Errorf("%d pods for two schemas", w.launched)
	}
}

// TestTestsTextGone takes the ConfigMap away while a check pod runs, as those do who
// replace it: that costs no attempt, and the pod is neither removed nor launched again.
func TestTestsTextGone(t *testing.T) {
	there := texts(map[string]string{"main.js": program})
	for name, tc := range map[string]struct {
		gone      map[string]*corev1.ConfigMap
		wantReady contract.Reason
	}{
		"no ConfigMap":    {nil, contract.ReasonSourceUnavailable},
		"another program": {texts(map[string]string{"main.js": program + ";"}), contract.ReasonDigestMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, from().Tests(fixtures("a")...))
			w.snap.ConfigMaps = there
			w.look(false)
			for range 4 {
				w.snap.ConfigMaps = tc.gone
				w.expect(unknown, v1alpha1.ReasonNotRun, "")
				w.expect(unknown, v1alpha1.ReasonNotRun, "")
				w.snap.ConfigMaps = there
				w.expect(unknown, v1alpha1.ReasonRunning, "-1 runs")
			}
			w.snap.ConfigMaps = tc.gone
			w.look(false)
			w.report(1)
			w.look(false)
			w.ready(string(tc.wantReady))
			w.snap.ConfigMaps = there
			w.expect(yes, v1alpha1.ReasonPassed, "")
			if got := w.snap.Recipe.Status.Tests; w.launched != 1 || got.Attempts != 1 {
				t.Errorf("%d pods, status %+v", w.launched, got)
			}
		})
	}
}

// TestTestsTextGoneForGood does not let a pod that never ends stay for it.
func TestTestsTextGoneForGood(t *testing.T) {
	w := newWorld(t, from().Tests(fixtures("a")...))
	w.snap.ConfigMaps = texts(map[string]string{"main.js": program})
	w.look(false)
	w.snap.ConfigMaps = nil
	w.look(false)
	after := w.plan.Tests.RequeueAfter
	if len(w.snap.Pods) != 1 || after <= 0 || after > time.Hour {
		t.Fatalf("%d pods, next look after %s", len(w.snap.Pods), after)
	}
	w.step(after)
	if c := w.look(false); len(w.snap.Pods) != 0 || w.plan.Tests.RequeueAfter != 0 || !strings.Contains(c.Message, "mended") {
		t.Errorf("%d pods, next look after %s: %s", len(w.snap.Pods), w.plan.Tests.RequeueAfter, c.Message)
	}
}
