package loop

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// asks is a model that does what a test says, given the number of the request.
type asks func(ctx context.Context, n int, r ModelRequest) (ModelAnswer, error)

type asked struct {
	f        asks
	requests []ModelRequest
}

func (a *asked) Ask(ctx context.Context, r ModelRequest) (ModelAnswer, error) {
	a.requests = append(a.requests, r)
	return a.f(ctx, len(a.requests), r)
}

// answers gives the texts one after another, and the last one for good.
func answers(texts ...string) asks {
	return func(_ context.Context, n int, _ ModelRequest) (ModelAnswer, error) {
		return ModelAnswer{Text: &texts[min(n, len(texts))-1], Attempts: 1}, nil
	}
}

// code is a message with a program; the executors of these tests go by its text.
func code(source string) string {
	b, _ := json.Marshal(map[string]string{"type": "code", "language": "javascript", "code": source})
	return string(b)
}

const final = `{"type":"final","output":"said"}`

// acts is an executor whose programs are single words.
func acts(ctx context.Context, p sandbox.Program, c sandbox.Caller) (sandbox.Result, error) {
	r := sandbox.Result{Value: json.RawMessage(`"ok"`), Usage: sandbox.Usage{HeapBytes: 65536, Fuel: 10}}
	verb, arg, _ := strings.Cut(p.Source, " ")
	switch verb {
	case "return":
		r.Value = json.RawMessage(arg)
	case "call":
		v, err := c.Call(ctx, arg, json.RawMessage("{}"))
		r.Value = v
		return r, err
	case "fail":
		return sandbox.Result{Usage: r.Usage}, contract.Faultf(contract.Reason(arg), "it failed").At(3, 4)
	case "break":
		return sandbox.Result{}, errors.New("x")
	case "wait":
		<-ctx.Done()
		return sandbox.Result{}, contract.Faultf(contract.ReasonTimeout, "late")
	}
	return r, nil
}

// throws is e whose programs all fail at their end.
func throws(e executor) executor {
	return func(ctx context.Context, p sandbox.Program, c sandbox.Caller) (sandbox.Result, error) {
		r, err := e(ctx, p, c)
		if err == nil {
			r.Value, err = nil, contract.Faultf(contract.ReasonJavaScriptError, "j")
		}
		return r, err
	}
}

// backend answers 7, or is lost on the way.
type backend struct{ lost bool }

func (b backend) Call(context.Context, broker.Request) (broker.Answer, error) {
	if b.lost {
		return broker.Answer{}, &broker.Failure{Message: "lost", Receipt: "r-1"}
	}
	return broker.Answer{Body: []byte("7"), Bytes: 1}, nil
}

func tools() []broker.Tool {
	of := func(name string, e contract.Effect, b backend) broker.Tool {
		return broker.Tool{PinnedTool: contract.PinnedTool{Tool: contract.Tool{Name: name, Effect: e}, MaxCalls: 2}, Backend: b}
	}
	return []broker.Tool{
		of("lose", contract.EffectEffectful, backend{lost: true}), of("pay", contract.EffectEffectful, backend{}), of("read", contract.EffectReadOnly, backend{}),
	}
}

type broken struct{}

func (broken) Record(context.Context, []contract.Call, int64) error { return errors.New("x") }

// agentConfig is the run of an agent with those three tools.
func agentConfig(f asks) (Config, *asked) {
	m := &asked{f: f}
	return Config{
		Sandbox: executor(acts), Tools: tools(), Model: m, Now: clock(),
		Bundle: contract.Bundle{
			Limits: contract.DefaultLimits(),
			Agent:  &contract.PinnedAgent{Protocol: contract.ProtocolCode, Finalize: contract.FinalizeDirect, Prompt: "p", MaxSteps: 4},
		},
	}, m
}

