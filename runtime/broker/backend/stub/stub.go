// Package stub stands in for tools where there are none: it answers calls as a
// file of stubs says.
package stub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// Stub says how one tool behaves. Exactly one of its behaviours is set; the
// schemas, the effect and what a tool gives besides its answer may stand beside
// any of them.
type Stub struct {
	// Returns is what the tool answers. In it, an object with exactly the keys
	// repeat and times stands for the string repeat written times times.
	Returns json.RawMessage `json:"returns"`
	// Echo answers the arguments.
	Echo bool `json:"echo"`
	// Fails fails with a safe message, proven to have had no effect.
	Fails *Fails `json:"fails"`
	// Approval needs an approval that nobody gave.
	Approval bool `json:"approval"`
	// Deferred would answer only later.
	Deferred bool `json:"deferred"`
	// Uncertain fails although its effect may have happened.
	Uncertain bool `json:"uncertain"`
	// ReturnsBytes answers a string of x that serialises to exactly so many
	// bytes, quotes included.
	ReturnsBytes *int64 `json:"returnsBytes"`
	// SleepMs answers null after so many milliseconds.
	SleepMs *int64 `json:"sleepMs"`

	// FailsFirst is how many attempts at the beginning are lost on the way before
	// the tool behaves as it says.
	FailsFirst int64 `json:"failsFirst"`
	// Retry is that of the grant.
	Retry *contract.Retry `json:"retry"`
	// Effect is the tool's; Effectful when it is empty.
	Effect contract.Effect `json:"effect"`
	// Receipt comes with an answer, and with a failure.
	Receipt string `json:"receipt"`
	// Media is what the tool shows; it never reaches the program.
	Media *contract.Media `json:"media"`

	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
}

// Fails is a failure that the tool declares.
type Fails struct {
	Message string `json:"message"`
	// Result is the tool's answer, for the report only.
	Result json.RawMessage `json:"result"`
}

// maxStringBytes bounds a string that a stub makes up.
const maxStringBytes = 64 << 20

// Parse reads a JSON object of stubs by tool name.
func Parse(text []byte) (map[string]Stub, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var out map[string]Stub
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("stubs: %w", err)
	}
	if d.More() {
		return nil, errors.New("stubs: text after the JSON object")
	}
	for name, s := range out {
		if !contract.ValidToolName(name) {
			return nil, fmt.Errorf("stub %q: a tool's name matches %s", name, contract.ToolNamePattern)
		}
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("stub %q: %w", name, err)
		}
		if s.Returns != nil {
			v, err := Expand(s.Returns)
			if err != nil {
				return nil, fmt.Errorf("stub %q: returns: %w", name, err)
			}
			s.Returns = v
			out[name] = s
		}
	}
	return out, nil
}

var effects = []contract.Effect{contract.EffectReadOnly, contract.EffectIdempotent, contract.EffectEffectful}

func (s Stub) check() error {
	n := 0
	for _, set := range []bool{s.Returns != nil, s.Echo, s.Fails != nil, s.Approval, s.Deferred, s.Uncertain, s.ReturnsBytes != nil, s.SleepMs != nil} {
		if set {
			n++
		}
	}
	switch {
	case n != 1:
		return fmt.Errorf("%d behaviours, want exactly one of returns, echo, fails, approval, deferred, uncertain, returnsBytes and sleepMs", n)
	case s.ReturnsBytes != nil && (*s.ReturnsBytes < 2 || *s.ReturnsBytes > maxStringBytes):
		return fmt.Errorf("returnsBytes is %d, want 2 to %d", *s.ReturnsBytes, maxStringBytes)
	case s.SleepMs != nil && *s.SleepMs < 0:
		return fmt.Errorf("sleepMs is negative")
	case s.FailsFirst < 0:
		return fmt.Errorf("failsFirst is negative")
	case s.Effect != "" && !slices.Contains(effects, s.Effect):
		return fmt.Errorf("effect is %q, want one of %v", s.Effect, effects)
	case s.Retry != nil && (s.Effect == "" || s.Effect == contract.EffectEffectful):
		return fmt.Errorf("only a tool whose effect is ReadOnly or Idempotent may have a retry")
	case s.Retry != nil && (s.Retry.Attempts < 2 || s.Retry.Attempts > 5 || s.Retry.BackoffMs < 0):
		return fmt.Errorf("retry has %d attempts and a backoff of %d ms, want 2 to 5 and no less than 0", s.Retry.Attempts, s.Retry.BackoffMs)
	}
	return nil
}

