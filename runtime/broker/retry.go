package broker

import (
	"context"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

const (
	// maxAttempts bounds Retry.Attempts, whatever the bundle says.
	maxAttempts = 5
	// maxRetryAfter is the longest wait that a tool may ask for: one that asks for
	// more is not tried again.
	maxRetryAfter = 30 * time.Second
	// leaveAfter is the time that a backend has to return once its context is
	// done. One that does not is left behind, has proven nothing and is not tried
	// again, since it is still at it.
	leaveAfter = 250 * time.Millisecond
)

// try brings the request to the tool, as often as its grant allows. Every attempt
// has the same id. The proof of the failure that it returns is that of the worst
// attempt: a refusal says nothing of what an earlier request did.
func (fl *flight) try(r Request) (Answer, *Failure) {
	var worst *Failure
	for n := int64(1); ; n++ {
		fl.change(func(c *contract.Call) { c.Attempts, c.ResultBytes, c.ResultDigest = n, 0, "" })
		ans, f := fl.attempt(r)
		if f == nil {
			return ans, nil
		}
		alone := f.Proof
		if worst != nil {
			f.after(worst)
		}
		worst = f
		if !fl.again(n, alone, f) || !fl.pause(n, f.RetryAfter) {
			return Answer{}, f
		}
	}
}

// after takes over what an earlier failure of the same call leaves.
func (f *Failure) after(earlier *Failure) {
	switch {
	case f.Proof == Done: // under the same id, so it is done once
	case f.Proof == Unproven, earlier.Proof == Unproven:
		f.Proof = Unproven
	default:
		f.Proof = max(f.Proof, earlier.Proof)
	}
	if f.Receipt == "" {
		f.Receipt = earlier.Receipt
	}
}

// again reports whether attempt n, whose own proof is given, may be followed by
// another one.
func (fl *flight) again(n int64, alone Proof, f *Failure) bool {
	retry := fl.t.Retry
	return retry != nil && fl.t.effect() != contract.EffectEffectful &&
		n < min(retry.Attempts, maxAttempts) &&
		alone != Answered && alone != Done && !f.Final && !f.terminal() && f.RetryAfter <= maxRetryAfter
}

// pause waits before the attempt behind attempt n. It reports false, at once, when
// the program's time would be over before, and when the run is stopped or over.
func (fl *flight) pause(n int64, asked time.Duration) bool {
	wait := max(time.Duration(fl.t.Retry.BackoffMs)*time.Millisecond<<(n-1), asked)
	if end, ok := fl.ctx.Deadline(); ok && end.Sub(fl.b.cfg.Now()) <= wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return fl.ctx.Err() == nil && fl.b.latched() == nil
	case <-fl.ctx.Done():
		return false
	}
}

var errCallTimeout = errors.New("the call's time is over")

// attempt sends the request once. An answer that is not JSON proves nothing.
func (fl *flight) attempt(r Request) (Answer, *Failure) {
	timeout := time.Duration(fl.t.TimeoutMs) * time.Millisecond
	if timeout <= 0 {
		timeout = contract.DefaultCallTimeout
	}
	ctx, cancel := context.WithTimeoutCause(fl.inner, timeout, errCallTimeout)
	defer cancel()
	patience, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	defer context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(leaveAfter, leave)
		context.AfterFunc(patience, func() { timer.Stop() })
	})()
	ans, err := bounded(patience, func() (Answer, error) { return fl.t.Backend.Call(ctx, r) }, func() {})
	if err != nil {
		return Answer{}, asFailure(ctx, r.Tool, err, timeout)
	}
	fl.change(func(c *contract.Call) { c.ResultBytes, c.ResultDigest = ans.Bytes, ans.Digest })
	if ans.Bytes <= r.MaxBytes && (!utf8.Valid(ans.Body) || !json.Valid(ans.Body)) {
		return Answer{}, &Failure{Message: "tool " + r.Tool + " answered something that is not JSON", Receipt: ans.Receipt, Media: ans.Media}
	}
	return ans, nil
}

func asFailure(ctx context.Context, name string, err error, timeout time.Duration) *Failure {
	f := &Failure{Message: "tool " + name + " could not be reached"}
	if own, ok := errors.AsType[*Failure](err); ok {
		*f = *own
	}
	f.Final = f.Final || errors.Is(err, errLeftBehind)
	if errors.Is(context.Cause(ctx), errCallTimeout) && f.Proof != Answered && f.Reason == "" {
		f.Message = "tool " + name + " did not answer within " + timeout.String()
	}
	f.Message = contract.Truncate(f.Message, contract.MaxMessageBytes/2)
	return f
}
