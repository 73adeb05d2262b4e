package agentrun_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

func waits(kind contract.PendingKind, ids ...string) func(*contract.Execution) {
	return func(e *contract.Execution) {
		for _, id := range ids {
			e.Pending = append(e.Pending, contract.Pending{ID: id, Kind: kind, Tool: "pay", ArgumentsDigest: contract.Digest(nil)})
		}
	}
}

// answers adds an answer, which is a new generation of the object.
func (f *flight) answers(ids ...string) *flight {
	for _, id := range ids {
		f.run.Spec.Resolutions = append(f.run.Spec.Resolutions, v1alpha1.Resolution{ID: id, Decision: contract.DecisionApprove, By: "ann"})
	}
	f.run.Generation++
	return f
}

func TestDecideWaitsForAnAnswer(t *testing.T) {
	approval := waits(contract.PendingApproval, "1-1-aa")
	another := func(e *contract.Execution) { e.BundleDigest = contract.Digest(nil) }
	tests := map[string]struct {
		make        func(*flight)
		wantVerb    agentrun.Verb
		wantReason  string
		wantMessage string
		wantPending string
	}{
		"an approval": {
			func(f *flight) { f.claim(approval) }, agentrun.VerbWait, v1alpha1.ReasonAwaitingApproval,
			"the call 1-1-aa of tool pay waits for an approval: look at it in status.pending, and answer with codeact approve r 1-1-aa -n " +
				"team-a, or codeact deny", "1-1-aa",
		},
		"a result": {
			func(f *flight) { f.claim(waits(contract.PendingResult, "1-1-aa")) }, agentrun.VerbWait, v1alpha1.ReasonAwaitingResult,
			"waits for its result: give it with codeact approve r 1-1-aa -n team-a --result JSON", "1-1-aa",
		},
		"two": {
			func(f *flight) { f.claim(waits(contract.PendingApproval, "1-1-aa", "1-2-bb")) }, agentrun.VerbWait,
			v1alpha1.ReasonAwaitingApproval, "; 1 more wait", "1-1-aa 1-2-bb",
		},
		"one of two is answered": {
			func(f *flight) { f.claim(waits(contract.PendingApproval, "1-1-aa", "1-2-bb")).answers("1-1-aa") }, agentrun.VerbWait,
			v1alpha1.ReasonAwaitingApproval, "the call 1-2-bb", "1-2-bb",
		},
		"answered, and the pod has not seen it": {
			func(f *flight) { f.claim(approval).answers("1-1-aa") }, agentrun.VerbWait, v1alpha1.ReasonRunning, "", "",
		},
		"an answer to another generation's": {
			func(f *flight) { f.claim(approval).answers("2-1-aa") }, agentrun.VerbWait, v1alpha1.ReasonAwaitingApproval, "", "1-1-aa",
		},
		"answered and gone on": {
			func(f *flight) { f.claim(nil).answers("1-1-aa") }, agentrun.VerbWait, v1alpha1.ReasonRunning, "", "",
		},
		"an answer while nothing waits": {
			func(f *flight) { f.answers("1-1-aa") }, agentrun.VerbWait, v1alpha1.ReasonRunning, "", "",
		},
		"by another pod": {
			func(f *flight) { f.claim(approval); f.pod.UID = "pod-2" }, agentrun.VerbStop, "", "another pod", "",
		},
		"about another bundle": {
			func(f *flight) { f.claim(both(approval, another)) }, agentrun.VerbWait, v1alpha1.ReasonRunning, "", "",
		},
		"cancelled meanwhile": {
			func(f *flight) { f.claim(approval); f.run.Spec.Cancel = true }, agentrun.VerbStop, v1alpha1.ReasonStopping, "", "",
		},
		"the pod is lost": {
			func(f *flight) { f.claim(approval).gone() }, agentrun.VerbSettle, "Interrupted", "", "",
		},
		"the pod is lost, and an earlier call may have happened": {
			func(f *flight) { f.claim(both(approval, transfer(contract.CallDispatched))).gone() }, agentrun.VerbSettle, "EffectsAmbiguous", "", "",
		},
		"the pod is lost with the call in its journal": {
			func(f *flight) { f.claim(both(approval, transfer(contract.CallAwaiting))).gone() }, agentrun.VerbSettle, "Interrupted", "", "",
		},
		"cancelled, and the pod is gone": {
			func(f *flight) { f.claim(approval).gone(); f.run.Spec.Cancel = true }, agentrun.VerbSettle, "Cancelled", "", "",
		},
		"the end by the termination message": {
			func(f *flight) {
				f.claim(approval).says("Completed", 0, both(approval, succeed))
			}, agentrun.VerbSettle, "Succeeded", "", "",
		},
		"the end, whatever the report still says": {
			func(f *flight) { f.claim(both(approval, succeed)) }, agentrun.VerbSettle, "Succeeded", "", "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := launched(t)
			f.run.Status.Pending = []contract.Pending{{ID: "stale"}}
			tc.make(f)
			op, s := settings.Default(), f.snapshot(now)
			p := agentrun.Decide(op, s)
			after := checkSettled(t, op, s, p, agentrun.Done{})
			c := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionSucceeded)
			if p.Verb != tc.wantVerb || tc.wantReason != "" && c.Reason != tc.wantReason || !strings.Contains(c.Message, tc.wantMessage) {
				t.Errorf("%s %s (%s)", p.Verb, c.Reason, c.Message)
			}
			if got := idsOf(after.Status.Pending); got != tc.wantPending {
				t.Errorf("status.pending %q, want %q", got, tc.wantPending)
			}
			if after.Status.ObservedGeneration != f.run.Generation || after.Status.ExecutionGeneration != 1 {
				t.Errorf("generations %d and %d", after.Status.ObservedGeneration, after.Status.ExecutionGeneration)
			}
			if e := after.Status.Execution; p.Verb == agentrun.VerbSettle && e != nil && len(e.Pending) > 0 {
				t.Errorf("the report of an ended run still has %+v wait", e.Pending)
			}
			if n := len(after.Status.Pending); n > 0 && !meta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.ConditionReconciling) {
				t.Error("a run that waits is not Reconciling")
			}
		})
	}
}

