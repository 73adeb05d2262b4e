package agentrun_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
)

func TestDecideLost(t *testing.T) {
	launches := func(n int64) func(*flight) { return func(f *flight) { f.run.Status.Launches = n; f.gone() } }
	runFlights(t, map[string]flightTest{
		"gone before its claim: launched again": {make: launches(1), wantVerb: agentrun.VerbLaunch, wantMessage: "launch 2"},
		"and once more":                         {make: launches(2), wantVerb: agentrun.VerbLaunch, wantMessage: "launch 3"},
		"and then no more":                      {make: launches(3), wantVerb: agentrun.VerbSettle, wantReason: "WorkerLost"},
		"ended before its claim: removed first": {
			make: func(f *flight) { f.end("Error", 3, "") }, wantVerb: agentrun.VerbStop, wantMessage: "exit code 3",
		},
		"ended for the last time": {
			make: func(f *flight) { f.run.Status.Launches = 3; f.end("Error", 3, "") }, wantVerb: agentrun.VerbSettle,
			wantReason: "WorkerLost", wantMessage: "exit code 3",
		},
		"gone after its claim": {
			make: func(f *flight) { f.claim(nil).gone() }, wantVerb: agentrun.VerbSettle, wantReason: "Interrupted", wantMessage: "is gone",
		},
		"gone after its claim with a call under way": {
			make:     func(f *flight) { f.claim(transfer(contract.CallDispatched)).gone() },
			wantVerb: agentrun.VerbSettle, wantReason: "EffectsAmbiguous", wantMessage: "transfer (uid-of-r:1:1)",
		},
		"gone after its claim with calls that are proven": {
			make:     func(f *flight) { f.claim(both(transfer(contract.CallCompleted), transfer(contract.CallFailed))).gone() },
			wantVerb: agentrun.VerbSettle, wantReason: "Interrupted",
		},
		"out of memory after its claim": {
			make: func(f *flight) { f.claim(nil).end("OOMKilled", 137, "") }, wantVerb: agentrun.VerbSettle,
			wantReason: "Interrupted", wantMessage: "OOMKilled, exit code 137",
		},
		"evicted after its claim": {
			make: func(f *flight) {
				f.claim(nil)
				f.pod.Status.Phase, f.pod.Status.Reason, f.pod.Status.Message = corev1.PodFailed, "Evicted", "low on memory"
			},
			wantVerb: agentrun.VerbSettle, wantReason: "Interrupted", wantMessage: "Evicted: low on memory",
		},
		"cancelled, gone, unclaimed": {
			make: func(f *flight) { f.run.Spec.Cancel = true; f.gone() }, wantVerb: agentrun.VerbSettle, wantReason: "Cancelled",
		},
		"cancelled, gone, claimed": {
			make: func(f *flight) { f.claim(nil).gone(); f.run.Spec.Cancel = true }, wantVerb: agentrun.VerbSettle, wantReason: "Cancelled",
		},
		"being deleted with a call under way": {
			make: func(f *flight) {
				f.claim(transfer(contract.CallDispatched)).gone()
				f.run.DeletionTimestamp = &metav1.Time{Time: now}
			},
			wantVerb: agentrun.VerbSettle, wantReason: "EffectsAmbiguous", wantMessage: "the run is being deleted",
		},
		"cancelled with a call under way": {
			make:     func(f *flight) { f.claim(transfer(contract.CallDispatched)).gone(); f.run.Spec.Cancel = true },
			wantVerb: agentrun.VerbSettle, wantReason: "EffectsAmbiguous",
		},
		"timed out with a call under way": {
			make: func(f *flight) { f.claim(transfer(contract.CallUncertain)).gone() }, at: 65 * time.Second,
			wantVerb: agentrun.VerbSettle, wantReason: "EffectsAmbiguous", wantMessage: "timeout of 1m0s",
		},
		"a namesake that is not ours counts for nothing": {
			make:     func(f *flight) { f.claim(nil); f.pod.OwnerReferences = nil },
			wantVerb: agentrun.VerbSettle, wantReason: "Interrupted",
		},
		"a namesake with another identity, too": {
			make:     func(f *flight) { f.claim(nil); f.pod.Spec.ServiceAccountName = "default" },
			wantVerb: agentrun.VerbSettle, wantReason: "Interrupted",
		},
		"an edit after the pod is gone opens the next generation": {
			make:     func(f *flight) { f.claim(nil).gone(); f.run.Spec.Code.Source = echo; f.run.Generation++ },
			wantVerb: agentrun.VerbSupersede,
		},
	})
}
