package agentrun

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/runtimepod"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

// look is a Snapshot with what follows from it and several checks need.
type look struct {
	Snapshot
	op settings.Operator
	// generation is the current execution generation, from 1.
	generation int64
	// digest is what the spec asks for; held is what this generation executes.
	digest, held string
	// pod is the Snapshot's when it is this run's, else nil.
	pod *corev1.Pod
	// pin is what is pinned, when it is known and whole; pinErr says what is
	// wrong with a pin that should be there.
	pin    *Pin
	pinErr error
}

func newLook(op settings.Operator, s Snapshot) (*look, error) {
	l := &look{Snapshot: s, op: op, generation: currentGeneration(s.Run)}
	if ours(s.Run, s.Pod) {
		l.pod = s.Pod
	}
	if settledSpec(s.Run) {
		l.held = s.Run.Status.ExecutionDigest
		l.digest = l.held
		return l, nil
	}
	var err error
	if l.digest, err = s.Run.ExecutionDigest(); err != nil {
		return l, err
	}
	switch {
	case s.Run.Status.ExecutionGeneration > 0:
		l.held = s.Run.Status.ExecutionDigest
	case l.pod != nil && l.pod.Annotations[v1alpha1.AnnotationExecutionDigest] != "":
		// The status write after the launch was lost: the pod tells what it executes.
		l.held = l.pod.Annotations[v1alpha1.AnnotationExecutionDigest]
	default:
		l.held = l.digest
	}
	if want := pinnedDigest(s.Run, l.pod); want != "" {
		l.pin, l.pinErr = ReadPin(s.Run, l.generation, s.Pin, want)
	}
	return l, nil
}

// currentGeneration is the execution generation that the status is about; the
// first one before there is a status.
func currentGeneration(run *v1alpha1.AgentRun) int64 {
	return max(run.Status.ExecutionGeneration, 1)
}

// pinnedDigest is the digest of the pinned bundle on the word of somebody who
// can be trusted: the run's status, or a pod that only the manager can launch. A
// ConfigMap alone proves nothing: a tenant may write one.
func pinnedDigest(run *v1alpha1.AgentRun, pod *corev1.Pod) string {
	if p := run.Status.Pinned; p != nil {
		return p.Digest
	}
	if pod != nil {
		return pod.Annotations[v1alpha1.AnnotationBundleDigest]
	}
	return ""
}

// finished reports whether the run has ended, and the status is final.
func (l *look) finished() bool { return isFinished(l.Run) }

func isFinished(run *v1alpha1.AgentRun) bool {
	c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	return c != nil && c.Status != metav1.ConditionUnknown
}

// launched reports whether a pod was ever launched for this generation.
func (l *look) launched() bool { return l.pod != nil || l.Run.Status.Launches > 0 || l.claimed() }

// launches counts the pods of this generation, also one that no status tells of.
func (l *look) launches() int64 {
	if l.pod != nil {
		return max(l.Run.Status.Launches, 1)
	}
	return l.Run.Status.Launches
}

// execution is what the status holds of this generation, verified or not.
func (l *look) execution() *contract.Execution {
	if e := l.Run.Status.Execution; e != nil && e.Generation == l.generation {
		return e
	}
	return nil
}

// claimed reports whether a pod has claimed this generation. Even a claim in a
// report that does not verify counts: nothing may start twice.
func (l *look) claimed() bool { return l.execution() != nil }

// deleted reports whether the run is being deleted.
func (l *look) deleted() bool { return !l.Run.DeletionTimestamp.IsZero() }

// endAsked says who asks for the end of the run, or "" when nobody does.
func (l *look) endAsked() string {
	switch {
	case l.deleted():
		return "the run is being deleted"
	case l.Run.Spec.Cancel:
		return "spec.cancel is set"
	}
	return ""
}

// alive reports whether the pod is there and may still do something. Long after
// its deadline it cannot, even when its node does not answer: the runtime ends
// itself in time, and the API server takes no report of it.
func (l *look) alive() bool {
	return l.pod != nil && !runtimepod.Ended(l.pod) && l.Now.Before(l.goneBy())
}

// startTime is when this generation began to wait.
func (l *look) startTime() time.Time {
	if t := l.Run.Status.StartTime; t != nil && l.Run.Status.ExecutionGeneration > 0 {
		return t.Time
	}
	return l.Now
}

// startBy is when the wait for recipe, grants and quota is over.
func (l *look) startBy() time.Time { return l.startTime().Add(l.Run.StartDeadline()) }

// launchTime is when the last pod was created.
func (l *look) launchTime() time.Time {
	switch {
	case l.Run.Status.LaunchTime != nil:
		return l.Run.Status.LaunchTime.Time
	case l.pod != nil && !l.pod.CreationTimestamp.IsZero():
		return l.pod.CreationTimestamp.Time
	}
	return l.Now
}

// Bounds of a launched pod, in addition to the run's timeout: the pod ends
// itself at the timeout, the controller stops it endSlack later, the kubelet
// podSlack later; goneSlack later it counts as gone, even when its node does
// not answer.
const (
	endSlack  = 15 * time.Second
	podSlack  = 30 * time.Second
	goneSlack = 90 * time.Second
)

func (l *look) endBy() time.Time { return l.launchTime().Add(l.Run.Timeout() + endSlack) }

func (l *look) goneBy() time.Time { return l.launchTime().Add(l.Run.Timeout() + goneSlack) }

// stop plans to end a pod that is alive, or to wait for one that is ending.
func (l *look) stop(why string) *Plan {
	p := &Plan{Verb: VerbStop, Reason: v1alpha1.ReasonStopping, Message: why}
	if l.pod.DeletionTimestamp != nil {
		p.Verb = VerbWait
	}
	if l.alive() {
		p.RequeueAfter = until(l.Now, l.goneBy())
	}
	return p
}

// succeeded returns the Succeeded condition as the status has it.
func (l *look) succeeded() metav1.Condition {
	if c := meta.FindStatusCondition(l.Run.Status.Conditions, v1alpha1.ConditionSucceeded); c != nil {
		return *c
	}
	return metav1.Condition{}
}
