// Package straightway simulates runs: it feeds the AgentRun decision its own
// plans over many histories of pods, faults and edits, with a cluster and a
// runtime that are made of a few fields. It finds what no single case shows:
// runs that never end, and executions that could start twice.
package straightway

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/controllers/status"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// world is one run with its cluster.
type world struct {
	rng *rand.Rand
	op  settings.Operator
	now time.Time

	// run, pods and pins are what the API server has; version counts the writes
	// of the run.
	run     *v1alpha1.AgentRun
	version int
	pods    map[string]*corev1.Pod
	pins    map[string]*corev1.ConfigMap
	deleted bool
	// off is what the annotation of the namespace says; the operator lets it count.
	off bool

	// cached is the run as the manager's cache has it, of cachedVersion.
	cached        *v1alpha1.AgentRun
	cachedVersion int

	// processes are what runs in pods, also in pods that are gone.
	processes []*process
	uids      int

	// started counts the executions of each generation that passed their claim;
	// truth is how they ended, when they did.
	started map[int64]int
	truth   map[int64]contract.Result

	// calm ends all faults.
	calm bool
	log  []string
}

func newWorld(seed uint64, run *v1alpha1.AgentRun) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 7)), op: settings.Default(),
		now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		run: run, version: 1,
		pods: map[string]*corev1.Pod{}, pins: map[string]*corev1.ConfigMap{},
		started: map[int64]int{}, truth: map[int64]contract.Result{},
	}
	w.op.CodeAct.AllowNamespaceOverride = true
	w.refresh()
	return w
}

// flip has somebody switch the namespace off, or on again.
func (w *world) flip() {
	w.off = !w.off
	w.note("the namespace is switched off: %v", w.off)
}

func (w *world) refresh() { w.cached, w.cachedVersion = w.run.DeepCopy(), w.version }

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, w.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

// chance is true in one of n cases, never when the world is calm.
func (w *world) chance(n int) bool { return !w.calm && w.rng.IntN(n) == 0 }

// look is one reconcile. crash cuts it off after so many writes; -1 does not.
func (w *world) look(crash int) (time.Duration, error) {
	if w.deleted {
		return 0, nil
	}
	if !w.chance(3) {
		w.refresh()
	}
	s := w.observe()
	p := agentrun.Decide(w.op, s)
	done, err := w.act(s, p, &crash)
	if err != nil || done.Stale || crash == 0 {
		return time.Second, err
	}
	after := s.Run.DeepCopy()
	after.Status = agentrun.Settle(w.op, s, p, done)
	if err := w.write(s.Run, after, p); err != nil {
		return 0, err
	}
	return p.RequeueAfter, nil
}

func (w *world) observe() agentrun.Snapshot {
	s := agentrun.Snapshot{Now: w.now, Run: w.cached.DeepCopy(), Models: []v1alpha1.ToolGrant{
		*builders.MakeGrant("gpt", "gpt").Model("https://models.example/v1", "m").Ready("", "").Obj(),
	}}
	if w.off {
		s.NamespaceAnnotations = map[string]string{v1alpha1.AnnotationCodeActEnabled: "false"}
	}
	name := agentrun.Name(s.Run, max(s.Run.Status.ExecutionGeneration, 1))
	if p := w.pods[name]; p != nil {
		s.Pod = p.DeepCopy()
	}
	if p := w.pins[name]; p != nil && (s.Pod == nil || s.Run.Status.Pinned == nil) {
		s.Pin = p.DeepCopy()
	}
	return s
}