// TestAgentWaysOut has every way out of the loop, with its reason and with what it
// leaves.
func TestAgentWaysOut(t *testing.T) {
	model := contract.FinalizeModel
	useful := `{"step":1,"result":8}`
	eight := code("return 8")
	cancelled := func() (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(t.Context())
		return ctx, func() { cancel(contract.Faultf(contract.ReasonCancelled, "c")) }
	}
	late := func() (context.Context, context.CancelFunc) {
		return context.WithTimeoutCause(t.Context(), 30*time.Millisecond, contract.Faultf(contract.ReasonDeadlineExceeded, "d"))
	}
	thenWait := func(f asks, n int) asks {
		return func(ctx context.Context, i int, r ModelRequest) (ModelAnswer, error) {
			if i <= n {
				return f(ctx, i, r)
			}
			<-ctx.Done()
			return ModelAnswer{}, ctx.Err()
		}
	}
	thenFail := func(f asks, err error) asks {
		return func(ctx context.Context, i int, r ModelRequest) (ModelAnswer, error) {
			if i == 1 {
				return f(ctx, i, r)
			}
			return ModelAnswer{Attempts: 3}, err
		}
	}
	thenCount := func(f asks, in int64) asks {
		return func(ctx context.Context, i int, r ModelRequest) (ModelAnswer, error) {
			a, err := f(ctx, i, r)
			a.Counted, a.InputTokens = i > 1, in
			return a, err
		}
	}
	tests := map[string]struct {
		model    asks
		finalize contract.Finalize
		change   func(*Config)
		ctx      func() (context.Context, context.CancelFunc)
		want     contract.Reason // or else value
		value    string
		evidence string
		steps    []string
	}{
		"the result of a program": {model: answers(eight), value: "8", steps: []string{"Code"}},
		"the model's end":         {model: answers(code("fail JavaScriptError"), final), value: `"said"`, steps: []string{"Code JavaScriptError", "Final"}},
		"the model's end after a success": {
			model: answers(eight, eight, final), finalize: model, value: `"said"`, steps: []string{"Code", "Refused", "Final"},
		},
		"no steps left": {
			model: answers(code("fail JavaScriptError")), want: contract.ReasonStepLimitExceeded,
			steps: []string{"Code JavaScriptError", "Code JavaScriptError", "Code JavaScriptError", "Code JavaScriptError"},
		},
		"no steps left after a result": {
			model: answers(eight), finalize: model, want: contract.ReasonStepLimitExceeded, evidence: useful,
			steps: []string{"Code", "Refused", "Refused", "Refused"},
		},
		"no tokens left": {
			model: thenCount(answers(eight, final), 101), finalize: model, change: func(c *Config) { c.Bundle.Agent.MaxTokens = 100 },
			want: contract.ReasonTokenBudgetExceeded, evidence: useful, steps: []string{"Code", " TokenBudgetExceeded"},
		},
		"all of the tokens": {
			model: thenCount(answers(eight, final), 100), finalize: model, change: func(c *Config) { c.Bundle.Agent.MaxTokens = 100 },
			value: `"said"`, steps: []string{"Code", "Final"},
		},
		"no message": {
			model: answers(eight, "hm"), finalize: model, want: contract.ReasonProtocolError, evidence: useful,
			steps: []string{"Code", "ProtocolError ProtocolError", "ProtocolError ProtocolError", "ProtocolError ProtocolError"},
		},
		"no time left for the model": {
			model: thenWait(answers(eight), 1), finalize: model, ctx: late, want: contract.ReasonDeadlineExceeded, evidence: useful,
			steps: []string{"Code", " DeadlineExceeded"},
		},
		"no time left for a program": {
			model: answers(code("wait")), ctx: late, want: contract.ReasonDeadlineExceeded, steps: []string{"Code Timeout"},
		},
		"the model fails": {
			model: thenFail(answers(eight), contract.Faultf(contract.ReasonModelError, "m")), finalize: model,
			want: contract.ReasonModelError, evidence: useful, steps: []string{"Code", "ModelError ModelError"},
		},
		"the model fails without a reason": {
			model: thenFail(answers(eight), errors.New("x")), finalize: model,
			want: contract.ReasonModelError, evidence: useful, steps: []string{"Code", "ModelError ModelError"},
		},
		"no model": {model: answers(eight), change: func(c *Config) { c.Model = nil }, want: contract.ReasonModelError},
		"the budget of the run": {
			model: answers(code("call read"), code("return null")), finalize: model, change: func(c *Config) { *c.Bundle.Limits.ChildCalls = 0 },
			want: contract.ReasonCallLimitExceeded, steps: []string{"Code CallLimitExceeded"},
		},
		"the budget of a tool": {
			model: answers(code("call read"), code("call read"), code("call read")), change: func(c *Config) { c.Sandbox = throws(acts) },
			want: contract.ReasonCallLimitExceeded, steps: []string{"Code JavaScriptError", "Code JavaScriptError", "Code CallLimitExceeded"},
		},
		"the journal cannot be written": {
			model: answers(code("call pay")), change: func(c *Config) { c.Journal = broken{} },
			want: contract.ReasonBrokerUnavailable, steps: []string{"Code BrokerUnavailable"},
		},
		"the sandbox is lost":    {model: answers(code("break")), want: contract.ReasonWorkerLost, steps: []string{"Code WorkerLost"}},
		"the input is too large": {model: answers(code("fail InputTooLarge")), want: contract.ReasonInputTooLarge, steps: []string{"Code InputTooLarge"}},
		"an effect in doubt is no end": {
			model: answers(code("call lose"), code("call pay"), code("call read")), value: "7",
			steps: []string{"Code EffectUncertain", "Code EffectUncertain", "Code"},
		},
		"an effect in doubt and no end": {
			model: answers(code("call lose"), "hm"), want: contract.ReasonProtocolError,
			evidence: `{"seq":1,"tool":"lose","reason":"EffectUncertain","receipt":"r-1"}`,
			steps:    []string{"Code EffectUncertain", "ProtocolError ProtocolError", "ProtocolError ProtocolError", "ProtocolError ProtocolError"},
		},
		"the output is not of its schema": {
			model: answers(eight), change: func(c *Config) { c.Bundle.OutputSchema = json.RawMessage(`{"type":"object"}`) },
			want: contract.ReasonInvalidOutput, evidence: useful, steps: []string{"Code InvalidOutput"},
		},
		"the input is not of its schema": {
			model: answers(eight), change: func(c *Config) { c.Bundle.InputSchema = json.RawMessage(`{"type":"object"}`) }, want: contract.ReasonInvalidInput,
		},
		"another catalogue than the pinned one": {
			model: answers(eight), change: func(c *Config) { c.Bundle.Catalogue = &contract.PinnedCatalogue{Step: contract.CatalogueFull} }, want: contract.ReasonDigestMismatch,
		},
		"the projection is not whole": {
			model: answers(eight), change: func(c *Config) { c.Tools = append(c.Tools, c.Tools[0]) }, want: contract.ReasonNameConflict,
		},
		"cancelled before it began": {
			model: answers(eight), ctx: func() (context.Context, context.CancelFunc) { c, stop := cancelled(); stop(); return c, stop }, want: contract.ReasonCancelled,
		},
		"cancelled without a reason": {
			model: answers(eight), ctx: func() (context.Context, context.CancelFunc) {
				c, stop := context.WithCancel(t.Context())
				stop()
				return c, stop
			}, want: contract.ReasonCancelled,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, _ := agentConfig(tc.model)
			if tc.finalize != "" {
				c.Bundle.Agent.Finalize = tc.finalize
			}
			if tc.change != nil {
				tc.change(&c)
			}
			ctx := t.Context()
			if tc.ctx != nil {
				var stop context.CancelFunc
				ctx, stop = tc.ctx()
				defer stop()
			}
			o := Run(ctx, c)
			var got contract.Reason
			if o.Fault != nil {
				got = o.Fault.Reason
			}
			if got != tc.want || string(o.Value) != tc.value || o.Evidence != tc.evidence {
				t.Errorf("value %s, fault %v, evidence %s; want %q, %q and %q", o.Value, o.Fault, o.Evidence, tc.value, tc.want, tc.evidence)
			}
			if diff := cmp.Diff(tc.steps, stepsOf(o)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func stepsOf(o Outcome) (out []string) {
	for i, s := range o.Steps {
		text := string(s.Kind)
		if s.Reason != "" {
			text += " " + s.Reason
		}
		if s.Step != int64(i+1) {
			text += " out of order"
		}
		out = append(out, text)
	}
	return out
}

// TestAgentIsStoppedInside cancels a run while its model and its program are busy.
func TestAgentIsStoppedInside(t *testing.T) {
	for _, want := range []contract.Reason{contract.ReasonCancelled, contract.ReasonInterrupted, contract.ReasonSuperseded} {
		t.Run("model/"+string(want), func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			c, _ := agentConfig(func(context.Context, int, ModelRequest) (ModelAnswer, error) {
				cancel(contract.Faultf(want, "w"))
				text := code("return 8")
				return ModelAnswer{Text: &text}, nil // an answer that comes too late
			})
			if o := Run(ctx, c); o.Fault == nil || o.Fault.Reason != want || len(o.Steps) != 1 || o.Usage.Fuel != 0 {
				t.Errorf("outcome %+v", o)
			}
		})
		t.Run("program/"+string(want), func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			c, m := agentConfig(answers(code("wait")))
			c.Steps = func([]contract.Step) { cancel(contract.Faultf(want, "w")) }
			if o := Run(ctx, c); o.Fault == nil || o.Fault.Reason != want || len(m.requests) != 1 {
				t.Errorf("outcome %+v after %d requests", o, len(m.requests))
			}
		})
	}
}
