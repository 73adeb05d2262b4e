package agentrun_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// flight is a run that was launched ten seconds ago, and its pod.
type flight struct {
	run *v1alpha1.AgentRun
	pod *corev1.Pod
	pin *agentrun.Pin
}

const podUID = "pod-1"

// launched launches a run by its own plan.
func launched(t *testing.T) *flight {
	t.Helper()
	op := settings.Default()
	s := agentrun.Snapshot{
		Now: now.Add(-10 * time.Second), Run: builders.MakeRun("r").Code(calling, "search").Timeout(time.Minute).Obj(),
		Grants: []v1alpha1.ToolGrant{*search().Obj()},
	}
	p := agentrun.Decide(op, s)
	if p.Verb != agentrun.VerbLaunch {
		t.Fatalf("verb %q", p.Verb)
	}
	s.Run.Status = agentrun.Settle(op, s, p, agentrun.Done{Pinned: true, Launched: true})
	pod := agentrun.NewPod(op.Runtime, s.Run, p.Pin)
	pod.UID, pod.CreationTimestamp = podUID, metav1.NewTime(s.Now)
	pod.Status.Phase = corev1.PodRunning
	return &flight{s.Run, pod, p.Pin}
}

func (f *flight) report(edit func(*contract.Execution)) *contract.Execution {
	e := &contract.Execution{
		Generation: 1, RunUID: string(f.run.UID), BundleDigest: f.pin.Digest,
		Claim: contract.Claim{PodName: f.pod.Name, PodUID: podUID, Time: "2026-03-01T11:59:51Z"},
	}
	if edit != nil {
		edit(e)
	}
	return e
}

func succeed(e *contract.Execution) { _ = e.Succeed(json.RawMessage(`{"n":1}`)) }

func fail(r contract.Reason, msg string) func(*contract.Execution) {
	return func(e *contract.Execution) { e.Fail(contract.Faultf(r, "%s", msg).At(2, 7)) }
}

func transfer(s contract.CallState) func(*contract.Execution) {
	return func(e *contract.Execution) {
		e.Calls = append(e.Calls, contract.Call{Seq: 1, ID: "uid-of-r:1:1", Tool: "transfer", Effect: contract.EffectEffectful, State: s})
	}
}

func both(a, b func(*contract.Execution)) func(*contract.Execution) {
	return func(e *contract.Execution) { a(e); b(e) }
}

// claim puts a report into the run's status.
func (f *flight) claim(edit func(*contract.Execution)) *flight {
	f.run.Status.Execution = f.report(edit)
	return f
}

// end has the container end with a message.
func (f *flight) end(reason string, code int32, message string) *flight {
	f.pod.Status.Phase = corev1.PodFailed
	if code == 0 {
		f.pod.Status.Phase = corev1.PodSucceeded
	}
	f.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: contract.RuntimeContainer, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, Message: message}}}}
	return f
}

// says ends the container with a report as its termination message.
func (f *flight) says(reason string, code int32, edit func(*contract.Execution)) *flight {
	b, _ := f.report(edit).TerminationMessage()
	return f.end(reason, code, string(b))
}

func (f *flight) gone() *flight { f.pod = nil; return f }

func (f *flight) snapshot(at time.Time) agentrun.Snapshot {
	s := agentrun.Snapshot{Now: at, Run: f.run, Pod: f.pod}
	if f.pod == nil {
		s.Pin = f.pin.ConfigMap(f.run)
	}
	return s
}

type flightTest struct {
	make        func(*flight)
	at          time.Duration // after now; the launch was 10 s before, the timeout is 1 min
	wantVerb    agentrun.Verb
	wantReason  string
	wantMessage string
	wantSuccess bool
	wantRequeue time.Duration // 0: not looked at
}

