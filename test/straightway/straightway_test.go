package straightway

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/test/builders"
)

var histories = flag.Int("histories", 3000, "how many histories to simulate")

const (
	faultySteps = 40
	calmSteps   = 200
)

// TestStraightWay simulates histories until every run has settled. A seed of a
// failure gives the same history again.
func TestStraightWay(t *testing.T) {
	ends := map[string]int{}
	n := *histories
	if testing.Short() {
		n /= 6
	}
	for seed := range n {
		run := builders.MakeRun("r").Code("function main(x) { return x }")
		if seed%4 == 3 {
			run = builders.MakeRun("r").Agent("gpt", "do it")
		}
		w := newWorld(uint64(seed), run.Timeout(2*time.Minute).Obj())
		if err := w.live(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(w.log, "\n"))
		}
		ends[strings.Fields(describe(w.run))[2]+" "+strings.TrimSuffix(strings.Fields(describe(w.run))[3], ":")]++
	}
	for _, want := range []string{
		"Succeeded=True Succeeded", "Succeeded=False JavaScriptError", "Succeeded=False Interrupted",
		"Succeeded=False EffectsAmbiguous", "Succeeded=False Cancelled", "Succeeded=False WorkerLost",
		"Succeeded=False Disabled",
	} {
		if ends[want] == 0 {
			t.Errorf("no history ended with %q: %v", want, ends)
		}
	}
	t.Logf("%d histories: %v", n, ends)
}

// live goes through faults, then calm, until the run rests.
func (w *world) live() error {
	for range faultySteps {
		if err := w.turn(); err != nil {
			return err
		}
	}
	w.calm = true
	for range calmSteps {
		if err := w.turn(); err != nil {
			return err
		}
		if d, _ := w.run.ExecutionDigest(); w.deleted || (ended(w.run) && d == w.run.Status.ExecutionDigest) {
			return w.rest()
		}
	}
	return fmt.Errorf("the run does not settle")
}

// turn is one thing that happens.
func (w *world) turn() error {
	switch {
	case w.chance(25):
		w.vanish()
	case w.chance(60):
		w.note("cancel")
		w.edit(func() { w.run.Spec.Cancel = true })
	case w.chance(60):
		w.note("cancel is taken back")
		w.edit(func() { w.run.Spec.Cancel = false })
	case w.chance(40):
		w.note("the spec is edited")
		n := w.rng.IntN(3)
		w.edit(func() {
			if a := w.run.Spec.Agent; a != nil {
				a.Prompt = fmt.Sprintf("do it %d times", n)
				return
			}
			w.run.Spec.Code.Source = fmt.Sprintf("function main(x) { return %d }", n)
		})
	case w.chance(60):
		w.note("the ttl is edited")
		w.edit(func() { w.run.Spec.TTLAfterFinished = &metav1.Duration{Duration: time.Hour} })
	case w.chance(60):
		w.flip()
	case w.chance(20):
		w.now = w.now.Add(time.Duration(w.rng.IntN(60)) * time.Second)
	}
	crash := -1
	if w.chance(6) {
		crash = 1 + w.rng.IntN(2)
	}
	after, err := w.look(crash)
	if err != nil {
		return err
	}
	moved := false
	for _, p := range w.processes {
		if !p.over && !p.stuck && !p.deaf && (w.calm || w.chance(2)) {
			moved = true
			if err := w.step(p); err != nil {
				return err
			}
		} else if p.stuck {
			if err := w.step(p); err != nil {
				return err
			}
		}
	}
	if w.calm && !moved && after > 0 {
		w.now = w.now.Add(after)
	}
	w.now = w.now.Add(time.Second)
	return nil
}

func (w *world) edit(change func()) {
	before := w.run.DeepCopy()
	change()
	if !equal(before, w.run) {
		w.run.Generation++
		w.version++
	}
}

// rest holds that an ended run stays as it is.
func (w *world) rest() error {
	if w.deleted {
		return nil
	}
	if _, err := w.look(-1); err != nil { // It may still have to see the last edit.
		return err
	}
	version := w.version
	w.edit(func() { w.run.Spec.Cancel = !w.run.Spec.Cancel })
	for range 3 {
		w.flip()
		w.now = w.now.Add(time.Minute)
		if _, err := w.look(-1); err != nil {
			return err
		}
	}
	// The edit itself, and the generation that was observed.
	if w.version > version+2 {
		return fmt.Errorf("an ended run was written %d times", w.version-version)
	}
	for _, p := range w.processes {
		if !p.over && p.execution == nil && w.started[p.generation] == 0 && w.authorised(p) {
			if err := w.step(p); err != nil {
				return err
			}
			if p.execution != nil {
				return fmt.Errorf("an execution started after the end")
			}
		}
	}
	return nil
}
