package recipe_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestTestsHistories goes through many histories of lost pods, lost status writes and
// restarts: there are never more than three pods for one manifest, never two at once,
// and none after a result is recorded; and every history comes to an end.
func TestTestsHistories(t *testing.T) {
	ends := map[string]int{}
	for seed := range uint64(150) {
		dice := rand.New(rand.NewPCG(seed, 7))
		w := newWorld(t, sweep().Tests(fixtures("a", "b")...), search())
		reported := false
		for range 100 {
			if c := w.plan.Tests; c.Record != nil && !c.Pending && len(w.snap.Pods) == 0 && w.snap.Recipe.Status.Tests.Finished() {
				break
			}
			finished := w.snap.Recipe.Status.Tests.Finished()
			before := w.launched
			w.look(dice.IntN(4) == 0)
			if finished && w.launched != before {
				t.Fatalf("seed %d: a pod after the result", seed)
			}
			alive := 0
			for _, p := range w.snap.Pods {
				if p.Status.Phase == corev1.PodRunning {
					alive++
				}
			}
			if alive > 1 || w.launched > 3 {
				t.Fatalf("seed %d: %d pods at once, %d in all", seed, alive, w.launched)
			}
			w.step(time.Duration(dice.IntN(30)) * time.Second)
			if len(w.snap.Pods) == 0 {
				continue
			}
			// A pod that goes before any status tells of it has never been, for all that
			// the manager can know: only then there may be one more.
			record := w.snap.Recipe.Status.Tests
			known := record != nil && record.Attempts > 0 && record.Lost == ""
			last := &w.snap.Pods[len(w.snap.Pods)-1]
			if last.Status.Phase != corev1.PodRunning {
				if known && dice.IntN(8) == 0 { // somebody takes it away before it was read
					w.snap.Pods = slices.Delete(w.snap.Pods, len(w.snap.Pods)-1, len(w.snap.Pods))
				}
				continue
			}
			switch x := dice.IntN(8); {
			case x == 0 && known:
				w.snap.Pods = slices.Delete(w.snap.Pods, len(w.snap.Pods)-1, len(w.snap.Pods))
			case x == 1:
				w.end(137, "")
			case x == 2:
				w.report(1, contract.FailedTest{Index: 1})
				reported = true
			case x == 3:
				w.report(2)
				reported = true
			}
		}
		c := w.look(false)
		w.look(false)
		switch {
		case c.Reason == "Passed" || c.Reason == "TestsFailed":
			if !reported {
				t.Fatalf("seed %d: %s without a report", seed, c.Reason)
			}
		case c.Reason != string(contract.ReasonWorkerLost):
			t.Fatalf("seed %d: no end: %s (%s)", seed, c.Reason, c.Message)
		}
		if len(w.snap.Pods) != 0 {
			t.Fatalf("seed %d: %d pods are left", seed, len(w.snap.Pods))
		}
		ends[c.Reason]++
	}
	for _, r := range []string{"Passed", "TestsFailed", "WorkerLost"} {
		if ends[r] < 5 {
			t.Errorf("only %d histories end as %s", ends[r], r)
		}
	}
}