// Tools are stubbed tools and the count of how often they were really entered.
type Tools struct {
	// List is the projection, sorted by name.
	List    []broker.Tool
	entered atomic.Int64
}

// Entered counts the calls that reached a stub.
func (t *Tools) Entered() int64 { return t.entered.Load() }

// callTimeout is beyond every wall-clock limit: a stub's time is the program's.
const callTimeout = 24 * time.Hour

// New makes tools of the stubs. They are Effectful unless they say otherwise.
func New(stubs map[string]Stub) *Tools {
	out := &Tools{}
	for name, s := range stubs {
		t := broker.Tool{
			PinnedTool: contract.PinnedTool{
				Tool:      contract.Tool{Name: name, InputSchema: s.InputSchema, OutputSchema: s.OutputSchema, Effect: s.Effect},
				Retry:     s.Retry,
				TimeoutMs: callTimeout.Milliseconds(),
			},
			Backend: &backend{stub: s, entered: &out.entered},
		}
		switch {
		case s.Approval:
			t.Withheld = contract.Faultf(contract.ReasonApprovalRequired, "tool %s needs an approval that nobody gave", name)
		case s.Deferred:
			t.Withheld = contract.Faultf(contract.ReasonCallDeferred, "tool %s would answer only later, and a run never waits for that", name)
		}
		out.List = append(out.List, t)
	}
	slices.SortFunc(out.List, func(a, b broker.Tool) int { return strings.Compare(a.Tool.Name, b.Tool.Name) })
	return out
}

type backend struct {
	stub    Stub
	entered *atomic.Int64
	own     atomic.Int64 // attempts at this tool
}

// Call implements broker.Backend.
func (b *backend) Call(ctx context.Context, r broker.Request) (broker.Answer, error) {
	b.entered.Add(1)
	s := b.stub
	if b.own.Add(1) <= s.FailsFirst {
		return broker.Answer{}, &broker.Failure{Message: "the answer was lost"}
	}
	ans, err := s.behave(ctx, r)
	if f, ok := errors.AsType[*broker.Failure](err); ok {
		f.Receipt, f.Media = s.Receipt, s.Media
		return broker.Answer{}, f
	}
	ans.Receipt, ans.Media = s.Receipt, s.Media
	return ans, nil
}

func (s Stub) behave(ctx context.Context, r broker.Request) (broker.Answer, error) {
	switch {
	case s.Fails != nil:
		return broker.Answer{}, &broker.Failure{Proof: broker.Answered, Message: s.Fails.Message, Result: s.Fails.Result}
	case s.Uncertain:
		return broker.Answer{}, &broker.Failure{Message: "the answer was lost"}
	case s.Echo:
		return answer(r.Arguments), nil
	case s.ReturnsBytes != nil:
		return answer([]byte(`"` + strings.Repeat("x", int(*s.ReturnsBytes)-2) + `"`)), nil
	case s.SleepMs != nil:
		timer := time.NewTimer(time.Duration(*s.SleepMs) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
			return answer([]byte("null")), nil
		case <-ctx.Done():
			return broker.Answer{}, &broker.Failure{Message: "there was no answer in time"}
		}
	}
	return answer(s.Returns), nil
}

func answer(body []byte) broker.Answer {
	return broker.Answer{Body: body, Bytes: int64(len(body)), Digest: contract.Digest(body)}
}
