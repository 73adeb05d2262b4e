package broker

import (
	"encoding/json"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Proof says what is proven about a call that failed.
type Proof int

const (
	// Unproven says that the request may have left, and nothing is known of what it did.
	// It is the zero value, so that what nobody thought of counts as the worst.
	Unproven Proof = iota
	// NeverSent says that no byte of the request can have left.
	NeverSent
	// Answered says that the tool answered that it did not do it.
	Answered
	// Done says that the tool answered that it did its work, but that its answer
	// may not be used. Reason then says why; it is ChildResultInvalid when empty.
	Done
)

// Failure is how a Backend fails.
type Failure struct {
	Proof Proof
	// Reason is empty for an ordinary failure. A terminal Reason ends the run.
	Reason contract.Reason
	// Message is one sentence that may be shown to the program: it never holds a
	// credential, and nothing of an answer but what the tool declared safe.
	Message string
	// Result is what the tool answered, when that is JSON: evidence for the run's
	// report, never for the program.
	Result json.RawMessage
	// Receipt is what the tool gave as proof of its effect, or "".
	Receipt string
	// Media is what the tool showed of the state behind the failure, or nil.
	Media *contract.Media
	// Final says that another attempt would fail the same way.
	Final bool
	// RetryAfter is the wait that the tool asked for before another attempt.
	RetryAfter time.Duration
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

// terminal reports whether the failure ends the run whatever is proven.
func (f *Failure) terminal() bool {
	return f.Reason != "" && f.Reason.Class() != contract.ClassCatchable
}

// verdict is what a failure means for the journal and for the run.
type verdict struct {
	state  contract.CallState
	reason contract.Reason
}

// judge is the one place that decides what a failed call means: by what is
// proven, and by what a call of this effect may have done.
func judge(f *Failure, e contract.Effect) verdict {
	v := verdict{state: contract.CallFailed, reason: contract.ReasonToolFailed}
	if f.Reason != "" {
		v.reason = f.Reason
	}
	switch {
	case f.Proof == Done:
		v.state = contract.CallCompleted
		if !f.terminal() {
			v.reason = contract.ReasonChildResultInvalid
		}
	case f.Proof == NeverSent && f.terminal():
		v.state = contract.CallAbandoned
	case f.Proof == NeverSent, f.Proof == Answered, e == contract.EffectReadOnly:
	case f.terminal():
		v.state = contract.CallUncertain
	default:
		v = verdict{state: contract.CallUncertain, reason: contract.ReasonEffectUncertain}
	}
	return v
}
