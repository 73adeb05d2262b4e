package recipe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/runtimepod"
	"github.com/codeact-dev/codeact-operator/controllers/status"
)

// Tests is what is planned about the tests of a recipe.
type Tests struct {
	// Launch is the check to run in a new pod, or in that one of this attempt that is
	// there already and that the status does not know of; nil for neither.
	Launch *Check
	// Remove are check pods that are not needed any more.
	Remove []*corev1.Pod
	// Record is what the status says of the tests; before a launch, that it was done.
	Record *v1alpha1.RecipeTests
	// Before is what the status says now of the tests of this manifest; nil for nothing.
	Before *v1alpha1.RecipeTests
	// Condition is that of TestsPassed.
	Condition Condition
	// Fault is why the recipe is refused for its tests, or nil.
	Fault *contract.Fault
	// Pending says that the recipe waits for its tests.
	Pending bool
	// RequeueAfter is when to look again, because of time alone; 0 is never.
	RequeueAfter time.Duration
}

// Condition is one condition without its type.
type Condition struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

const (
	// maxAttempts bounds the check pods of one manifest.
	maxAttempts = 3
	// startWithin is how long a check pod may take to start before it counts as lost.
	startWithin = 5 * time.Minute
	// queueFor is how long a recipe waits for a free check pod before it asks again.
	// It is asked when a check pod ends: this is for when that was not seen.
	queueFor = 30 * time.Second
)

// backoff is how long after its launch a lost check pod is followed by another one.
func backoff(attempt int64) time.Duration {
	if attempt <= 1 {
		return 10 * time.Second
	}
	return 60 * time.Second
}

// fixtures refuses tests that contradict themselves.
func (s *subject) fixtures() *contract.Fault {
	if err := contract.CheckFixtures(s.Recipe.Spec.Tests); err != nil {
		return contract.Faultf(contract.ReasonSchemaInvalid, "spec.tests: %v", err)
	}
	return nil
}

// tests decides about the tests. They are only launched when nothing else about the
// recipe is refused; what has been launched is followed to its end.
func (s *subject) tests(refused *contract.Fault) Tests {
	all := s.podsExcept("")
	same := s.record()
	switch bad := s.fixtures(); {
	case len(s.Recipe.Spec.Tests) == 0:
		return Tests{Remove: all, Condition: Condition{metav1.ConditionTrue, v1alpha1.ReasonNoTests, "the recipe has no tests"}}
	case bad != nil:
		return Tests{Remove: all, Condition: fails(bad)}
	case !s.op.RecipeTests.Run:
		return Tests{Remove: all, Record: same, Condition: Condition{metav1.ConditionUnknown, v1alpha1.ReasonSkipped,
			"the operator does not run the tests of recipes (--recipe-tests=Skip)"}}
	case same.Finished():
		return verdict(Tests{Remove: all, Record: same})
	}
	c, bad := newCheck(s.op, s.Recipe)
	if bad != nil {
		return Tests{Remove: all, Condition: fails(bad), Fault: bad}
	}
	before := same.DeepCopy()
	if same == nil {
		same = &v1alpha1.RecipeTests{ManifestDigest: c.ManifestDigest}
	}
	t := &trial{subject: s, check: c, record: same}
	out := t.next(refused)
	out.Before = before
	return out
}

func fails(f *contract.Fault) Condition {
	return Condition{metav1.ConditionFalse, string(f.Reason), f.Message}
}

// record is a copy of what the status says of the tests of exactly this manifest.
func (s *subject) record() *v1alpha1.RecipeTests {
	d, err := s.Recipe.ManifestDigest()
	if t := s.Recipe.Status.Tests; err == nil && t != nil && t.ManifestDigest == d {
		return t.DeepCopy()
	}
	return nil
}

// podsExcept are the check pods of the recipe with another name.
func (s *subject) podsExcept(name string) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range s.Pods {
		if p := &s.Pods[i]; ours(s.Recipe, p) && p.Name != name && p.DeletionTimestamp == nil {
			out = append(out, p)
		}
	}
	return out
}

// trial follows the check pods of one manifest.
type trial struct {
	*subject
	check  *Check
	record *v1alpha1.RecipeTests
}

