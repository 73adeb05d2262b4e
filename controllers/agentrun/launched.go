package agentrun

import (
	"fmt"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/runtimepod"
)

// maxLaunches bounds the pods of one execution generation.
const maxLaunches = 3

// claimedByAnother stops a second pod. The one that claimed the execution is
// gone; what it reported stands, and nothing that the second one says does.
func claimedByAnother(l *look) *Plan {
	if !l.claimed() || l.pod == nil || string(l.pod.UID) == l.execution().Claim.PodUID {
		return nil
	}
	why := fmt.Sprintf("another pod (UID %s) claimed this execution; pod %s is not trusted",
		contract.Truncate(l.execution().Claim.PodUID, 64), l.pod.Name)
	if l.alive() {
		return l.stop(why)
	}
	if l.report() != nil {
		return nil
	}
	return &Plan{Verb: VerbSettle, Outcome: l.interrupted(why)}
}

// reported settles the run as soon as a verified report says how it ended.
func reported(l *look) *Plan {
	e := l.report()
	if e == nil {
		return nil
	}
	p := &Plan{Verb: VerbSettle, Outcome: outcomeOf(e)}
	if e != l.Run.Status.Execution {
		p.Report = e
	}
	return p
}

// unpinned ends a run that lost its pin: there is nothing left to verify a
// report with, and a generation is never pinned twice.
func unpinned(l *look) *Plan {
	if l.Run.Status.Pinned != nil || l.pinErr == nil {
		return nil
	}
	if l.alive() {
		return l.stop("the pinned ConfigMap cannot be used: the pod is stopped")
	}
	return &Plan{Verb: VerbSettle, Outcome: l.interrupted(l.pinErr.Error())}
}

// cancelled ends the pod; the runtime reports Cancelled itself if it can.
func cancelled(l *look) *Plan {
	why := l.endAsked()
	if why == "" {
		return nil
	}
	if l.alive() {
		return l.stop(why + ": the pod is stopped")
	}
	return &Plan{Verb: VerbSettle, Outcome: l.unproven(contract.ReasonCancelled, why+"; "+l.podEnd())}
}

// overdue ends a pod that did not keep to the run's timeout.
func overdue(l *look) *Plan {
	if l.Now.Before(l.endBy()) {
		return nil
	}
	if l.alive() {
		return l.stop(fmt.Sprintf("the run did not end within its timeout of %s: the pod is stopped", l.Run.Timeout()))
	}
	why := fmt.Sprintf("the run did not end within its timeout of %s", l.Run.Timeout())
	if p := pendingSince(l); p != "" {
		why += ": " + p
	}
	return &Plan{Verb: VerbSettle, Outcome: l.unproven(contract.ReasonDeadlineExceeded, why)}
}

// pendingSince says what the pod was last seen waiting for.
func pendingSince(l *look) string {
	if c := l.succeeded(); c.Reason == v1alpha1.ReasonPending {
		return c.Message
	}
	return runtimepod.Trouble(l.pod, l.Now)
}

// lost answers for a pod that is gone, or ended, without a verified report.
// Before its claim nothing has happened, and another pod may try; after it,
// never.
func lost(l *look) *Plan {
	switch {
	case l.alive():
		return nil
	case l.claimed():
		return &Plan{Verb: VerbSettle, Outcome: l.interrupted(l.podEnd())}
	case l.launches() >= maxLaunches:
		return &Plan{Verb: VerbSettle, Outcome: failed(contract.ReasonWorkerLost,
			"%d pods ended before they claimed the execution; the last one: %s", l.launches(), l.podEnd())}
	case l.pod != nil:
		return l.stop(l.podEnd() + "; it claimed nothing and is removed to launch another")
	case l.pinErr != nil:
		return &Plan{Verb: VerbSettle, Outcome: l.interrupted(l.pinErr.Error())}
	}
	return &Plan{Verb: VerbLaunch, Reason: v1alpha1.ReasonRunning,
		Message:      fmt.Sprintf("pod %s was lost before it claimed the execution; launch %d", Name(l.Run, l.generation), l.launches()+1),
		RequeueAfter: until(l.Now, l.Now.Add(l.Run.Timeout()+endSlack))}
}

// underWay waits for a pod that does what it should, and tells what is wrong
// with one that does not start.
func underWay(l *look) *Plan {
	p := &Plan{Verb: VerbWait, Reason: v1alpha1.ReasonRunning, Message: runningMessage(l.pod.Name), RequeueAfter: until(l.Now, l.endBy())}
	if l.claimed() {
		if p.Pending = l.pending(); len(p.Pending) > 0 {
			p.Reason, p.Message = awaiting(l.Run, p.Pending)
		}
		return p
	}
	if why := runtimepod.Trouble(l.pod, l.Now); why != "" {
		p.Reason, p.Message = v1alpha1.ReasonPending, why
		if c := l.succeeded(); c.Reason == v1alpha1.ReasonPending && runtimepod.SameTrouble(c.Message, why) {
			p.Message = c.Message
		}
	}
	if left := runtimepod.StartsBy(l.pod).Sub(l.Now); left > 0 {
		p.RequeueAfter = min(p.RequeueAfter, left)
	}
	return p
}

func runningMessage(pod string) string { return fmt.Sprintf("pod %s was launched", pod) }

// interrupted is the end of an execution whose pod is gone and whose report is
// missing: what may have happened outside is named.
func (l *look) interrupted(why string) *Outcome {
	return l.unproven(contract.ReasonInterrupted, why)
}

// unproven is the end of an execution without a report. Calls that may have
// happened outside take the place of the reason.
func (l *look) unproven(r contract.Reason, why string) *Outcome {
	e := l.execution()
	if e == nil {
		return failed(r, "%s", why)
	}
	if calls := contract.Ambiguous(e.Calls); len(calls) > 0 {
		return failed(contract.ReasonEffectsAmbiguous, "%s; %s", nameCalls(calls), why)
	}
	return failed(r, "%s", why)
}
