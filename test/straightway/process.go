package straightway

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// process is the runtime in one pod.
type process struct {
	pod        *corev1.Pod
	generation int64
	digest     string
	execution  *contract.Execution
	over       bool
	// stuck never does anything; it ends when it is told to. deaf is stuck on a
	// node that does not answer: it never ends.
	stuck, deaf bool
}

// step lets the process do one thing.
func (w *world) step(p *process) error {
	switch {
	case p.over || p.deaf:
		return nil
	case p.stuck:
		if p.pod.DeletionTimestamp != nil {
			w.kill(p, "Error", 137)
		}
		return nil
	case w.chance(30) && p.execution == nil:
		w.forge(p)
		return nil
	case w.chance(12):
		w.kill(p, "OOMKilled", 137)
		return nil
	case p.execution == nil:
		return w.claim(p)
	case p.pod.DeletionTimestamp != nil:
		p.execution.Fail(contract.Faultf(contract.ReasonCancelled, "stopped"))
		w.finish(p)
		return nil
	}
	switch w.rng.IntN(4) {
	case 0:
		w.dispatch(p)
	case 1:
		w.answer(p)
	case 2:
		w.answer(p)
		_ = p.execution.Succeed(json.RawMessage(`{"ok":true}`))
		w.finish(p)
	case 3:
		p.execution.Fail(contract.Faultf(contract.ReasonJavaScriptError, "boom"))
		w.finish(p)
	}
	return nil
}

// claim binds the execution to the pod, as the admission policy allows it.
func (w *world) claim(p *process) error {
	if p.pod.DeletionTimestamp != nil {
		w.kill(p, "Error", 143)
		return nil
	}
	p.pod.Status.Phase = corev1.PodRunning
	st := &w.run.Status
	if w.deleted || !w.authorised(p) || st.ExecutionGeneration != p.generation || st.PodName != p.pod.Name ||
		st.Pinned == nil || st.Pinned.Digest != p.digest || ended(w.run) {
		return nil // It is refused, and tries again.
	}
	if st.Execution != nil {
		w.kill(p, "Completed", 0) // Another pod was first.
		return nil
	}
	p.execution = &contract.Execution{
		Generation: p.generation, RunUID: string(w.run.UID), BundleDigest: p.digest,
		Claim: contract.Claim{PodName: p.pod.Name, PodUID: string(p.pod.UID), Time: "2026-03-01T12:00:00Z"},
	}
	w.report(p)
	w.started[p.generation]++
	if n := w.started[p.generation]; n > 1 {
		return fmt.Errorf("generation %d was started %d times", p.generation, n)
	}
	for _, o := range w.processes {
		if o != p && !o.over && o.execution != nil && w.authorised(o) {
			return fmt.Errorf("generation %d started while generation %d still runs", p.generation, o.generation)
		}
	}
	w.note("pod %s claims generation %d", p.pod.UID, p.generation)
	return nil
}

// authorised reports whether the token of the pod still works.
func (w *world) authorised(p *process) bool {
	pod := w.pods[p.pod.Name]
	return pod != nil && pod.UID == p.pod.UID
}

// report writes the execution into the run's status.
func (w *world) report(p *process) bool {
	if w.deleted || !w.authorised(p) || ended(w.run) || w.run.Status.ExecutionGeneration != p.generation {
		return false
	}
	w.run.Status.Execution = p.execution.DeepCopy()
	w.version++
	return true
}

// dispatch writes an intent through before the call is made.
func (w *world) dispatch(p *process) {
	seq := int64(len(p.execution.Calls) + 1)
	p.execution.Calls = append(p.execution.Calls, contract.Call{
		Seq: seq, ID: fmt.Sprintf("%s:%d:%d", w.run.UID, p.generation, seq), Tool: "pay",
		Effect: contract.EffectEffectful, State: contract.CallDispatched,
	})
	if !w.report(p) {
		p.execution.Calls = p.execution.Calls[:seq-1]
	}
}

