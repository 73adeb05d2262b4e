package agentrun_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/controllers/status"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// checkSettled settles the plan and holds the kstatus invariants; a plan that
// only waits must, on a second look, find nothing to write.
func checkSettled(t *testing.T, op settings.Operator, s agentrun.Snapshot, p agentrun.Plan, done agentrun.Done) *v1alpha1.AgentRun {
	t.Helper()
	after := s.Run.DeepCopy()
	after.Status = agentrun.Settle(op, s, p, done)
	if p.Verb == agentrun.VerbIgnore || p.Verb == agentrun.VerbExpire {
		if d := cmp.Diff(s.Run, after); d != "" {
			t.Errorf("%s changes the status: %s", p.Verb, d)
		}
		return after
	}
	if err := status.CheckKstatus(after.Generation, after.Status.ObservedGeneration, after.Status.Conditions, v1alpha1.ConditionSucceeded); err != nil {
		t.Errorf("%s: %v", p.Verb, err)
	}
	if p.Verb == agentrun.VerbWait || p.Verb == agentrun.VerbSettle || p.Verb == agentrun.VerbRest {
		again := s
		again.Run = after
		if d := cmp.Diff(after.Status, agentrun.Settle(op, again, agentrun.Decide(op, again), agentrun.Done{})); d != "" {
			t.Errorf("a second look changes the status: %s", d)
		}
	}
	return after
}