func runFlights(t *testing.T, tests map[string]flightTest) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := launched(t)
			tc.make(f)
			op := settings.Default()
			s := f.snapshot(now.Add(tc.at))
			p := agentrun.Decide(op, s)
			reason, message := p.Reason, p.Message
			if p.Outcome != nil {
				reason, message = p.Outcome.Reason, p.Outcome.Message
			}
			if p.Verb != tc.wantVerb || (tc.wantReason != "" && reason != tc.wantReason) {
				t.Fatalf("%s %s (%s), want %s %s", p.Verb, reason, message, tc.wantVerb, tc.wantReason)
			}
			if !strings.Contains(message, tc.wantMessage) {
				t.Errorf("message %q, want %q in it", message, tc.wantMessage)
			}
			if tc.wantRequeue != 0 && p.RequeueAfter != tc.wantRequeue {
				t.Errorf("requeue after %s, want %s", p.RequeueAfter, tc.wantRequeue)
			}
			after := checkSettled(t, op, s, p, agentrun.Done{Pinned: true, Launched: p.Verb == agentrun.VerbLaunch})
			got := meta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.ConditionSucceeded)
			if got != tc.wantSuccess {
				t.Errorf("Succeeded is %v, want %v", got, tc.wantSuccess)
			}
			if (after.Status.OutputDigest != "") != tc.wantSuccess {
				t.Errorf("output digest %q in a run with success %v", after.Status.OutputDigest, tc.wantSuccess)
			}
		})
	}
}

func TestDecideUnderWay(t *testing.T) {
	pending := func(f *flight) { f.pod.Status.Phase = corev1.PodPending }
	waiting := func(reason, msg string) func(*flight) {
		return func(f *flight) {
			pending(f)
			f.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: contract.RuntimeContainer, State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: msg}}}}
		}
	}
	unschedulable := func(f *flight) {
		pending(f)
		f.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes"}}
	}
	runFlights(t, map[string]flightTest{
		"running, unclaimed": {
			make: func(f *flight) {}, wantVerb: agentrun.VerbWait, wantReason: v1alpha1.ReasonRunning, wantRequeue: 65 * time.Second,
		},
		"running, claimed": {
			make: func(f *flight) { f.claim(nil) }, wantVerb: agentrun.VerbWait, wantReason: v1alpha1.ReasonRunning, wantRequeue: 65 * time.Second,
		},
		"just created is no trouble": {
			make: waiting("ContainerCreating", ""), wantVerb: agentrun.VerbWait, wantReason: v1alpha1.ReasonRunning, wantRequeue: 20 * time.Second,
		},
		"created for long": {
			make: waiting("ContainerCreating", ""), at: 20 * time.Second, wantVerb: agentrun.VerbWait, wantReason: v1alpha1.ReasonPending,
			wantMessage: "Secret",
		},
		"unschedulable": {make: unschedulable, wantVerb: agentrun.VerbWait, wantReason: v1alpha1.ReasonPending, wantMessage: "0/1 nodes"},
		"no image": {
			make: waiting("ErrImagePull", "not found"), wantVerb: agentrun.VerbWait, wantReason: v1alpha1.ReasonPending, wantMessage: "not found",
		},
		"a container that cannot be made": {
			make: waiting("CreateContainerConfigError", "bad"), wantVerb: agentrun.VerbWait, wantReason: v1alpha1.ReasonPending, wantMessage: "bad",
		},
		"unschedulable beyond the timeout is stopped": {
			make: unschedulable, at: 65 * time.Second, wantVerb: agentrun.VerbStop, wantReason: v1alpha1.ReasonStopping,
		},
		"beyond the timeout, and gone": {
			make: func(f *flight) { f.gone() }, at: 65 * time.Second, wantVerb: agentrun.VerbSettle, wantReason: "DeadlineExceeded",
		},
		"a node that does not answer ends the wait, too": {
			make: func(f *flight) { f.claim(nil); f.pod.DeletionTimestamp = &metav1.Time{Time: now} }, at: 140 * time.Second,
			wantVerb: agentrun.VerbSettle, wantReason: "DeadlineExceeded",
		},
		"being deleted by somebody": {
			make:     func(f *flight) { f.claim(nil); f.pod.DeletionTimestamp = &metav1.Time{Time: now} },
			wantVerb: agentrun.VerbWait, wantReason: v1alpha1.ReasonRunning,
		},
		"cancel stops it": {
			make:     func(f *flight) { f.claim(nil); f.run.Spec.Cancel = true },
			wantVerb: agentrun.VerbStop, wantReason: v1alpha1.ReasonStopping,
		},
		"cancel waits for it to end": {
			make: func(f *flight) {
				f.claim(nil)
				f.run.Spec.Cancel, f.pod.DeletionTimestamp = true, &metav1.Time{Time: now}
			},
			wantVerb: agentrun.VerbWait, wantReason: v1alpha1.ReasonStopping,
		},
		"a deletion that a finalizer holds up stops it": {
			make:     func(f *flight) { f.claim(nil); f.run.DeletionTimestamp = &metav1.Time{Time: now} },
			wantVerb: agentrun.VerbStop, wantReason: v1alpha1.ReasonStopping,
		},
		"a deletion stops it in spite of an edit": {
			make: func(f *flight) {
				f.claim(nil).gone()
				f.run.Spec.Code.Source, f.run.DeletionTimestamp = echo, &metav1.Time{Time: now}
				f.run.Generation++
			},
			wantVerb: agentrun.VerbSettle, wantReason: "Cancelled",
		},
		"an edit stops it": {
			make:     func(f *flight) { f.claim(nil); f.run.Spec.Code.Source = echo; f.run.Generation++ },
			wantVerb: agentrun.VerbStop, wantReason: v1alpha1.ReasonStopping,
		},
		"an edit of what starts nothing": {
			make: func(f *flight) {
				f.run.Spec.StartDeadline, f.run.Spec.TTLAfterFinished = &metav1.Duration{}, &metav1.Duration{Duration: time.Hour}
				f.run.Generation++
			},
			wantVerb: agentrun.VerbWait, wantReason: v1alpha1.ReasonRunning,
		},
	})
}