func (t *trial) name(attempt int64) string {
	return CheckName(t.Recipe, t.check.ManifestDigest, attempt)
}

func (t *trial) pod(attempt int64) *corev1.Pod {
	for i := range t.Pods {
		if p := &t.Pods[i]; ours(t.Recipe, p) && p.Name == t.name(attempt) {
			return p
		}
	}
	return nil
}

// next decides from the record and the pod that it speaks of. What the record of
// the status does not need any more is removed, never what only this look has found:
// the status may not be written.
func (t *trial) next(refused *contract.Fault) Tests {
	if r := t.record; r.Attempts == 0 || r.Lost != "" {
		return t.another(refused)
	}
	out := Tests{Record: t.record, Remove: t.podsExcept(t.name(t.record.Attempts)), Pending: true}
	return t.follow(out, t.pod(t.record.Attempts))
}

// another decides about the next attempt: none has been made, or the last was lost.
func (t *trial) another(refused *contract.Fault) Tests {
	r, attempt := t.record, t.record.Attempts+1
	out := Tests{Record: r, Remove: t.podsExcept(t.name(attempt)), Pending: true}
	if pod := t.pod(attempt); pod != nil { // the status write after the launch was lost
		r.Attempts, r.LastAttemptTime, r.Lost = attempt, &pod.CreationTimestamp, ""
		if out = t.follow(out, pod); !runtimepod.Ended(pod) {
			out.Launch = t.check
		}
		return out
	}
	again := t.Now
	if r.LastAttemptTime != nil && r.Attempts > 0 {
		again = r.LastAttemptTime.Add(backoff(r.Attempts))
	}
	switch {
	case r.Attempts >= maxAttempts:
		out.Fault = contract.Faultf(contract.ReasonWorkerLost, "%d check pods were lost without a result; the last one: %s", r.Attempts, r.Lost)
		out.Condition, out.Pending = fails(out.Fault), false
	case refused != nil:
		if r.Attempts == 0 {
			// What ran before still holds of its own digest, should that come back, and
			// what still runs is left to: a ConfigMap may only be gone for a moment.
			out.Record = t.Recipe.Status.Tests.DeepCopy()
			out.Remove, out.RequeueAfter = t.spare(out.Remove)
		}
		out.Condition = Condition{metav1.ConditionUnknown, v1alpha1.ReasonNotRun, "the tests are run when what else is wrong with the recipe is mended"}
	case t.Now.Before(again):
		out.Condition = pending("%s; the tests run again %s", r.Lost, again.UTC().Format(time.RFC3339))
		out.RequeueAfter = again.Sub(t.Now)
	default:
		now := metav1.NewTime(t.Now)
		out.Launch = t.check
		r.Attempts, r.LastAttemptTime, r.Lost = attempt, &now, ""
		out.Condition = running(t.name(attempt), len(t.check.Tests))
		out.RequeueAfter = startWithin
	}
	return out
}

// spare takes the pod that the status tells of, of whatever manifest, out of those to
// remove, for as long as it may run; and says when that is over.
func (t *trial) spare(remove []*corev1.Pod) ([]*corev1.Pod, time.Duration) {
	r := t.Recipe.Status.Tests
	if r == nil || r.Attempts == 0 || r.Lost != "" || r.Finished() || r.LastAttemptTime == nil {
		return remove, 0
	}
	left := r.LastAttemptTime.Add(startWithin + mostTestTime + podSlack).Sub(t.Now)
	if left <= 0 {
		return remove, 0
	}
	name := CheckName(t.Recipe, r.ManifestDigest, r.Attempts)
	return slices.DeleteFunc(remove, func(p *corev1.Pod) bool { return p.Name == name }), left
}

