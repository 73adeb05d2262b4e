package broker

import (
	"context"
	"encoding/json"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Execution is the way of one program to the tools of a run that has several.
// Its latch is its own; the book, the budgets, the ids and the media are the
// run's. It implements sandbox.Caller.
type Execution struct {
	b     *Broker
	epoch int64
	// first is the place in the book, admitted the count, at which it began.
	first    int
	admitted int64
}

// Next opens the way for the next program, or for one direct call, of the scope. It waits for a call that is still on
// its way, and the Execution before it reaches no tool any more. The latch of the
// program before is lifted, unless what it holds is true of the whole run: see
// Withdraws. While a call of the run may have had an effect without a proven
// outcome, only tools that are ReadOnly can be called.
func (b *Broker) Next(s Scope) *Execution {
	b.turn.Lock()
	defer b.turn.Unlock()
	b.epoch++
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.latch != nil && (b.own || !Withdraws(b.latch.Reason)) {
		b.latch, b.evidence = nil, ""
	}
	b.enter(s)
	return &Execution{b: b, epoch: b.epoch, first: len(b.book.calls), admitted: b.book.admitted}
}

// Withdraws reports whether a terminal fault of this reason takes the authority
// from the run, and not only from the program whose call it ended.
func Withdraws(r contract.Reason) bool {
	return r.Class() == contract.ClassRun || r == contract.ReasonCancelled ||
		r == contract.ReasonCallLimitExceeded || r == contract.ReasonBrokerUnavailable
}

// Call is Broker.Call for as long as the Execution lasts.
func (x *Execution) Call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	x.b.turn.Lock()
	defer x.b.turn.Unlock()
	if x.b.epoch != x.epoch {
		return nil, contract.Faultf(contract.ReasonBrokerUnavailable, "the program is over")
	}
	return x.b.call(ctx, name, args)
}

// Ended is what one program did through its Execution.
type Ended struct {
	// Calls are its entries in the journal, and Admitted counts those that were
	// charged.
	Calls    []contract.Call
	Admitted int64
	// Fault is the terminal fault that is latched, or nil. It holds whatever the
	// executor says.
	Fault *contract.Fault
	// Evidence is what the call behind Fault left; "" when Fault is not a call's.
	Evidence string
	// Own says that Fault is a bound of the scope alone: it takes nothing from the run.
	Own bool
	// ReadOnly says that from here on only tools that are ReadOnly can be called.
	ReadOnly bool
}

// End closes the Execution and returns what it did. It waits for a call that is
// still on its way.
func (x *Execution) End() Ended {
	b := x.b
	b.turn.Lock()
	defer b.turn.Unlock()
	if b.epoch == x.epoch {
		b.epoch++
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return Ended{
		Calls: b.book.snapshot()[x.first:], Admitted: b.book.admitted - x.admitted,
		Fault: b.latch, Evidence: b.evidence, Own: b.own, ReadOnly: len(contract.Ambiguous(b.book.calls)) > 0,
	}
}

// doubted refuses a tool that could add to an effect that nobody knows of. In the
// program of that call the latch is earlier.
func (b *Broker) doubted(t *tool) *contract.Fault {
	if t.effect() == contract.EffectReadOnly {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	open := contract.Ambiguous(b.book.calls)
	if len(open) == 0 {
		return nil
	}
	return contract.Faultf(contract.ReasonEffectUncertain,
		"call %d of tool %s may have had its effect, so that only tools whose effect is ReadOnly can be called in this run", open[0].Seq, open[0].Tool)
}