func TestDecideReported(t *testing.T) {
	runFlights(t, map[string]flightTest{
		"success settles while the pod still runs": {
			make: func(f *flight) { f.claim(succeed) }, wantVerb: agentrun.VerbSettle, wantReason: "Succeeded", wantSuccess: true,
		},
		"success of a pod that is gone": {
			make: func(f *flight) { f.claim(succeed).gone() }, wantVerb: agentrun.VerbSettle, wantReason: "Succeeded", wantSuccess: true,
		},
		"a late cancel changes nothing": {
			make: func(f *flight) { f.claim(succeed); f.run.Spec.Cancel = true }, wantVerb: agentrun.VerbSettle, wantReason: "Succeeded", wantSuccess: true,
		},
		"success, then out of memory on the way out": {
			make: func(f *flight) { f.claim(succeed).end("OOMKilled", 137, "") }, wantVerb: agentrun.VerbSettle, wantReason: "Succeeded", wantSuccess: true,
		},
		"a failure, verbatim, with its place": {
			make:     func(f *flight) { f.claim(fail(contract.ReasonJavaScriptError, "boom")) },
			wantVerb: agentrun.VerbSettle, wantReason: "JavaScriptError", wantMessage: "main.js:2:7: boom",
		},
		"a failure names what may have happened": {
			make:     func(f *flight) { f.claim(both(transfer(contract.CallUncertain), fail(contract.ReasonTimeout, "late"))) },
			wantVerb: agentrun.VerbSettle, wantReason: "Timeout", wantMessage: "transfer (uid-of-r:1:1)",
		},
		"the second way out": {
			make:     func(f *flight) { f.claim(nil).says("Completed", 0, succeed) },
			wantVerb: agentrun.VerbSettle, wantReason: "Succeeded", wantSuccess: true,
		},
		"the second way out with a failure": {
			make:     func(f *flight) { f.claim(nil).says("Error", 1, fail(contract.ReasonProhibited, "no")) },
			wantVerb: agentrun.VerbSettle, wantReason: "Prohibited",
		},
		"the second way out does not hide a call that it leaves out": {
			make: func(f *flight) {
				f.claim(transfer(contract.CallDispatched)).says("Error", 1, fail(contract.ReasonTimeout, "late"))
			},
			wantVerb: agentrun.VerbSettle, wantReason: "Timeout", wantMessage: "transfer (uid-of-r:1:1)",
		},
		"the second way out knows the outcome of a call": {
			make: func(f *flight) {
				f.claim(transfer(contract.CallDispatched)).
					says("Error", 1, both(transfer(contract.CallCompleted), fail(contract.ReasonJavaScriptError, "boom")))
			},
			wantVerb: agentrun.VerbSettle, wantReason: "JavaScriptError", wantMessage: "main.js:2:7: boom",
		},
		"the second way out without the output": {
			make: func(f *flight) {
				f.claim(nil).says("Completed", 0, func(e *contract.Execution) {
					_ = e.Succeed(json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`))
				})
			},
			wantVerb: agentrun.VerbSettle, wantReason: "Succeeded", wantSuccess: true, wantMessage: "only its digest is known",
		},
	})
}

func TestDecideDistrusts(t *testing.T) {
	runFlights(t, map[string]flightTest{
		"a pod that says Succeeded without a report": {
			make:     func(f *flight) { f.claim(nil).end("Completed", 0, "") },
			wantVerb: agentrun.VerbSettle, wantReason: "Interrupted", wantMessage: "exit code 0",
		},
		"a message that is no report": {
			make:     func(f *flight) { f.claim(nil).end("Completed", 0, "all went well") },
			wantVerb: agentrun.VerbSettle, wantReason: "Interrupted",
		},
		"a message that was cut short": {
			make: func(f *flight) {
				b, _ := f.report(succeed).TerminationMessage()
				f.claim(nil).end("Completed", 0, string(b[:len(b)-9]))
			},
			wantVerb: agentrun.VerbSettle, wantReason: "Interrupted",
		},
		"a report of success by a container that was killed": {
			make:     func(f *flight) { f.claim(nil).says("OOMKilled", 0, succeed) },
			wantVerb: agentrun.VerbSettle, wantReason: "Interrupted", wantMessage: "OOMKilled",
		},
		"a report of success without a claim": {
			make:     func(f *flight) { f.says("Completed", 0, succeed) },
			wantVerb: agentrun.VerbStop,
		},
		"a report by another pod": {
			make: func(f *flight) {
				f.claim(nil).says("Completed", 0, both(succeed, func(e *contract.Execution) { e.Claim.PodUID = "pod-2" }))
			},
			wantVerb: agentrun.VerbSettle, wantReason: "Interrupted",
		},
		"a report about another generation": {
			make: func(f *flight) {
				f.claim(nil).says("Completed", 0, both(succeed, func(e *contract.Execution) { e.Generation = 2 }))
			},
			wantVerb: agentrun.VerbSettle, wantReason: "Interrupted",
		},
		"a report about another run": {
			make:     func(f *flight) { f.claim(both(succeed, func(e *contract.Execution) { e.RunUID = "x" })).gone() },
			wantVerb: agentrun.VerbSettle, wantReason: "Interrupted",
		},
		"a report about another bundle": {
			make: func(f *flight) {
				f.claim(both(succeed, func(e *contract.Execution) { e.BundleDigest = contract.Digest(nil) })).gone()
			},
			wantVerb: agentrun.VerbSettle, wantReason: "Interrupted",
		},
		"an output that is not the one of its digest": {
			make:     func(f *flight) { f.claim(both(succeed, func(e *contract.Execution) { e.Output = `2` })).gone() },
			wantVerb: agentrun.VerbSettle, wantReason: "Interrupted",
		},
		"an unknown reason": {
			make: func(f *flight) { f.claim(fail("Whatever", "")).gone() }, wantVerb: agentrun.VerbSettle, wantReason: "Interrupted",
		},
		"a second pod is stopped": {
			make:     func(f *flight) { f.claim(nil); f.pod.UID = "pod-2" },
			wantVerb: agentrun.VerbStop, wantMessage: "another pod",
		},
		"a second pod is stopped even when the first has reported": {
			make:     func(f *flight) { f.claim(succeed); f.pod.UID = "pod-2" },
			wantVerb: agentrun.VerbStop, wantMessage: "another pod",
		},
		"a second pod that has ended does not undo the report of the first": {
			make:     func(f *flight) { f.claim(succeed); f.pod.UID = "pod-2"; f.end("Error", 1, "") },
			wantVerb: agentrun.VerbSettle, wantReason: "Succeeded", wantSuccess: true,
		},
		"a second pod that has ended, and what the first did": {
			make: func(f *flight) {
				f.claim(transfer(contract.CallDispatched))
				f.pod.UID = "pod-2"
				f.says("Completed", 0, succeed)
			},
			wantVerb: agentrun.VerbSettle, wantReason: "EffectsAmbiguous", wantMessage: "transfer (uid-of-r:1:1)",
		},
	})
}
