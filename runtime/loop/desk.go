package loop

import (
	"context"
	"encoding/json"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// Desk is where a direct call waits for somebody's answer.
type Desk interface {
	// Await shows the call as pending and returns the answer to it, bound to its
	// arguments, once there is one; nothing is pending any more then. It ends with
	// ctx. The error wraps a *contract.Fault, or is ctx's.
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

// desk is the Desk as the broker has it; nil without one.
func (r *run) desk() broker.Desk {
	if r.Desk == nil {
		return nil
	}
	return counter{r}
}

// counter tells what waits and what was answered.
type counter struct{ r *run }

// Await implements broker.Desk.
func (c counter) Await(ctx context.Context, p contract.Pending) (broker.Resolution, error) {
	r := c.r
	start := r.Now()
	x := contract.Event{
		Type: contract.EventPending, Step: r.at.Load(), ID: p.ID, Tool: p.Tool, Grant: p.Grant, State: string(p.Kind),
		Content: &contract.EventContent{Arguments: jsonOr(p.Arguments)},
	}
	r.Events.step(r.Bundle, x)
	answer, err := r.Config.Desk.Await(ctx, p)
	waited := r.Now().Sub(start)
	r.waited += waited
	x.Type, x.State, x.DurationMs = contract.EventResolved, string(answer.Decision), waited.Milliseconds()
	x.Content = &contract.EventContent{Message: answer.By, Result: answer.Result}
	if !json.Valid(answer.Result) {
		x.Content.Result = nil
	}
	if err != nil {
		x.State, x.Content = "", nil
		if f := stopped(ctx); f != nil {
			x.Reason = f.Reason
		} else if f, ok := contract.AsFault(err); ok {
			x.Reason = f.Reason
		}
	}
	r.Events.step(r.Bundle, x)
	return broker.Resolution{Decision: answer.Decision, Result: answer.Result, By: answer.By}, err
}

// jsonOr is JSON text, or the JSON string of a text that is none.
func jsonOr(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	out, err := json.Marshal(text)
	if err != nil {
		return nil
	}
	return out
}
