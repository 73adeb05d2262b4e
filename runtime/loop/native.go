package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/loop/protocol"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// maxCallID bounds the id of a native call that is taken over from the model, in
// bytes.
const maxCallID = 128

// identified gives every call an id of its own in its answer, of letters that any
// endpoint takes back.
func identified(step int64, calls []contract.ModelToolCall) []contract.ModelToolCall {
	calls = slices.Clone(calls)
	taken := map[string]bool{}
	for i := range calls {
		id := calls[i].ID
		for n := i + 1; !plainID(id) || taken[id]; n += len(calls) {
			id = fmt.Sprintf("call_%d_%d", step, n)
		}
		calls[i].ID, taken[id] = id, true
	}
	return calls
}

// plainID reports whether an id can be taken over: printable ASCII, not too long.
func plainID(id string) bool {
	return id != "" && len(id) <= maxCallID && strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// repeated says which calls are, with their id, what an earlier call of the answer
// is: an endpoint says one twice, and made twice it would have its effect twice.
func repeated(calls []contract.ModelToolCall) []bool {
	out := make([]bool, len(calls))
	seen := map[contract.ModelToolCall]bool{}
	for i, c := range calls {
		out[i] = c.ID != "" && seen[c]
		seen[c] = true
	}
	return out
}

// refusedFor says why the i-th call of an answer is not made, or nil.
func refusedFor(i int, repeats bool) *contract.Fault {
	switch {
	case i >= contract.MaxTurnCalls:
		return contract.Faultf(contract.ReasonCallLimitExceeded, "one answer may make %d calls, so this one was not made", contract.MaxTurnCalls)
	case repeats:
		return contract.Faultf(contract.ReasonInvalidArguments,
			"an earlier call of this answer has the same id, tool and arguments, so this one was not made; to make it twice, give it an id of its own")
	}
	return nil
}

// twice reports whether any object of a JSON text that is whole has a key twice:
// then it says two things, and a reader takes either.
func twice(text json.RawMessage) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var open []map[string]bool // nil is a list
	key := false               // a key may be next
	for {
		t, err := d.Token()
		if err != nil {
			return false // it has been read before: this is its end
		}
		switch t {
		case json.Delim('{'):
			open = append(open, map[string]bool{})
			key = true
			continue
		case json.Delim('['):
			open = append(open, nil)
			key = false
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		default:
			if name, ok := t.(string); ok && key {
				keys := open[len(open)-1]
				if keys[name] {
					return true
				}
				keys[name], key = true, false
				continue
			}
		}
		key = len(open) > 0 && open[len(open)-1] != nil
	}
}

// native makes one call of an answer, unless it is refused, and returns what the
// model is told of it, in at most so many bytes, or the fault that ends the run.
func (a *agent) native(ctx context.Context, s *contract.Step, c contract.ModelToolCall, refused *contract.Fault, most int) (string, *contract.Fault) {
	n, known := a.offered.calls[c.Name]
	args, f := object(c.Arguments)
	switch {
	case !known:
		f = notOffered(c.Name)
	case refused != nil:
		f = refused
	}
	entry := contract.StepTool{Name: contract.Truncate(c.Name, 64)}
	if f != nil {
		entry.Reason = string(f.Reason)
		list(s, entry)
		return protocol.ToolError(protocol.Failure{Fault: f}, most), nil //nolint:nilerr // the model is told of it, and goes on
	}
	x := contract.Event{Type: contract.EventToolStarted, Step: s.Step, ID: c.ID, Tool: c.Name, Content: &contract.EventContent{Arguments: args}}
	do, digest := a.plan(n, c.Name, args, x.Content)
	a.Events.step(a.Bundle, x)
	start, waited := a.Now(), a.waited
	inner, done := a.Spans.Tool(ctx, c.Name, c.ID)
	m := do(inner)
	done(m.fault)
	// The time of a person is that of the event resolved, and of no call.
	took := max(0, a.Now().Sub(start)-(a.waited-waited)).Milliseconds()
	s.Calls += m.ended.Admitted
	if !n.direct {
		s.ProgramMs += took
	}
	if m.fault != nil {
		entry.Reason = string(m.fault.Reason)
	}
	entry.ProgramDigest, entry.Ms = digest, took
	list(s, entry)
	x.Type, x.DurationMs = contract.EventToolFinished, took
	a.Events.step(a.Bundle, m.event(x))
	return a.told(ctx, s, n, m, most)
}

// list adds a native call to the step, which has room for the first few.
func list(s *contract.Step, t contract.StepTool) {
	if len(s.Tools) < contract.MaxStepTools {
		s.Tools = append(s.Tools, t)
	}
}

