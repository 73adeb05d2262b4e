package broker

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Desk is where a direct call waits for somebody's answer. Await ends with ctx;
// its error wraps a *contract.Fault, or is ctx's.
type Desk interface {
	Await(ctx context.Context, p contract.Pending) (Resolution, error)
}

// Resolution is the answer to a call that waited.
type Resolution struct {
	Decision contract.Decision
	// Result is the JSON text of the result of a deferred call that was approved.
	Result json.RawMessage
	// By is who answered.
	By string
}

// waits reports whether a call of the tool waits for an answer in this scope.
func (s Scope) waits(t *tool) bool {
	return s.Direct && (t.Tool.Tool.Deferred || t.Approval == contract.ApprovalRequired)
}

// withheld is the fault of a call for which nobody can be waited: from a program,
// and where there is no desk.
func (b *Broker) withheld(t *tool) *contract.Fault {
	name := t.Tool.Tool.Name
	switch {
	case t.Withheld != nil:
		return t.Withheld
	case b.scope.Direct && b.cfg.Desk != nil:
	case t.Tool.Tool.Deferred:
		return contract.Faultf(contract.ReasonCallDeferred, "tool %s answers only later, and nothing waits for that here", name)
	case t.Approval == contract.ApprovalRequired:
		return contract.Faultf(contract.ReasonApprovalRequired, "tool %s needs an approval, and nobody can give it here", name)
	}
	return nil
}

// wait has the call wait for its answer. over says that the answer ends the call;
// otherwise it is sent, like any other, and its intent is written down anew.
func (fl *flight) wait() (body json.RawMessage, f *contract.Fault, over bool) {
	begun := fl.b.cfg.Now()
	r, f := fl.resolved()
	fl.waited = fl.b.cfg.Now().Sub(begun)
	if f != nil {
		fl.close(fl.unanswered(f), f.Reason)
		return nil, f, true
	}
	switch {
	case r.Decision != contract.DecisionApprove:
		f = contract.Faultf(contract.ReasonApprovalRequired, "%s denied the call of tool %s", who(r.By), fl.t.Tool.Tool.Name)
		fl.close(contract.CallAbandoned, f.Reason)
		return nil, f, true
	case !fl.t.Tool.Tool.Deferred:
		fl.change(func(c *contract.Call) { c.State = contract.CallDispatched })
		return nil, nil, false
	}
	body, f = fl.given(r.Result)
	return body, f, true
}

// unanswered is the state of a call to which no answer came that can be used. Who
// gives a result for a deferred call has done its work, whatever the result is.
func (fl *flight) unanswered(f *contract.Fault) contract.CallState {
	if fl.t.Tool.Tool.Deferred && f.Reason == contract.ReasonChildResultTooLarge {
		return contract.CallCompleted
	}
	return contract.CallAbandoned
}

// who names somebody who answered.
func who(by string) string {
	if by = strings.TrimSpace(by); by == "" {
		return "somebody"
	}
	return contract.Truncate(strings.ToValidUTF8(by, "\uFFFD"), 512)
}

// given takes the result of a deferred call through its checks. It is its canonical
// JSON from here on: two readers of it cannot see different members.
func (fl *flight) given(result json.RawMessage) (json.RawMessage, *contract.Fault) {
	if len(result) == 0 { // as a field that is absent, it says null
		result = json.RawMessage("null")
	}
	name, given := fl.t.Tool.Tool.Name, len(result)
	canonical, err := contract.Canonical(result)
	readable := err == nil && contract.WellFormed(result)
	if readable {
		result = canonical
	}
	ans := Answer{Body: result, Bytes: int64(len(result)), Digest: contract.Digest(result)}
	fl.change(func(c *contract.Call) { c.ResultBytes, c.ResultDigest = ans.Bytes, ans.Digest })
	switch {
	case given > contract.MaxResolutionResultBytes:
		return nil, fl.unaccepted(ans, contract.Faultf(contract.ReasonChildResultTooLarge,
			"the call of tool %s was answered with a result of %d bytes, more than %d", name, given, contract.MaxResolutionResultBytes))
	case !readable:
		return nil, fl.unaccepted(ans, contract.Faultf(contract.ReasonChildResultInvalid, "the call of tool %s was answered with a result that is no JSON", name))
	}
	return fl.answered(ans)
}

// resolved shows the call at the desk, after the journal is written, and returns
// the answer unless the run has ended.
func (fl *flight) resolved() (Resolution, *contract.Fault) {
	b := fl.b
	c := fl.change(func(*contract.Call) {})
	if j := b.cfg.Journal; j != nil {
		b.mu.Lock()
		calls, refused := b.book.snapshot(), b.book.refused
		b.mu.Unlock()
		if err := j.Record(fl.ctx, calls, refused); err != nil {
			return Resolution{}, fl.unwatched("the call could not wait, since that could not be written down")
		}
	}
	r, err := b.cfg.Desk.Await(fl.ctx, pending(b.cfg.Run, c, fl.t, fl.args))
	if f := stopped(fl.ctx); f != nil {
		return Resolution{}, f
	}
	if err != nil {
		if f, ok := contract.AsFault(err); ok && f.Reason.Class() != contract.ClassCatchable {
			return Resolution{}, f
		}
		return Resolution{}, fl.unwatched("the answer to the call could not be had")
	}
	if f := b.latched(); f != nil { // the run has ended in the meantime
		return Resolution{}, f
	}
	return r, nil
}

func (fl *flight) unwatched(message string) *contract.Fault {
	if f := stopped(fl.ctx); f != nil {
		return f
	}
	return contract.Faultf(contract.ReasonBrokerUnavailable, "%s", message)
}

// pending is what the desk shows of a call.
func pending(run contract.RunRef, c contract.Call, t *tool, args json.RawMessage) contract.Pending {
	p := contract.Pending{
		ID: contract.PendingID(run, c.Seq, c.ArgumentsDigest), Kind: contract.PendingApproval, Tool: c.Tool, Grant: c.Grant, Effect: c.Effect,
		CallID: c.ID, Arguments: contract.Truncate(string(args), contract.MaxPendingArgumentBytes), ArgumentsDigest: c.ArgumentsDigest, Since: c.StartTime,
	}
	p.ArgumentsCut = len(p.Arguments) < len(args)
	if t.Tool.Tool.Deferred {
		p.Kind = contract.PendingResult
	}
	return p
}
