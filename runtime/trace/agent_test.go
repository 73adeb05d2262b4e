package trace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// talk is a model that says one text after another, and the last one for good. A
// text is a message, or what becomes of the request: !fault, !panic, !wait.
type talk struct {
	texts  []string
	n      int
	cancel context.CancelCauseFunc
}

func (m *talk) Ask(ctx context.Context, _ loop.ModelRequest) (loop.ModelAnswer, error) {
	text := m.texts[min(m.n, len(m.texts)-1)]
	m.n++
	a := loop.ModelAnswer{Text: &text, FinishReason: "stop", InputTokens: 10, OutputTokens: 2, Counted: true, Attempts: 1}
	switch text {
	case "!fault":
		return loop.ModelAnswer{Attempts: 3}, contract.Faultf(contract.ReasonModelError, "private message")
	case "!error":
		return loop.ModelAnswer{}, errors.New("private message")
	case "!panic":
		panic("private panic")
	case "!wait":
		m.stop(ctx)
		return loop.ModelAnswer{}, ctx.Err()
	case "!native":
		a.Text, a.ToolCalls = nil, []contract.ModelToolCall{{ID: "c1", Name: "get", Arguments: `{"q":"private argument"}`}}
	}
	return a, nil
}

// stop ends the run while something waits for it.
func (m *talk) stop(ctx context.Context) {
	if m.cancel != nil {
		m.cancel(contract.Faultf(contract.ReasonCancelled, "private cause"))
	}
	<-ctx.Done()
}

func code(source string) string {
	b, _ := json.Marshal(map[string]string{"type": "code", "language": "javascript", "code": source})
	return string(b)
}

const final = `{"type":"final","output":"private output"}`

// acts is an executor whose programs are words.
type acts struct{ m *talk }

func (x acts) Execute(ctx context.Context, p sandbox.Program, c sandbox.Caller) (sandbox.Result, error) {
	r := sandbox.Result{Value: json.RawMessage(`"private value"`)}
	verb, arg, _ := strings.Cut(p.Source, " ")
	switch verb {
	case "null":
		r.Value = json.RawMessage("null")
	case "call":
		for tool := range strings.FieldsSeq(arg) {
			if _, err := c.Call(ctx, tool, json.RawMessage(`{"q":"private argument"}`)); err != nil {
				return sandbox.Result{}, err
			}
		}
	case "fail":
		return sandbox.Result{}, contract.Faultf(contract.Reason(arg), "private message")
	case "break":
		return sandbox.Result{}, errors.New("private message")
	case "panic":
		panic("private panic")
	case "wait":
		x.m.stop(ctx)
		return sandbox.Result{}, contract.Faultf(contract.ReasonCancelled, "private message")
	}
	return r, nil
}

// panics is a hook that panics at one point.
type panics struct {
	broker.Pass
	at string
}

func (p panics) Dispatch(ctx context.Context, _ broker.Moment) (context.Context, error) {
	if p.at == "Dispatch" {
		panic("private panic")
	}
	return ctx, nil
}

func (p panics) Observe(context.Context, broker.Moment) {
	if p.at == "Observe" {
		panic("private panic")
	}
}

// life is one run of an agent.
type life struct {
	says   []string
	change func(*contract.Bundle)
	before broker.Hook   // in front of the tracer
	behind broker.Hook   // behind it
	within time.Duration // the time of the run; without it, !wait cancels
}

// lived runs it with a collector and returns it with what was open before the end.
func (l life) lived(t *testing.T) (*receiver, int) {
	t.Helper()
	r := receive(t)
	b := bundleOf(false, "get", "break")
	b.Agent = &contract.PinnedAgent{
		Protocol: contract.ProtocolCode, Prompt: "private prompt", MaxSteps: 4,
		Model:   contract.PinnedModel{URL: "https://model.example:8443/private-path", Model: "m"},
		Options: contract.ModelOptions{Temperature: "0.5", MaxOutputTokens: 100},
	}
	if l.change != nil {
		l.change(&b)
	}
	tr, err := New(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	m := &talk{texts: l.says, cancel: cancel}
	if l.within > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, l.within)
		defer stop()
		m.cancel = nil
	}
	hooks := tr.Hooks()
	if l.before != nil {
		hooks = append([]broker.Hook{l.before}, hooks...)
	}
	if l.behind != nil {
		hooks = append(hooks, l.behind)
	}
	defer tr.Close(t.Context())
	ctx, ended := tr.Execution(ctx)
	o, lost := run(ctx, loop.Config{
		Sandbox: acts{m}, Model: m, Bundle: b, Now: time.Now, Hooks: hooks, Spans: tr.Spans(),
		Tools: []broker.Tool{
			{PinnedTool: b.Tools[0], Backend: says(`"private result"`)},
			{PinnedTool: b.Tools[1], Backend: answers(func(context.Context, broker.Request) (broker.Answer, error) {
				return broker.Answer{}, &broker.Failure{Message: "private message"}
			})},
		},
	})
	if !lost {
		ended(o)
	}
	return r, len(tr.open.spans)
}

// run is loop.Run in a process that does not end with a panic.
func run(ctx context.Context, c loop.Config) (o loop.Outcome, lost bool) {
	defer func() {
		if recover() != nil {
			lost = true
		}
	}()
	return loop.Run(ctx, c), false
}

