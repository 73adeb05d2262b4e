package agentrun

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/runtimepod"
	"github.com/codeact-dev/codeact-operator/controllers/status"
)

// oomKilled is the kubelet's reason for a container that ran out of memory. The
// kernel may have killed any process of it, so its exit code means nothing.
const oomKilled = "OOMKilled"

// expected is what a report of this generation must be about.
func (l *look) expected() contract.Expected {
	x := contract.Expected{RunUID: string(l.Run.UID), Generation: l.generation}
	if p := l.Run.Status.Pinned; p != nil {
		x.BundleDigest = p.Digest
	} else if l.pin != nil {
		x.BundleDigest = l.pin.Digest
	}
	return x
}

// report returns the verified report that says how this generation ended, or
// nil: the run's status first, then the termination message.
func (l *look) report() *contract.Execution {
	if e := l.execution(); e != nil && e.Result != "" && e.Verify(l.expected()) == nil {
		return e
	}
	return l.termination()
}

// termination returns the report that the pod left as its termination message,
// if it is whole, about this execution, and by this pod. Success needs more: the
// claim in the run's status, which only that pod can have written, and a
// container that was not killed.
func (l *look) termination() *contract.Execution {
	t := runtimepod.Terminated(l.pod)
	if t == nil {
		return nil
	}
	e, err := contract.ParseTermination([]byte(t.Message))
	if err != nil || e.Verify(l.expected()) != nil || e.Result == "" || e.Claim.PodUID != string(l.pod.UID) {
		return nil
	}
	if l.claimed() && l.execution().Claim.PodUID != e.Claim.PodUID {
		return nil
	}
	if e.Result == contract.ResultSucceeded && (t.Reason == oomKilled || !l.claimed()) {
		return nil
	}
	if had := l.execution(); had != nil {
		e.Calls = mergeCalls(had.Calls, e.Calls)
		e.Steps = mergeSteps(had.Steps, e.Steps)
	}
	return e
}

// mergeCalls completes the journal of a termination message, which may be
// brief, with what was written through to the status before: a call that either
// of them knows stays known. A call that only the status has keeps its intent,
// so that it counts as one that may have happened.
func mergeCalls(had, got []contract.Call) []contract.Call {
	at := map[int64]int{}
	out := slices.Clone(had)
	for i, c := range out {
		if c.Seq > 0 {
			at[c.Seq] = i
		}
	}
	for _, c := range got {
		i, known := at[c.Seq]
		if !known {
			if c.Seq > 0 || len(had) == 0 {
				out = append(out, c)
			}
			continue
		}
		out[i].State, out[i].Reason = c.State, c.Reason
		out[i].ResultDigest, out[i].ResultBytes = orElse(c.ResultDigest, out[i].ResultDigest), max(c.ResultBytes, out[i].ResultBytes)
		out[i].EndTime = orElse(c.EndTime, out[i].EndTime)
		out[i].Receipt, out[i].Attempts = orElse(c.Receipt, out[i].Receipt), max(c.Attempts, out[i].Attempts)
		out[i].PrecisionLoss = out[i].PrecisionLoss || c.PrecisionLoss
	}
	return out
}

// closing is the report of an execution that a change of the spec ends: what is
// known of it, without its output. It is nil when nothing was ever claimed.
func (l *look) closing() *contract.Execution {
	e := l.report()
	if e == nil {
		e = l.execution()
	}
	if e == nil {
		return nil
	}
	e = e.DeepCopy()
	if e.Result == "" {
		e.Fail(contract.Faultf(contract.ReasonSuperseded, "the spec was changed while this execution ran"))
	}
	e.Output, e.Pending = "", nil
	return e
}

// outcomeOf words a verified report.
func outcomeOf(e *contract.Execution) *Outcome {
	if e.Result == contract.ResultSucceeded {
		o := &Outcome{Succeeded: true, Reason: v1alpha1.ReasonSucceeded, Message: endOf(e),
			Output: json.RawMessage(e.Output), OutputDigest: e.OutputDigest, Media: e.Media}
		if len(o.Output) == 0 {
			o.Message = endOf(e) + ", but the output did not fit the report that came when the API could not be reached: only its digest is known"
		}
		return o
	}
	msg := status.Locate(int(e.Error.Line), int(e.Error.Column), e.Error.Message)
	if calls := contract.Ambiguous(e.Calls); len(calls) > 0 {
		msg += "; " + nameCalls(calls)
	}
	return &Outcome{Reason: string(e.Error.Reason), Message: msg, Media: e.Media}
}

// endOf says what succeeded: a program, or the agent that wrote some.
func endOf(e *contract.Execution) string {
	if n := len(e.Steps); n > 0 {
		return fmt.Sprintf("the agent gave its output in step %d", e.Steps[n-1].Step)
	}
	return "the program returned"
}

func failed(r contract.Reason, format string, args ...any) *Outcome {
	f := contract.Faultf(r, format, args...)
	return &Outcome{Reason: string(r), Message: f.Message}
}

func faulted(f *contract.Fault) *Outcome {
	return &Outcome{Reason: string(f.Reason), Message: status.Describe(f), Line: f.Line, Column: f.Column}
}

// maxNamedCalls bounds the calls that a message names; the journal has them all.
const maxNamedCalls = 16

// nameCalls names calls that may have happened.
func nameCalls(calls []contract.Call) string {
	var names []string
	for _, c := range calls[:min(len(calls), maxNamedCalls)] {
		names = append(names, fmt.Sprintf("%s (%s)", c.Tool, c.ID))
	}
	more := ""
	if n := len(calls) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return "these calls may have happened, their outcome is unknown: " + strings.Join(names, ", ") + more
}