func (w *world) answer(p *process) {
	for i := range p.execution.Calls {
		if c := &p.execution.Calls[i]; c.State == contract.CallDispatched {
			c.State = contract.CallCompleted
		}
	}
}

// finish reports by the first way, by the second, by both or by none.
func (w *world) finish(p *process) {
	if p.execution.Result == contract.ResultSucceeded {
		w.truth[p.generation] = contract.ResultSucceeded
	}
	lost, message := w.chance(4), []byte(nil)
	if !lost {
		lost = !w.report(p)
	}
	if !w.chance(3) {
		message, _ = p.execution.TerminationMessage()
	} else if w.chance(2) {
		message = []byte("all went well")
	}
	code := int32(0)
	if p.execution.Result == contract.ResultFailed {
		code = 1
	}
	w.note("pod %s finishes: %s (report lost: %v)", p.pod.UID, p.execution.Result, lost)
	w.end(p, "Completed", code, string(message))
}

func (w *world) kill(p *process, reason string, code int32) {
	w.note("pod %s is killed: %s", p.pod.UID, reason)
	w.end(p, reason, code, "")
}

func (w *world) end(p *process, reason string, code int32, message string) {
	p.over = true
	p.pod.Status.Phase = corev1.PodFailed
	if code == 0 {
		p.pod.Status.Phase = corev1.PodSucceeded
	}
	p.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: contract.RuntimeContainer, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, Message: message}}}}
	if p.pod.DeletionTimestamp != nil && w.authorised(p) {
		delete(w.pods, p.pod.Name)
	}
}

// forge ends the pod with a report of success that it has no claim for.
func (w *world) forge(p *process) {
	e := &contract.Execution{
		Generation: p.generation, RunUID: string(w.run.UID), BundleDigest: p.digest,
		Claim: contract.Claim{PodName: p.pod.Name, PodUID: string(p.pod.UID), Time: "2026-03-01T12:00:00Z"},
	}
	_ = e.Succeed(json.RawMessage(`{"forged":true}`))
	message, _ := e.TerminationMessage()
	w.note("pod %s forges a report", p.pod.UID)
	w.end(p, "Completed", 0, string(message))
}

// vanish is the loss of a node, or a forced deletion: the pod is gone with all
// it would have said. Its process may live on, without a right to say anything.
func (w *world) vanish() {
	for name, pod := range w.pods {
		for _, p := range w.processes {
			if p.pod == pod && !p.over {
				p.over = w.rng.IntN(2) == 0
				w.note("pod %s vanishes; its process lives on: %v", pod.UID, !p.over)
			}
		}
		delete(w.pods, name)
	}
}

func ended(run *v1alpha1.AgentRun) bool {
	c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	return c != nil && c.Status != metav1.ConditionUnknown
}

func describe(run *v1alpha1.AgentRun) string {
	c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	if c == nil {
		return "no condition"
	}
	return fmt.Sprintf("generation %d: Succeeded=%s %s: %s", run.Status.ExecutionGeneration, c.Status, c.Reason, c.Message)
}

// judge holds what must be true of every status that is written.
func (w *world) judge(before, after *v1alpha1.AgentRun) error {
	st := after.Status
	c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionSucceeded)
	if c.Status == metav1.ConditionTrue && w.truth[st.ExecutionGeneration] != contract.ResultSucceeded {
		return fmt.Errorf("generation %d is said to have succeeded, and did not", st.ExecutionGeneration)
	}
	if ended(before) && ended(after) && before.Status.ExecutionGeneration == st.ExecutionGeneration {
		b := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionSucceeded)
		if b.Status != c.Status || b.Reason != c.Reason {
			return fmt.Errorf("the end changed from %s to %s", b.Reason, c.Reason)
		}
	}
	if c.Status != metav1.ConditionFalse || st.Execution == nil {
		return nil
	}
	for _, call := range contract.Ambiguous(st.Execution.Calls) {
		if !strings.Contains(c.Message, call.ID) {
			return fmt.Errorf("%s hides the call %s, which may have happened", c.Reason, call.ID)
		}
	}
	return nil
}
