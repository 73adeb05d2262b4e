package broker

import (
	"context"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// flight is one admitted call on its way.
type flight struct {
	b     *Broker
	t     *tool
	ctx   context.Context // the program's
	place int             // of the journal entry
	start time.Time
}

// dispatch gives an admitted call its id and brings it to the tool: intent,
// call, result, outcome. The fault, if it is terminal, is latched.
func (b *Broker) dispatch(ctx context.Context, t *tool, args json.RawMessage, canonical []byte) (json.RawMessage, *contract.Fault) {
	fl := &flight{b: b, t: t, ctx: ctx, start: b.cfg.Now()}
	b.mu.Lock()
	fl.place = b.book.admit(t, contract.Digest(canonical), b.now())
	c := b.book.calls[fl.place]
	b.mu.Unlock()
	b.observe(c, 0)

	body, f := fl.run(Request{ID: c.ID, Tool: c.Tool, Arguments: args, MaxBytes: b.cfg.Limits.OutputBytes})
	if f != nil && f.Reason.Class() != contract.ClassCatchable {
		b.hold(f)
	}
	return body, f
}

func (fl *flight) run(r Request) (json.RawMessage, *contract.Fault) {
	f := fl.record("the call was not sent, since its intent could not be written down")
	if f == nil {
		f = stopped(fl.ctx)
	}
	if f != nil {
		fl.close(contract.CallAbandoned, f.Reason)
		return nil, f
	}
	timeout := time.Duration(fl.t.TimeoutMs) * time.Millisecond
	if timeout <= 0 {
		timeout = contract.DefaultCallTimeout
	}
	ctx, cancel := context.WithTimeoutCause(fl.ctx, timeout, errCallTimeout)
	defer cancel()
	ans, err := fl.t.Backend.Call(ctx, r)
	if err != nil {
		return nil, fl.failed(asFailure(ctx, r.Tool, err, timeout))
	}
	return fl.answered(ans)
}

var errCallTimeout = errors.New("the call's time is over")

func asFailure(ctx context.Context, name string, err error, timeout time.Duration) *Failure {
	f := &Failure{Message: "tool " + name + " could not be reached"}
	if own, ok := errors.AsType[*Failure](err); ok {
		*f = *own
	}
	if errors.Is(context.Cause(ctx), errCallTimeout) && f.Proof != Answered && f.Reason == "" {
		f.Message = "tool " + name + " did not answer within " + timeout.String()
	}
	f.Message = contract.Truncate(f.Message, contract.MaxMessageBytes/2)
	return f
}

// failed writes down what a failure means, and returns the fault for the
// program or for the run. That the run was stopped comes before everything.
func (fl *flight) failed(f *Failure) *contract.Fault {
	v := judge(f, fl.t.effect())
	if stop := stopped(fl.ctx); stop != nil {
		if v.state == contract.CallUncertain || f.Proof == Unproven {
			v.reason = stop.Reason
		}
		fl.close(v.state, v.reason)
		return stop
	}
	c := fl.close(v.state, v.reason)
	fault := contract.Faultf(v.reason, "%s", f.Message)
	switch {
	case v.reason == contract.ReasonEffectUncertain:
		fault = contract.Faultf(v.reason, "call %d of tool %s may have had its effect: %s", c.Seq, c.Tool, f.Message)
	case v.reason.Class() == contract.ClassCatchable:
		// The program goes on, so the outcome must be known before it does.
		if unwritten := fl.record("the outcome of a call could not be written down"); unwritten != nil {
			return unwritten
		}
	}
	return fault
}

// answered takes a result through its checks. An answer proves that the tool
// did its work, so a result that is not accepted still is an outcome.
func (fl *flight) answered(ans Answer) (json.RawMessage, *contract.Fault) {
	name, most := fl.t.Tool.Tool.Name, fl.b.cfg.Limits.OutputBytes
	fl.b.change(fl.place, func(c *contract.Call) { c.ResultBytes, c.ResultDigest = ans.Bytes, ans.Digest })
	if ans.Bytes > most {
		return nil, fl.unaccepted(contract.Faultf(contract.ReasonChildResultTooLarge, "the result of tool %s has %d bytes or more, limits.outputBytes is %d", name, ans.Bytes, most))
	}
	if !utf8.Valid(ans.Body) || !json.Valid(ans.Body) {
		return nil, fl.failed(&Failure{Message: "tool " + name + " answered something that is not JSON"})
	}
	if err := fl.t.output.Validate(ans.Body); err != nil {
		return nil, fl.unaccepted(contract.Faultf(contract.ReasonChildResultInvalid, "the result of tool %s does not match its schema: %v", name, err))
	}
	fl.close(contract.CallCompleted, "")
	if f := fl.record("the outcome of a call could not be written down"); f != nil {
		// What is not written down is not proven to those who read the journal.
		if fl.t.effect() != contract.EffectReadOnly {
			fl.close(contract.CallUncertain, f.Reason)
		}
		return nil, f
	}
	return json.RawMessage(ans.Body), nil
}

func (fl *flight) unaccepted(f *contract.Fault) *contract.Fault {
	fl.close(contract.CallCompleted, f.Reason)
	if stop := stopped(fl.ctx); stop != nil {
		return contract.Worst(stop, f)
	}
	return f
}

// record writes the journal through when the call may change something. The
// fault says why it is not written.
func (fl *flight) record(what string) *contract.Fault {
	if fl.b.cfg.Journal == nil || fl.t.effect() == contract.EffectReadOnly {
		return nil
	}
	fl.b.mu.Lock()
	calls, refused := fl.b.book.snapshot(), fl.b.book.refused
	fl.b.mu.Unlock()
	if err := fl.b.cfg.Journal.Record(fl.ctx, calls, refused); err == nil {
		return nil
	}
	if stop := stopped(fl.ctx); stop != nil {
		return stop
	}
	return contract.Faultf(contract.ReasonBrokerUnavailable, "%s", what)
}

// close writes the outcome of the call into the journal.
func (fl *flight) close(s contract.CallState, r contract.Reason) contract.Call {
	end := fl.b.now()
	c := fl.b.change(fl.place, func(c *contract.Call) { c.State, c.Reason, c.EndTime = s, r, end })
	fl.b.observe(c, fl.b.cfg.Now().Sub(fl.start))
	return c
}

// change changes one journal entry, unless the run is over.
func (b *Broker) change(place int, f func(*contract.Call)) contract.Call {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.book.calls[place]
	f(&c)
	if !b.book.closed {
		b.book.calls[place] = c
	}
	return c
}
