package agentrun_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// settled brings a flight to the end that its state leads to.
func settled(t *testing.T, f *flight) *flight {
	t.Helper()
	op := settings.Default()
	s := f.snapshot(now)
	p := agentrun.Decide(op, s)
	if p.Verb != agentrun.VerbSettle {
		t.Fatalf("verb %q, want Settle", p.Verb)
	}
	f.run.Status = agentrun.Settle(op, s, p, agentrun.Done{})
	return f
}

func TestDecideEnded(t *testing.T) {
	runFlights(t, map[string]flightTest{
		"rests": {
			make: func(f *flight) { settled(t, f.claim(succeed)) }, wantVerb: agentrun.VerbRest, wantSuccess: true,
		},
		"rests when it is cancelled afterwards": {
			make:     func(f *flight) { settled(t, f.claim(succeed)); f.run.Spec.Cancel = true; f.run.Generation++ },
			wantVerb: agentrun.VerbRest, wantSuccess: true,
		},
		"rests when a cancel is taken back": {
			make: func(f *flight) {
				f.run.Spec.Cancel = true
				settled(t, f.claim(nil).gone())
				f.run.Spec.Cancel = false
				f.run.Generation++
			},
			wantVerb: agentrun.VerbRest,
		},
		"rests when its pod is deleted": {
			make: func(f *flight) { settled(t, f.claim(succeed)).gone() }, wantVerb: agentrun.VerbRest, wantSuccess: true,
		},
		"rests until its ttl": {
			make: func(f *flight) {
				settled(t, f.claim(succeed)).run.Spec.TTLAfterFinished = &metav1.Duration{Duration: time.Minute}
			},
			at: 20 * time.Second, wantVerb: agentrun.VerbRest, wantSuccess: true, wantRequeue: 40 * time.Second,
		},
		"is deleted after its ttl": {
			make: func(f *flight) {
				settled(t, f.claim(succeed)).run.Spec.TTLAfterFinished = &metav1.Duration{Duration: time.Minute}
			},
			at: time.Minute, wantVerb: agentrun.VerbExpire, wantSuccess: true,
		},
		"is executed again when the spec says so": {
			make: func(f *flight) {
				settled(t, f.claim(succeed).end("Completed", 0, "")).run.Spec.Code.Source = echo
				f.run.Generation++
			},
			wantVerb: agentrun.VerbSupersede,
		},
		"is executed again only after its pod has ended": {
			make:     func(f *flight) { settled(t, f.claim(succeed)).run.Spec.Code.Source = echo; f.run.Generation++ },
			wantVerb: agentrun.VerbStop,
		},
		"is left alone while it is deleted": {
			make: func(f *flight) {
				settled(t, f.claim(succeed)).run.Spec.Code.Source = echo
				f.run.DeletionTimestamp = &metav1.Time{Time: now}
			},
			wantVerb: agentrun.VerbIgnore, wantSuccess: true,
		},
	})
}

func TestSupersede(t *testing.T) {
	op := settings.Default()
	tests := map[string]struct {
		make         func(*flight)
		wantPrevious func(*contract.Execution)
		wantNone     bool
	}{
		"an execution that was never claimed leaves nothing": {make: func(f *flight) { f.gone() }, wantNone: true},
		"one that succeeded leaves its report without the output": {
			make: func(f *flight) { settled(t, f.claim(succeed).end("Completed", 0, "")) }, wantPrevious: both(succeed, func(e *contract.Execution) { e.Output = "" }),
		},
		"one that was cut off says so, with its calls": {
			make: func(f *flight) { f.claim(transfer(contract.CallDispatched)).gone() },
			wantPrevious: both(transfer(contract.CallDispatched), func(e *contract.Execution) {
				e.Fail(contract.Faultf(contract.ReasonSuperseded, "the spec was changed while this execution ran"))
			}),
		},
		"one whose last word came by the second way": {
			make:         func(f *flight) { f.claim(nil).says("Error", 1, fail(contract.ReasonCancelled, "stopped")) },
			wantPrevious: fail(contract.ReasonCancelled, "stopped"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := launched(t)
			want := f.report(tc.wantPrevious)
			tc.make(f)
			f.run.Spec.Code.Source, f.run.Generation = echo, 2
			s := f.snapshot(now)
			p := agentrun.Decide(op, s)
			if p.Verb != agentrun.VerbSupersede {
				t.Fatalf("verb %q", p.Verb)
			}
			after := checkSettled(t, op, s, p, agentrun.Done{})
			if tc.wantNone {
				want = nil
			}
			if d := cmp.Diff(want, after.Status.Previous); d != "" {
				t.Errorf("previous: %s", d)
			}
			digest, _ := after.ExecutionDigest()
			got := after.Status
			got.Conditions, got.Previous, got.StartTime = nil, nil, nil
			if d := cmp.Diff(v1alpha1.AgentRunStatus{ObservedGeneration: 2, ExecutionGeneration: 2, ExecutionDigest: digest}, got); d != "" {
				t.Errorf("status: %s", d)
			}
			// The next look launches the second generation under another name.
			next := agentrun.Decide(op, agentrun.Snapshot{Now: now, Run: after, Grants: []v1alpha1.ToolGrant{*search().Obj()}})
			if next.Verb != agentrun.VerbLaunch || next.Generation != 2 || next.Pin.Name == f.pin.Name {
				t.Errorf("next: %s of generation %d as %q", next.Verb, next.Generation, next.Pin.Name)
			}
		})
	}
}