// told is what the model is told of a call that was made, or the fault that ends
// the run.
func (a *agent) told(ctx context.Context, s *contract.Step, n native, m made, most int) (string, *contract.Fault) {
	a.doubted = a.doubted || m.ended.ReadOnly
	if m.ended.Evidence != "" {
		a.left = m.ended.Evidence
	}
	if f := stopped(ctx); f != nil {
		return "", f
	}
	if m.fault == nil {
		if usable(m.value) {
			a.last = &contract.LastResult{Step: s.Step, Result: m.value}
		}
		return protocol.ToolResult(m.value, most), nil
	}
	if m.ends() {
		return "", m.fault
	}
	x := protocol.Failure{Fault: m.fault, Calls: m.ended.Calls, ReadOnly: m.ended.ReadOnly}
	if x.ReadOnly {
		x.Callable = a.readOnly()
	}
	if n == (native{}) {
		return protocol.CodeFailure(x, most), nil
	}
	return protocol.ToolError(x, most), nil
}

// ends reports whether the failure is that of the run. Its input and its output are
// the call's own here.
func (m made) ends() bool {
	if r := m.fault.Reason; r == contract.ReasonWorkerLost || r == contract.ReasonLimitsTooHigh {
		return true
	}
	f := m.ended.Fault
	return f != nil && !m.ended.Own && broker.Withdraws(f.Reason)
}

// plan says how a call is made, and the digest of its program. It adds the program
// to what is told of the call.
func (a *agent) plan(n native, name string, args json.RawMessage, c *contract.EventContent) (do func(context.Context) made, digest string) {
	switch {
	case n.direct:
		return func(ctx context.Context) made { return a.direct(ctx, name, args) }, ""
	case n.recipe != nil:
		n.recipe.describe(c)
		return func(ctx context.Context) made { return a.recipe(ctx, n.recipe, args) }, n.recipe.SourceDigest
	}
	p, f := a.programOf(args)
	if f != nil {
		return func(context.Context) made { return made{fault: f} }, ""
	}
	*c = *source(p.Source, p.Input)
	c.InputDigest = contract.Digest(p.Input)
	return func(ctx context.Context) made { return a.execute(ctx, p, broker.Scope{}) }, c.SourceDigest
}

// describe adds the recipe to what is told of a call of it: all of it once, so that
// a recipe that is called again and again does not fill the transcript.
func (r *recipe) describe(c *contract.EventContent) {
	c.Recipe, c.SourceDigest, c.InputDigest = r.Name, r.SourceDigest, contract.Digest(c.Arguments)
	if r.told {
		return
	}
	r.told = true
	limits := r.Limits
	c.Source, c.Limits, c.InputSchema, c.OutputSchema = r.Source, &limits, r.InputSchema, r.OutputSchema
}

// direct makes one call of a tool that the model calls itself.
func (a *agent) direct(ctx context.Context, name string, args json.RawMessage) made {
	x := a.broker.Next(broker.Scope{Direct: true})
	value, err := x.Call(ctx, name, args)
	m := made{value: value, ended: x.End()}
	if err != nil {
		m.fault = faultOf(err)
	}
	m.fault = contract.Worst(m.ended.Fault, m.fault)
	return m
}

// runCodeSchema is that of the arguments of run_code.
var runCodeSchema = sync.OnceValues(func() (*contract.Schema, error) {
	return contract.CompileSchema(json.RawMessage(protocol.RunCodeSchema))
})

// programOf is the program that arguments of run_code hold.
func (a *agent) programOf(args json.RawMessage) (sandbox.Program, *contract.Fault) {
	p := sandbox.Program{Limits: a.Bundle.Limits}
	schema, err := runCodeSchema()
	if err != nil {
		return p, faultOf(err)
	}
	if err := schema.Validate(args); err != nil {
		return p, contract.Faultf(contract.ReasonInvalidArguments, "the arguments of %s do not match its schema: %v", contract.RunCodeTool, err)
	}
	var in struct {
		Source string          `json:"source"`
		Input  json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return p, contract.Faultf(contract.ReasonInvalidArguments, "the arguments of %s cannot be read", contract.RunCodeTool)
	}
	p.Source, p.Input = in.Source, in.Input
	if in.Input == nil {
		p.Input = a.Bundle.Input
	}
	return p, nil
}

// recipe calls a recipe once. Its input is looked at before anything is evaluated.
func (a *agent) recipe(ctx context.Context, r *recipe, args json.RawMessage) made {
	if f := a.inputOf(r, args); f != nil {
		return made{fault: f}
	}
	m := a.execute(ctx, sandbox.Program{Source: r.Source, Input: args, Limits: r.Limits},
		broker.Scope{Recipe: r.Name, Tools: r.Tools, Limits: r.Limits})
	if m.fault == nil {
		m.fault = checked(r.output, m.value)
	}
	return m
}

// inputOf says why a recipe cannot be called with an input, or nil. Every tool that
// it declares must be one of the run.
func (a *agent) inputOf(r *recipe, args json.RawMessage) *contract.Fault {
	if f := CheckArguments(r.Name, r.Limits, r.input, args); f != nil {
		return f
	}
	for _, name := range r.Tools {
		if !slices.ContainsFunc(a.Tools, func(t broker.Tool) bool { return t.Tool.Name == name }) {
			return contract.Faultf(contract.ReasonToolNotAllowed, "recipe %s declares the tool %s, which this run does not have", r.Name, name)
		}
	}
	return nil
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }
