// Package agentrun decides and does what an AgentRun asks for: it waits for
// recipe and grants, pins what the run may see, launches the one pod of an
// execution generation, watches it and settles the run from a verified report.
package agentrun

import (
	"slices"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

// check is one small question about a look. It answers with the plan that
// follows, or with nil to let the next check ask.
type check func(*look) *Plan

// always are asked first, in this order.
var always = []check{beingDeleted, specChanged, ended}

// afterLaunch are asked when a pod was launched for this generation. The last
// one always answers.
var afterLaunch = []check{
	claimedByAnother,
	reported,
	unpinned,
	cancelled,
	overdue,
	lost,
	underWay,
}

// beforeLaunch are asked when nothing was launched yet. The last one always
// answers.
var beforeLaunch = []check{
	cancelledBeforeStart,
	pinnedBefore,
	disabled,
	inputFarTooLarge,
	limitsTooHigh,
	sourceRefused,
	agentRefused,
	recipeMissing,
	recipeNotReady,
	agentRecipesRefused,
	inputRefused,
	modelRefused,
	toolsRefused,
	launch,
}

// Decide says what to do about one run. It is pure: the same settings and
// snapshot give the same plan.
func Decide(op settings.Operator, s Snapshot) Plan {
	l, err := newLook(op, s)
	if err != nil {
		return Plan{Verb: VerbSettle, Generation: l.generation,
			Outcome: failed(contract.ReasonInvalidInput, "the spec is not JSON: %v", err)}
	}
	phase := beforeLaunch
	if l.launched() {
		phase = afterLaunch
	}
	for _, c := range slices.Concat(always, phase) {
		if p := c(l); p != nil {
			p.Generation, p.ExecutionDigest = l.generation, l.held
			if p.Pin == nil {
				p.Pin = l.pin
			}
			return *p
		}
	}
	return Plan{}
}

// beingDeleted leaves a run alone that has ended. One that has not is there
// because of somebody's finalizer, and goes the way of a cancelled one: its pod
// would go on otherwise until the finalizer falls.
func beingDeleted(l *look) *Plan {
	if !l.deleted() || !l.finished() {
		return nil
	}
	return &Plan{Verb: VerbIgnore}
}

// specChanged starts a re-execution, after the pod of the old one has ended.
func specChanged(l *look) *Plan {
	if l.digest == l.held || l.deleted() {
		return nil
	}
	if l.alive() {
		return l.stop("the spec has changed: the pod of the execution before it is stopped first")
	}
	return &Plan{Verb: VerbSupersede, Report: l.closing()}
}

func ended(l *look) *Plan {
	if !l.finished() {
		return nil
	}
	ttl, end := l.Run.Spec.TTLAfterFinished, l.Run.Status.CompletionTime
	if ttl == nil || end == nil {
		return &Plan{Verb: VerbRest}
	}
	if left := end.Add(ttl.Duration).Sub(l.Now); left > 0 {
		return &Plan{Verb: VerbRest, RequeueAfter: left}
	}
	return &Plan{Verb: VerbExpire}
}

// until returns the time that is left, at least a millisecond: 0 would mean never.
func until(now, t time.Time) time.Duration {
	return max(t.Sub(now), time.Millisecond)
}