// follow looks at the pod of the present attempt.
func (t *trial) follow(out Tests, pod *corev1.Pod) Tests {
	name := t.name(t.record.Attempts)
	if pod == nil {
		return t.lost(out, "pod %s is gone", name)
	}
	if pod.Annotations[v1alpha1.AnnotationCheckDigest] != t.check.Digest {
		return t.lost(out, "pod %s was launched for other limits of the operator, or another order of tests", name)
	}
	if runtimepod.Ended(pod) {
		return t.ended(out, pod)
	}
	if pod.DeletionTimestamp != nil {
		return t.lost(out, "pod %s is being deleted", name)
	}
	out.Condition = running(name, len(t.check.Tests))
	endBy := pod.CreationTimestamp.Add(startWithin + t.check.deadline())
	if starts := runtimepod.StartsBy(pod); !starts.IsZero() {
		trouble := runtimepod.Trouble(pod, t.Now)
		if by := pod.CreationTimestamp.Add(startWithin); !t.Now.Before(by) {
			return t.lost(out, "pod %s has not started within %s: %s", name, startWithin, trouble)
		}
		endBy = pod.CreationTimestamp.Add(startWithin)
		if trouble != "" {
			out.Condition = pending("%s", trouble)
		} else {
			endBy = starts
		}
	}
	if !t.Now.Before(endBy) {
		return t.lost(out, "pod %s does not end", name)
	}
	out.RequeueAfter = endBy.Sub(t.Now)
	return out
}

// ended reads what a pod that has ended says.
func (t *trial) ended(out Tests, pod *corev1.Pod) Tests {
	end := runtimepod.Terminated(pod)
	if end == nil {
		return t.lost(out, "pod %s ended without a result%s", pod.Name, podReason(pod))
	}
	report, err := contract.ParseCheckReport([]byte(end.Message), t.check.Digest, len(t.check.Tests))
	if err != nil {
		return t.lost(out, "pod %s ended without a result (%s, exit code %d)%s", pod.Name, end.Reason, end.ExitCode, podReason(pod))
	}
	out.Record.Take(t.check.Tests, *report)
	// The pod goes when the status has what it said.
	out.RequeueAfter, out.Pending = status.Retry, false
	return verdict(out)
}

// podReason words why the kubelet ended a pod, such as by eviction.
func podReason(pod *corev1.Pod) string {
	if pod.Status.Reason == "" {
		return ""
	}
	return fmt.Sprintf(" (%s: %s)", pod.Status.Reason, pod.Status.Message)
}

// lost gives up on the present attempt.
func (t *trial) lost(out Tests, format string, args ...any) Tests {
	r := out.Record
	r.Lost = contract.Truncate(fmt.Sprintf(format, args...), contract.MaxMessageBytes)
	if r.Attempts >= maxAttempts {
		out.Fault = contract.Faultf(contract.ReasonWorkerLost, "%d check pods were lost without a result; the last one: %s", r.Attempts, r.Lost)
		out.Condition, out.Pending = fails(out.Fault), false
		out.RequeueAfter = status.Retry
		return out
	}
	again := t.Now
	if r.LastAttemptTime != nil {
		again = r.LastAttemptTime.Add(backoff(r.Attempts))
	}
	out.Condition = pending("%s; the tests run again %s", r.Lost, again.UTC().Format(time.RFC3339))
	out.RequeueAfter = max(again.Sub(t.Now), status.Retry)
	return out
}

func running(pod string, tests int) Condition {
	return Condition{metav1.ConditionUnknown, v1alpha1.ReasonRunning, fmt.Sprintf("pod %s runs %d tests", pod, tests)}
}

func pending(format string, args ...any) Condition {
	return Condition{metav1.ConditionUnknown, v1alpha1.ReasonPending, fmt.Sprintf(format, args...)}
}

// verdict words the results of the record.
func verdict(out Tests) Tests {
	r := out.Record
	if r.Failed == 0 {
		out.Condition = Condition{metav1.ConditionTrue, v1alpha1.ReasonPassed, fmt.Sprintf("all %d tests passed", r.Passed)}
		return out
	}
	var bad []string
	for _, x := range r.Results {
		if !x.Passed {
			bad = append(bad, fmt.Sprintf("%q (%s)", x.Name, contract.Truncate(x.Message, 256)))
		}
	}
	out.Fault = contract.Faultf(contract.ReasonTestsFailed, "%d of %d tests failed: %s", r.Failed, r.Passed+r.Failed, strings.Join(bad, "; "))
	out.Condition = fails(out.Fault)
	return out
}

// refused is what becomes of a launch that could not be done.
func (x Tests) refused(after time.Duration, reason, message string) Tests {
	x.Launch, x.Record = nil, x.Before
	x.Condition = Condition{metav1.ConditionUnknown, reason, message}
	x.RequeueAfter = after
	return x
}
