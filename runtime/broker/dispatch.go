package broker

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// flight is one admitted call on its way.
type flight struct {
	b     *Broker
	t     *tool
	ctx   context.Context // the program's
	inner context.Context // the same with the values of the hooks
	place int             // of the journal entry
	start time.Time
	// took is the time until the outcome was known, without waited, which is what
	// somebody needed to answer.
	took, waited time.Duration
	args         json.RawMessage
	// result is the tool's answer, or that of its failure, as evidence.
	result  json.RawMessage
	drifted bool
	meter   meter
}

// dispatch gives an admitted call its id and brings it to the tool: intent,
// call, result, outcome. The fault, if it is terminal, is latched.
func (b *Broker) dispatch(ctx context.Context, t *tool, args json.RawMessage) (json.RawMessage, *contract.Fault) {
	fl := &flight{b: b, t: t, ctx: ctx, inner: ctx, start: b.cfg.Now(), args: args}
	b.mu.Lock()
	if b.book.closed { // since the latch was looked at: nothing could record the call
		defer b.mu.Unlock()
		return nil, b.latch
	}
	fl.place = b.book.admit(t, contract.Digest(args), stamp(fl.start), len(args))
	if b.scope.waits(t) {
		b.book.calls[fl.place].State = contract.CallAwaiting
	}
	c := b.book.calls[fl.place]
	b.mu.Unlock()

	body, f := fl.run(Request{ID: c.ID, Tool: c.Tool, Arguments: args, MaxBytes: b.outputBytes, Progress: fl.report})
	latched := b.hold(f)
	if latched {
		fl.leave(f)
	}
	fl.count()
	m := fl.moment()
	m.Result, m.Fault, m.Latched = body, f, latched
	if latched {
		m.Evidence = b.left()
	}
	b.hooks.observe(fl.inner, m)
	return body, f
}

// count adds what the call used to its tool's.
func (fl *flight) count() {
	b := fl.b
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.book.of(fl.t.Tool.Tool.Name)
	u.ResultBytes += b.book.calls[fl.place].ResultBytes
	u.took += fl.took
}

// moment is what the hooks see of the call as it is now.
func (fl *flight) moment() Moment {
	return Moment{Call: fl.change(func(*contract.Call) {}), Arguments: fl.args, Duration: fl.took, Drifted: fl.drifted}
}

func (fl *flight) run(r Request) (json.RawMessage, *contract.Fault) {
	if fl.b.scope.waits(fl.t) {
		if body, f, over := fl.wait(); over {
			return body, f
		}
	}
	var f *contract.Fault
	fl.inner, f = fl.b.hooks.dispatch(fl.ctx, fl.moment())
	if f == nil {
		f = stopped(fl.ctx)
	}
	if f == nil {
		f = fl.b.latched() // the run has ended in the meantime: its record is made
	}
	if f != nil {
		fl.close(contract.CallAbandoned, f.Reason)
		return nil, f
	}
	fl.b.hooks.observe(fl.inner, fl.moment())
	ans, failure := fl.try(r)
	fl.meter.end()
	if failure != nil {
		return nil, fl.failed(failure)
	}
	return fl.answered(ans)
}

// failed writes down what a failure means, and returns the fault for the
// program or for the run. That the run was stopped comes before everything.
func (fl *flight) failed(f *Failure) *contract.Fault {
	v := judge(f, fl.t.effect())
	fl.unshow(f.Media, f.Proof)
	fl.change(func(c *contract.Call) {
		c.Receipt = contract.CutReceipt(f.Receipt)
		if f.Result != nil {
			c.ResultBytes, c.ResultDigest = int64(len(f.Result)), contract.Digest(f.Result)
		}
	})
	if utf8.Valid(f.Result) && json.Valid(f.Result) {
		fl.result = f.Result
	}
	if stop := stopped(fl.ctx); stop != nil {
		if v.state == contract.CallUncertain || f.Proof == Unproven {
			v.reason = stop.Reason
		}
		fl.close(v.state, v.reason)
		return stop
	}
	c := fl.close(v.state, v.reason)
	message := f.Message
	if v.reason.Class() != contract.ClassCatchable {
		message = withoutPayload(message, fl.result)
	}
	fault := contract.Faultf(v.reason, "%s", message)
	switch {
	case v.reason == contract.ReasonEffectUncertain:
		fault = contract.Faultf(v.reason, "call %d of tool %s may have had its effect: %s", c.Seq, c.Tool, message)
	case v.reason.Class() == contract.ClassCatchable:
		// The program goes on, so the outcome must be known before it does.
		m := fl.moment()
		m.Fault = fault
		if unknown := fl.b.hooks.result(fl.inner, m); unknown != nil {
			return final(unknown, "the failure of tool "+c.Tool)
		}
	}
	return fault
}

