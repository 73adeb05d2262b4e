package agentrun_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

// TestSlim holds what the cache keeps of a run to what the decision needs: a slim
// run gives the plan and the status that the whole one gives.
func TestSlim(t *testing.T) {
	ttl := func(f *flight) { f.run.Spec.TTLAfterFinished = &metav1.Duration{Duration: time.Minute} }
	tests := map[string]struct {
		make     func(*flight)
		at       time.Duration
		wantSlim bool
	}{
		"under way":            {make: func(f *flight) { f.claim(nil) }},
		"ended":                {make: func(f *flight) { settled(t, f.claim(succeed)) }, wantSlim: true},
		"ended, with a ttl":    {make: func(f *flight) { ttl(settled(t, f.claim(succeed))) }, wantSlim: true},
		"ended, and its ttl":   {make: func(f *flight) { ttl(settled(t, f.claim(succeed))) }, at: time.Hour, wantSlim: true},
		"ended, being deleted": {make: func(f *flight) { settled(t, f.claim(succeed)).run.DeletionTimestamp = &metav1.Time{Time: now} }, wantSlim: true},
		"ended, then edited": {make: func(f *flight) {
			settled(t, f.claim(succeed).end("Completed", 0, "")).run.Spec.Code.Source += "again"
			f.run.Generation++
		}},
		"ended, then cancelled": {make: func(f *flight) { settled(t, f.claim(succeed)).run.Spec.Cancel = true; f.run.Generation++ }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := launched(t)
			f.run.Spec.Code.Source += " // " + strings.Repeat("x", 2000)
			f.run.Status.ExecutionDigest, _ = f.run.ExecutionDigest()
			tc.make(f)
			op, whole := settings.Default(), f.snapshot(now.Add(tc.at))
			want := agentrun.Decide(op, whole)
			slim := whole
			slim.Run = whole.Run.DeepCopy()
			agentrun.Slim(slim.Run)
			agentrun.Slim(slim.Run) // the cache may do it twice
			if d := cmp.Diff(want, agentrun.Decide(op, slim)); d != "" {
				t.Errorf("plan of the slim run (-whole +slim):\n%s", d)
			}
			b, err := json.Marshal(slim.Run)
			if err != nil {
				t.Fatal(err)
			}
			if got := !strings.Contains(string(b), "xxxx"); got != tc.wantSlim {
				t.Errorf("slim: %v, want %v", got, tc.wantSlim)
			}
			if !tc.wantSlim {
				return
			}
			if d := cmp.Diff(slim.Run.Status, agentrun.Settle(op, slim, want, agentrun.Done{})); d != "" {
				t.Errorf("a look at the slim run changes its status (-before +after):\n%s", d)
			}
		})
	}
}