// TestHeal holds that a lost status write is made up from the pod and the pin.
func TestHeal(t *testing.T) {
	op := settings.Default()
	lost := func(f *flight) agentrun.Snapshot {
		f.run.Status = v1alpha1.AgentRunStatus{}
		return agentrun.Snapshot{Now: now, Run: f.run, Pod: f.pod, Pin: f.pin.ConfigMap(f.run)}
	}
	t.Run("the pod is found again", func(t *testing.T) {
		f := launched(t)
		want := f.run.Status.DeepCopy()
		s := lost(f)
		after := checkSettled(t, op, s, agentrun.Decide(op, s), agentrun.Done{})
		got := after.Status
		want.Conditions, got.Conditions, want.StartTime, got.StartTime = nil, nil, nil, nil
		if d := cmp.Diff(*want, got); d != "" {
			t.Error(d)
		}
	})
	t.Run("an edit in between ends the old pod first", func(t *testing.T) {
		f := launched(t)
		old := f.run.Status.ExecutionDigest
		s := lost(f)
		s.Run.Spec.Code.Source = echo
		p := agentrun.Decide(op, s)
		if p.Verb != agentrun.VerbStop || p.ExecutionDigest != old {
			t.Errorf("%s of %s, want Stop of %s", p.Verb, p.ExecutionDigest, old)
		}
		s.Run.Status = agentrun.Settle(op, s, p, agentrun.Done{})
		s.Pod = nil
		if p := agentrun.Decide(op, s); p.Verb != agentrun.VerbSupersede {
			t.Errorf("then %s, want Supersede", p.Verb)
		}
	})
	t.Run("a pin of other bytes is not trusted", func(t *testing.T) {
		f := launched(t)
		s := lost(f)
		s.Pin.Data[contract.BundleKey] += " "
		if p := agentrun.Decide(op, s); p.Verb != agentrun.VerbStop {
			t.Errorf("%s, want Stop", p.Verb)
		}
		f.end("Completed", 0, "")
		s.Pod = f.pod
		if p := agentrun.Decide(op, s); p.Verb != agentrun.VerbSettle || p.Outcome.Reason != string(contract.ReasonInterrupted) {
			t.Errorf("%s %+v, want Interrupted", p.Verb, p.Outcome)
		}
	})
	t.Run("a pin that is gone is not made again", func(t *testing.T) {
		f := launched(t).gone()
		s := f.snapshot(now)
		s.Pin = nil
		if p := agentrun.Decide(op, s); p.Verb != agentrun.VerbSettle || p.Outcome.Reason != string(contract.ReasonInterrupted) {
			t.Errorf("%s %+v, want Interrupted", p.Verb, p.Outcome)
		}
	})
}

// TestRefusedLaunch holds what becomes of a pod that the API server refuses.
func TestRefusedLaunch(t *testing.T) {
	op := settings.Default()
	quota := agentrun.Done{Pinned: true, Refused: &agentrun.Refusal{Reason: string(contract.ReasonQuotaExceeded), Message: "exceeded quota: pods"}}
	other := agentrun.Done{Pinned: true, Refused: &agentrun.Refusal{Reason: v1alpha1.ReasonWaiting, Message: "violates PodSecurity"}}
	tests := map[string]struct {
		done       agentrun.Done
		at         time.Duration
		wantStatus metav1.ConditionStatus
		wantReason string
	}{
		"quota: waits":              {done: quota, wantStatus: metav1.ConditionUnknown, wantReason: "QuotaExceeded"},
		"quota: until the deadline": {done: quota, at: time.Minute, wantStatus: metav1.ConditionFalse, wantReason: "QuotaExceeded"},
		"other: waits":              {done: other, wantStatus: metav1.ConditionUnknown, wantReason: "Waiting"},
		"other: until the deadline": {done: other, at: time.Minute, wantStatus: metav1.ConditionFalse, wantReason: "StartDeadlineExceeded"},
		"a pin that is another's": {
			done:       agentrun.Done{Fault: contract.Faultf(contract.ReasonInterrupted, "other bytes")},
			wantStatus: metav1.ConditionFalse, wantReason: "Interrupted",
		},
		"a hiccup":              {done: agentrun.Done{}, wantStatus: metav1.ConditionUnknown, wantReason: "Starting"},
		"one that does not end": {done: agentrun.Done{}, at: time.Minute, wantStatus: metav1.ConditionFalse, wantReason: "StartDeadlineExceeded"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run := waitingSince(builders.MakeRun("r").Code(echo), now).Obj()
			s := agentrun.Snapshot{Now: now.Add(tc.at), Run: run}
			after := run.DeepCopy()
			after.Status = agentrun.Settle(op, s, agentrun.Decide(op, s), tc.done)
			c := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionSucceeded)
			if c.Status != tc.wantStatus || c.Reason != tc.wantReason {
				t.Fatalf("Succeeded is %s %s (%s), want %s %s", c.Status, c.Reason, c.Message, tc.wantStatus, tc.wantReason)
			}
			if after.Status.PodName != "" || after.Status.Launches != 0 {
				t.Errorf("pod %q after %d launches", after.Status.PodName, after.Status.Launches)
			}
			if tc.done.Refused == nil || tc.wantStatus != metav1.ConditionUnknown {
				return
			}
			// The next try launches from the same pin.
			pin := agentrun.Decide(op, s).Pin
			again := agentrun.Snapshot{Now: s.Now.Add(time.Second), Run: after, Pin: pin.ConfigMap(after)}
			p := agentrun.Decide(op, again)
			if p.Verb != agentrun.VerbLaunch || p.Pin.Digest != after.Status.Pinned.Digest {
				t.Errorf("next: %s %+v", p.Verb, p.Outcome)
			}
			var none *corev1.ConfigMap
			again.Pin = none
			if p := agentrun.Decide(op, again); p.Verb != agentrun.VerbSettle || p.Outcome.Reason != "Interrupted" {
				t.Errorf("without its pin: %s %+v", p.Verb, p.Outcome)
			}
		})
	}
}