// answered takes a result through its checks. An answer proves that the tool
// did its work, so a result that is not accepted still is an outcome.
func (fl *flight) answered(ans Answer) (json.RawMessage, *contract.Fault) {
	name, most := fl.t.Tool.Tool.Name, fl.b.outputBytes
	fl.drifted = ans.Drifted
	fl.change(func(c *contract.Call) { c.Receipt = contract.CutReceipt(ans.Receipt) })
	if ans.Bytes > most {
		return nil, fl.unaccepted(ans, contract.Faultf(contract.ReasonChildResultTooLarge, "the result of tool %s has %d bytes or more, limits.outputBytes is %d", name, ans.Bytes, most))
	}
	fl.result = ans.Body
	if err := fl.t.output.Validate(ans.Body); err != nil {
		return nil, fl.unaccepted(ans, contract.Faultf(contract.ReasonChildResultInvalid, "the result of tool %s does not match its schema: %v", name, err))
	}
	lost := contract.PrecisionLoss(ans.Body)
	fl.change(func(c *contract.Call) { c.PrecisionLoss = lost })
	fl.close(contract.CallCompleted, "")
	m := fl.moment()
	m.Result = ans.Body
	f := fl.b.hooks.result(fl.inner, m)
	switch {
	case f == nil:
		fl.show(ans.Media)
		return json.RawMessage(ans.Body), nil
	case refuses(f) && stopped(fl.ctx) == nil:
		return nil, fl.unaccepted(ans, f)
	case fl.t.effect() == contract.EffectReadOnly:
		fl.close(contract.CallCompleted, f.Reason)
	default:
		// What is not written down, or not seen by whoever must see it, is not
		// proven to those who read the journal.
		fl.close(contract.CallUncertain, f.Reason)
	}
	fl.unshow(ans.Media, Unproven)
	return nil, final(f, "the result of tool "+name)
}

// final is the fault of a hook that failed at Result: no program goes on behind
// an outcome that somebody has not taken.
func final(f *contract.Fault, what string) *contract.Fault {
	if f.Reason.Class() == contract.ClassCatchable {
		return contract.Faultf(contract.ReasonBrokerUnavailable, "%s could not be handed over", what)
	}
	return f
}

// refuses reports whether a fault at Result says something of the result, and
// not of the hook.
func refuses(f *contract.Fault) bool {
	return f.Reason.Class() == contract.ClassTerminal && f.Reason != contract.ReasonBrokerUnavailable
}

func (fl *flight) unaccepted(ans Answer, f *contract.Fault) *contract.Fault {
	fl.unshow(ans.Media, Unproven)
	fl.close(contract.CallCompleted, f.Reason)
	if stop := stopped(fl.ctx); stop != nil {
		return contract.Worst(stop, f)
	}
	return f
}

// close writes the outcome of the call into the journal.
func (fl *flight) close(s contract.CallState, r contract.Reason) contract.Call {
	now := fl.b.cfg.Now()
	end := stamp(now)
	fl.took = max(0, now.Sub(fl.start)-fl.waited)
	return fl.change(func(c *contract.Call) { c.State, c.Reason, c.EndTime = s, r, end })
}

// change changes the call's journal entry, unless the run is over.
func (fl *flight) change(f func(*contract.Call)) contract.Call {
	b := fl.b
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.book.calls[fl.place]
	f(&c)
	if !b.book.closed {
		b.book.calls[fl.place] = c
	}
	return c
}