// act does what the controller's act does, and may be cut off.
func (w *world) act(s agentrun.Snapshot, p agentrun.Plan, crash *int) (agentrun.Done, error) {
	cut := func() bool { *crash--; return *crash == 0 }
	quiet := p.Verb == agentrun.VerbIgnore || p.Verb == agentrun.VerbWait || p.Verb == agentrun.VerbSettle || p.Verb == agentrun.VerbRest
	if !quiet && w.cachedVersion != w.version {
		return agentrun.Done{Stale: true}, nil
	}
	switch p.Verb {
	case agentrun.VerbIgnore, agentrun.VerbWait, agentrun.VerbSettle, agentrun.VerbRest:
		return agentrun.Done{}, nil
	case agentrun.VerbLaunch:
		return w.launch(s.Run, p.Pin, cut)
	case agentrun.VerbStop:
		w.remove(s.Pod.Name)
	case agentrun.VerbSupersede:
		pod := w.pods[agentrun.Name(s.Run, p.Generation)]
		judged := s.Pod != nil && pod != nil && s.Pod.UID == pod.UID
		return agentrun.Done{Stale: pod != nil && alive(pod) && !judged}, nil
	case agentrun.VerbExpire:
		w.note("the run is deleted")
		w.deleted = true
	default:
		return agentrun.Done{}, fmt.Errorf("the plan has the verb %q", p.Verb)
	}
	cut()
	return agentrun.Done{}, nil
}

func (w *world) launch(run *v1alpha1.AgentRun, pin *agentrun.Pin, cut func() bool) (agentrun.Done, error) {
	if have := w.pins[pin.Name]; have == nil {
		if f := pin.Bundle.CheckEnabled(); f != nil || w.off {
			return agentrun.Done{}, fmt.Errorf("generation %d is pinned where the namespace is switched off (%v): %w", pin.Bundle.Run.Generation, w.off, f)
		}
		w.pins[pin.Name] = pin.ConfigMap(run)
	} else if !pin.Held(run, have) {
		return agentrun.Done{Fault: contract.Faultf(contract.ReasonInterrupted, "another pin")}, nil
	}
	if cut() {
		w.note("the manager dies between pin and launch")
		return agentrun.Done{}, nil
	}
	if have := w.pods[pin.Name]; have != nil {
		same := have.Annotations[v1alpha1.AnnotationBundleDigest] == pin.Digest && alive(have) && have.DeletionTimestamp == nil
		return agentrun.Done{Pinned: true, Launched: same, Stale: !same}, nil
	}
	pod := agentrun.NewPod(w.op.Runtime, run, pin)
	w.uids++
	pod.UID, pod.CreationTimestamp = types.UID(fmt.Sprintf("pod-%d", w.uids)), metav1.NewTime(w.now)
	pod.Status.Phase = corev1.PodPending
	w.pods[pod.Name] = pod
	w.processes = append(w.processes, &process{
		pod: pod, generation: pin.Bundle.Run.Generation, digest: pin.Digest,
		stuck: w.chance(15), deaf: w.chance(40),
	})
	w.note("pod %s (%s) is launched", pod.Name, pod.UID)
	if cut() {
		w.note("the manager dies between launch and status")
	}
	return agentrun.Done{Pinned: true, Launched: true}, nil
}

// write is the one status write, with its optimistic lock.
func (w *world) write(before, after *v1alpha1.AgentRun, p agentrun.Plan) error {
	if w.deleted || equal(before, after) {
		return nil
	}
	if w.cachedVersion != w.version {
		w.note("conflict")
		return nil
	}
	if err := status.CheckKstatus(after.Generation, after.Status.ObservedGeneration, after.Status.Conditions, v1alpha1.ConditionSucceeded); err != nil {
		return fmt.Errorf("after %s: %w", p.Verb, err)
	}
	if err := w.judge(before, after); err != nil {
		return err
	}
	w.run = after
	w.version++
	w.note("%s: %s", p.Verb, describe(after))
	return nil
}

func equal(a, b *v1alpha1.AgentRun) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func alive(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// remove deletes a pod: one that runs gets its grace.
func (w *world) remove(name string) {
	pod := w.pods[name]
	if pod == nil {
		return
	}
	if !alive(pod) {
		delete(w.pods, name)
		w.note("pod %s is removed", pod.UID)
		return
	}
	if pod.DeletionTimestamp == nil {
		t := metav1.NewTime(w.now)
		pod.DeletionTimestamp = &t
		w.note("pod %s is told to stop", pod.UID)
	}
}