func idsOf(pending []contract.Pending) string {
	var ids []string
	for _, p := range pending {
		ids = append(ids, p.ID)
	}
	return strings.Join(ids, " ")
}

// TestAnswersStartNothing adds an answer to a run that has ended.
func TestAnswersStartNothing(t *testing.T) {
	f := settled(t, launched(t).claim(succeed).end("Completed", 0, "")).answers("1-1-aa")
	before, _ := f.run.ExecutionDigest()
	if before != f.run.Status.ExecutionDigest {
		t.Error("an answer changes the execution digest")
	}
	op, s := settings.Default(), f.snapshot(now)
	p := agentrun.Decide(op, s)
	if p.Verb != agentrun.VerbRest {
		t.Fatalf("verb %q", p.Verb)
	}
	want := f.run.Status.DeepCopy()
	want.ObservedGeneration = f.run.Generation
	for i := range want.Conditions {
		want.Conditions[i].ObservedGeneration = f.run.Generation
	}
	if diff := cmp.Diff(*want, agentrun.Settle(op, s, p, agentrun.Done{})); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// TestSupersedeEndsTheWait edits a run that waits.
func TestSupersedeEndsTheWait(t *testing.T) {
	f := launched(t).claim(waits(contract.PendingApproval, "1-1-aa"))
	f.run.Status.Pending = f.run.Status.Execution.Pending
	f.pod.DeletionTimestamp = &metav1.Time{Time: now}
	f.run.Spec.Code.Source = echo
	f.run.Generation++
	op := settings.Default()
	s := f.snapshot(now)
	p := agentrun.Decide(op, s)
	if after := checkSettled(t, op, s, p, agentrun.Done{}); p.Verb != agentrun.VerbWait || len(after.Status.Pending) > 0 {
		t.Errorf("%s with %+v", p.Verb, after.Status.Pending)
	}
	f.gone()
	s = f.snapshot(now.Add(time.Second))
	p = agentrun.Decide(op, s)
	after := checkSettled(t, op, s, p, agentrun.Done{})
	if p.Verb != agentrun.VerbSupersede || after.Status.Previous == nil || len(after.Status.Previous.Pending)+len(after.Status.Pending) > 0 {
		t.Errorf("%s with %+v", p.Verb, after.Status)
	}
}

// TestCodeNeverWaitsForApproval is BR38: an agent whose only tool needs approvals.
// In protocol Code the tool is not in the projection, and the run waits for its grant
// like for any other, and for nobody's approval.
func TestCodeNeverWaitsForApproval(t *testing.T) {
	asks := *search().Approval(contract.ApprovalRequired).Obj()
	tests := map[string]struct {
		since    time.Time
		wantVerb agentrun.Verb
	}{
		"at once":                 {now, agentrun.VerbWait},
		"after its startDeadline": {now.Add(-time.Minute), agentrun.VerbSettle},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			op := settings.Default()
			s := agentrun.Snapshot{
				Now: now, Run: waitingSince(agentRun("search"), tc.since).Obj(),
				Models: []v1alpha1.ToolGrant{*gpt().Obj()}, Grants: []v1alpha1.ToolGrant{asks},
			}
			p := agentrun.Decide(op, s)
			after := checkSettled(t, op, s, p, agentrun.Done{})
			c := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionSucceeded)
			if p.Verb != tc.wantVerb || c.Reason != string(contract.ReasonToolsNotGranted) || !strings.Contains(c.Message, "search (rule Approval)") {
				t.Errorf("%s %s: %s", p.Verb, c.Reason, c.Message)
			}
			if len(after.Status.Pending) > 0 || p.Pin != nil {
				t.Errorf("pending %+v, pin %+v", after.Status.Pending, p.Pin)
			}
		})
	}
}