// tree are the spans as text: name!error(those below, in their order).
func (r *receiver) tree() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.Clone(r.spans)
	slices.SortStableFunc(list, func(a, b *otlp.Span) int { return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
	var below func(parent string) string
	below = func(parent string) string {
		var out []string
		for _, s := range list {
			if string(s.ParentSpanId) != parent {
				continue
			}
			name := s.Name
			for _, a := range s.Attributes {
				if a.Key == "error.type" {
					name += "!" + a.Value.GetStringValue()
				}
			}
			if inner := below(string(s.SpanId)); inner != "" {
				name += "(" + inner + ")"
			}
			out = append(out, name)
		}
		return strings.Join(out, " ")
	}
	return below("")
}

// TestWaysOut has every way out of the loop: each span has ended before the run is
// over, and whatever did not succeed says so.
func TestWaysOut(t *testing.T) {
	step := func(inside string) string { return "codeact.step(chat m" + inside + ")" }
	failed := func(r, inside string) string { return fmt.Sprintf("codeact.step!%s(chat m%s)", r, inside) }
	program := func(r, inside string) string {
		name := " execute_tool code"
		if r != "" {
			name += "!" + r
		}
		if inside != "" {
			name += "(" + inside + ")"
		}
		return name
	}
	agent := func(r string, steps ...string) string {
		name := "invoke_agent"
		if r != "" {
			name += "!" + r
		}
		return name + "(" + strings.Join(steps, " ") + ")"
	}
	bad := failed("ProtocolError", "")
	hooked := agent("BrokerUnavailable", failed("BrokerUnavailable", program("BrokerUnavailable", "execute_tool get!BrokerUnavailable")))
	tests := map[string]struct {
		life life
		want string
		lost bool // a panic went through it
	}{
		"the model ends":      {life{says: []string{final}}, agent("", step("")), false},
		"a program ends":      {life{says: []string{code("value")}}, agent("", step(program("", ""))), false},
		"after a call":        {life{says: []string{code("call get")}}, agent("", step(program("", "execute_tool get"))), false},
		"after a failure":     {life{says: []string{code("fail JavaScriptError"), final}}, agent("", failed("JavaScriptError", program("JavaScriptError", "")), step("")), false},
		"in two steps":        {life{says: []string{code("null"), final}}, agent("", step(program("", "")), step("")), false},
		"no message":          {life{says: []string{"prose"}}, agent("ProtocolError", bad, bad, bad), false},
		"a native call":       {life{says: []string{"!native", final}}, agent("", bad, step("")), false},
		"steps":               {life{says: []string{code("null")}, change: func(b *contract.Bundle) { b.Agent.MaxSteps = 1 }}, agent("StepLimitExceeded", step(program("", ""))), false},
		"tokens":              {life{says: []string{final}, change: func(b *contract.Bundle) { b.Agent.MaxTokens = 5 }}, agent("TokenBudgetExceeded", failed("TokenBudgetExceeded", "!TokenBudgetExceeded")), false},
		"model error":         {life{says: []string{"!fault"}}, agent("ModelError", failed("ModelError", "!ModelError")), false},
		"an error":            {life{says: []string{"!error"}}, agent("ModelError", failed("ModelError", "!ModelError")), false},
		"cancelled, asking":   {life{says: []string{"!wait"}}, agent("Cancelled", failed("Cancelled", "!Cancelled")), false},
		"cancelled, running":  {life{says: []string{code("wait")}}, agent("Cancelled", failed("Cancelled", program("Cancelled", ""))), false},
		"too late, asking":    {life{says: []string{"!wait"}, within: 50 * time.Millisecond}, agent("DeadlineExceeded", failed("DeadlineExceeded", "!DeadlineExceeded")), false},
		"too late, running":   {life{says: []string{code("wait")}, within: 50 * time.Millisecond}, agent("DeadlineExceeded", failed("Cancelled", program("Cancelled", ""))), false},
		"worker lost":         {life{says: []string{code("break")}}, agent("WorkerLost", failed("WorkerLost", program("WorkerLost", ""))), false},
		"a call in doubt":     {life{says: []string{code("call break"), final}}, agent("", failed("EffectUncertain", program("EffectUncertain", "execute_tool break!EffectUncertain")), step("")), false},
		"a call of no tool":   {life{says: []string{code("call ghost"), final}}, agent("", failed("ToolNotAllowed", program("ToolNotAllowed", "execute_tool ghost!ToolNotAllowed")), step("")), false},
		"wrong output":        {life{says: []string{final}, change: func(b *contract.Bundle) { b.OutputSchema = json.RawMessage(`{"type":"object"}`) }}, agent("InvalidOutput", failed("InvalidOutput", "")), false},
		"wrong input":         {life{says: []string{final}, change: func(b *contract.Bundle) { b.InputSchema = json.RawMessage(`{"type":"object"}`) }}, "invoke_agent!InvalidInput", false},
		"a hook panics":       {life{says: []string{code("call get"), final}, behind: panics{at: "Dispatch"}}, hooked, false},
		"an earlier one does": {life{says: []string{code("call get"), final}, before: panics{at: "Dispatch"}}, hooked, false},
		"one that observes":   {life{says: []string{code("call get"), final}, behind: panics{at: "Observe"}}, agent("", step(program("", "execute_tool get"))), false},
		"an earlier observer": {life{says: []string{code("call get"), final}, before: panics{at: "Observe"}}, agent("", step(program("", "execute_tool get"))), false},
		"the model panics":    {life{says: []string{"!panic"}}, agent("WorkerLost", failed("WorkerLost", "!WorkerLost")), true},
		"the engine panics":   {life{says: []string{code("panic")}}, agent("WorkerLost", failed("WorkerLost", program("WorkerLost", ""))), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, open := tc.life.lived(t)
			if got := r.tree(); got != tc.want {
				t.Errorf("spans\n%s\nwant\n%s", got, tc.want)
			}
			if open != 0 != tc.lost {
				t.Errorf("%d spans were open behind the run", open)
			}
			if raw := r.raw.String(); strings.Contains(raw, "private") {
				t.Error("what belongs to the tenant was sent to the collector")
			}
		})
	}
}
