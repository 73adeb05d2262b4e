package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// fake is a backend that answers as it is told and counts.
type fake struct {
	requests []Request
	answer   func(ctx context.Context, r Request) (Answer, error)
}

func (f *fake) Call(ctx context.Context, r Request) (Answer, error) {
	f.requests = append(f.requests, r)
	if f.answer == nil {
		return answerOf("1"), nil
	}
	return f.answer(ctx, r)
}

func answerOf(body string) Answer {
	return Answer{Body: []byte(body), Bytes: int64(len(body)), Digest: contract.Digest([]byte(body))}
}

func failing(f error) *fake {
	return &fake{answer: func(context.Context, Request) (Answer, error) { return Answer{}, f }}
}

func toolOf(name string, e contract.Effect, b Backend) Tool {
	return Tool{PinnedTool: contract.PinnedTool{Tool: contract.Tool{Name: name, Effect: e}}, Backend: b}
}

// clock ticks one millisecond at every look.
func clock() func() time.Time {
	t := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time { t = t.Add(time.Millisecond); return t }
}

func newBroker(t *testing.T, cfg Config) *Broker {
	t.Helper()
	cfg.Run = contract.RunRef{Namespace: "n", Name: "r", UID: "u", Generation: 3}
	if cfg.Limits == (contract.Limits{}) {
		cfg.Limits = contract.DefaultLimits()
	}
	cfg.Now = clock()
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func reasonOf(err error) contract.Reason {
	f, _ := contract.AsFault(err)
	if f == nil {
		return ""
	}
	return f.Reason
}

func states(calls []contract.Call) []string {
	out := []string{}
	for _, c := range calls {
		out = append(out, fmt.Sprintf("%d %s %s %s", c.Seq, c.Tool, c.State, c.Reason))
	}
	return out
}

func TestFailureByEffectAndProof(t *testing.T) {
	type want struct {
		state  contract.CallState
		reason contract.Reason
	}
	failed := want{contract.CallFailed, contract.ReasonToolFailed}
	uncertain := want{contract.CallUncertain, contract.ReasonEffectUncertain}
	tests := map[string]struct {
		failure error
		want    map[contract.Effect]want
	}{
		"never sent": {&Failure{Proof: NeverSent}, map[contract.Effect]want{
			contract.EffectReadOnly: failed, contract.EffectIdempotent: failed, contract.EffectEffectful: failed,
		}},
		"answered": {&Failure{Proof: Answered}, map[contract.Effect]want{
			contract.EffectReadOnly: failed, contract.EffectIdempotent: failed, contract.EffectEffectful: failed,
		}},
		"unproven": {&Failure{}, map[contract.Effect]want{
			contract.EffectReadOnly: failed, contract.EffectIdempotent: uncertain, contract.EffectEffectful: uncertain,
		}},
		"an error that nobody thought of": {errors.New("x"), map[contract.Effect]want{
			contract.EffectReadOnly: failed, contract.EffectEffectful: uncertain,
		}},
		"deferred": {&Failure{Reason: contract.ReasonCallDeferred}, map[contract.Effect]want{
			contract.EffectReadOnly:  {contract.CallFailed, contract.ReasonCallDeferred},
			contract.EffectEffectful: {contract.CallUncertain, contract.ReasonCallDeferred},
		}},
		"no credential": {&Failure{Proof: NeverSent, Reason: contract.ReasonBrokerUnavailable}, map[contract.Effect]want{
			contract.EffectReadOnly:  {contract.CallAbandoned, contract.ReasonBrokerUnavailable},
			contract.EffectEffectful: {contract.CallAbandoned, contract.ReasonBrokerUnavailable},
		}},
	}
	for name, tc := range tests {
		for effect, w := range tc.want {
			t.Run(name+"/"+string(effect), func(t *testing.T) {
				b := newBroker(t, Config{Tools: []Tool{toolOf("x", effect, failing(tc.failure))}})
				_, err := b.Call(t.Context(), "x", json.RawMessage("{}"))
				if got := reasonOf(err); got != w.reason {
					t.Errorf("error %v, want the reason %s", err, w.reason)
				}
				r := b.End()
				if c := r.Calls[0]; c.State != w.state || c.Reason != w.reason || c.ID != "u:3:1" {
					t.Errorf("journal has %+v, want %v", c, w)
				}
				if terminal := w.reason.Class() == contract.ClassTerminal; terminal != (r.Fault != nil) {
					t.Errorf("latched %v, want that to be %v", r.Fault, terminal)
				}
			})
		}
	}
}

// TestOrder holds the steps of admission to their order: every call breaks all
// the rules from one step on, and the first of them names the reason.
func TestOrder(t *testing.T) {
	none := int64(0)
	withheld := contract.Faultf(contract.ReasonApprovalRequired, "nobody approved")
	tests := map[string]struct {
		outputBytes int64
		name        string
		args        string
		withheld    *contract.Fault
		want        contract.Reason
	}{
		"evidence first": {127, "ghost", "[]", withheld, contract.ReasonEvidenceBudgetTooSmall},
		"then the name":  {128, "ghost", "[]", withheld, contract.ReasonToolNotAllowed},
		"then arguments": {128, "x", "[]", withheld, contract.ReasonInvalidArguments},
		"then withheld":  {128, "x", "{}", withheld, contract.ReasonApprovalRequired},
		"then budgets":   {128, "x", "{}", nil, contract.ReasonCallLimitExceeded},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			backend := &fake{}
			x := toolOf("x", contract.EffectEffectful, backend)
			x.Tool.InputSchema = json.RawMessage(`{"type":"object"}`)
			x.Withheld = tc.withheld
			b := newBroker(t, Config{Limits: contract.Limits{OutputBytes: tc.outputBytes, ChildCalls: &none}, Tools: []Tool{x}})
			_, err := b.Call(t.Context(), tc.name, json.RawMessage(tc.args))
			if got := reasonOf(err); got != tc.want {
				t.Errorf("error %v, want the reason %s", err, tc.want)
			}
			r := b.End()
			if len(backend.requests) != 0 || r.Admitted != 0 || r.Refused != 1 {
				t.Errorf("sent %d, admitted %d, refused %d", len(backend.requests), r.Admitted, r.Refused)
			}
			want := []string{fmt.Sprintf("0 %s Refused %s", tc.name, tc.want)}
			if diff := cmp.Diff(want, states(r.Calls)); diff != "" {
				t.Errorf("journal (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLatchHolds(t *testing.T) {
	backend := &fake{}
	b := newBroker(t, Config{Tools: []Tool{toolOf("x", contract.EffectReadOnly, backend)}})
	if _, err := b.Call(t.Context(), "ghost", json.RawMessage("{}")); reasonOf(err) != contract.ReasonToolNotAllowed {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := b.Call(t.Context(), "x", json.RawMessage("{}")); reasonOf(err) != contract.ReasonToolNotAllowed {
			t.Errorf("error %v after the latch", err)
		}
	}
	if len(backend.requests) != 0 {
		t.Errorf("%d requests went out after the latch", len(backend.requests))
	}
	if r := b.End(); r.Fault == nil || r.Fault.Reason != contract.ReasonToolNotAllowed {
		t.Errorf("fault %v", r.Fault)
	}
}

func TestEndClosesTheBroker(t *testing.T) {
	backend := &fake{}
	b := newBroker(t, Config{Tools: []Tool{toolOf("x", contract.EffectReadOnly, backend)}})
	if r := b.End(); r.Fault != nil {
		t.Errorf("a run without a fault ended with %v", r.Fault)
	}
	if _, err := b.Call(t.Context(), "x", json.RawMessage("{}")); reasonOf(err) != contract.ReasonBrokerUnavailable {
		t.Errorf("error %v", err)
	}
	if len(backend.requests) != 0 || len(b.End().Calls) != 0 {
		t.Error("a call went through after the end")
	}
}

func TestRefusedCallsAreCountedAndCut(t *testing.T) {
	x := toolOf("x", contract.EffectReadOnly, &fake{})
	x.Tool.InputSchema = json.RawMessage(`{"type":"object"}`)
	b := newBroker(t, Config{Tools: []Tool{x}})
	for range contract.MaxRefusedCalls + 10 {
		if _, err := b.Call(t.Context(), "x", json.RawMessage("1")); reasonOf(err) != contract.ReasonInvalidArguments {
			t.Fatal(err)
		}
	}
	if _, err := b.Call(t.Context(), "x", json.RawMessage("{}")); err != nil {
		t.Fatal(err)
	}
	r := b.End()
	if r.Refused != contract.MaxRefusedCalls+10 || len(r.Calls) != contract.MaxRefusedCalls+1 || r.Admitted != 1 {
		t.Errorf("%d refused, %d listed, %d admitted", r.Refused, len(r.Calls), r.Admitted)
	}
}

func TestArguments(t *testing.T) {
	secret := "hunter2"
	tests := map[string]struct {
		args string
		want contract.Reason
	}{
		"an object":     {`{"n":1}`, ""},
		"not JSON":      {`{`, contract.ReasonInvalidArguments},
		"two values":    {`1 2`, contract.ReasonInvalidArguments},
		"nothing":       {``, contract.ReasonInvalidArguments},
		"not UTF-8":     {"{\"n\":\"\xff\"}", contract.ReasonInvalidArguments},
		"wrong type":    {`{"n":"` + secret + `"}`, contract.ReasonInvalidArguments},
		"too large":     {`{"n":` + strings.Repeat("1", contract.MaxArgumentBytes) + `}`, contract.ReasonInvalidArguments},
		"too deep":      {strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), contract.ReasonInvalidArguments},
		"missing value": {`{}`, contract.ReasonInvalidArguments},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			x := toolOf("x", contract.EffectReadOnly, &fake{})
			x.Tool.InputSchema = json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)
			b := newBroker(t, Config{Tools: []Tool{x}})
			_, err := b.Call(t.Context(), "x", json.RawMessage(tc.args))
			if got := reasonOf(err); got != tc.want {
				t.Fatalf("error %v, want the reason %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("error %v quotes the arguments", err)
			}
		})
	}
}

func TestResults(t *testing.T) {
	tests := map[string]struct {
		answer    Answer
		effect    contract.Effect
		want      contract.Reason
		wantState contract.CallState
	}{
		"fits":                 {answerOf(`{"a":1}`), contract.EffectEffectful, "", contract.CallCompleted},
		"exactly the limit":    {answerOf(`"` + strings.Repeat("x", 998) + `"`), contract.EffectEffectful, contract.ReasonChildResultInvalid, contract.CallCompleted},
		"one byte more":        {answerOf(`"` + strings.Repeat("x", 999) + `"`), contract.EffectEffectful, contract.ReasonChildResultTooLarge, contract.CallCompleted},
		"does not match":       {answerOf(`{}`), contract.EffectReadOnly, contract.ReasonChildResultInvalid, contract.CallCompleted},
		"no JSON, harmless":    {answerOf(`<html>`), contract.EffectReadOnly, contract.ReasonToolFailed, contract.CallFailed},
		"no JSON, not so":      {answerOf(`<html>`), contract.EffectIdempotent, contract.ReasonEffectUncertain, contract.CallUncertain},
		"empty":                {answerOf(``), contract.EffectEffectful, contract.ReasonEffectUncertain, contract.CallUncertain},
		"not UTF-8":            {answerOf("{\"a\":\"\xff\"}"), contract.EffectEffectful, contract.ReasonEffectUncertain, contract.CallUncertain},
		"text behind the JSON": {answerOf(`{"a":1} {}`), contract.EffectEffectful, contract.ReasonEffectUncertain, contract.CallUncertain},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			x := toolOf("x", tc.effect, &fake{answer: func(context.Context, Request) (Answer, error) { return tc.answer, nil }})
			x.Tool.OutputSchema = json.RawMessage(`{"type":"object","required":["a"]}`)
			limits := contract.DefaultLimits()
			limits.OutputBytes = 1000
			b := newBroker(t, Config{Limits: limits, Tools: []Tool{x}})
			body, err := b.Call(t.Context(), "x", json.RawMessage("{}"))
			if got := reasonOf(err); got != tc.want {
				t.Fatalf("error %v, want the reason %q", err, tc.want)
			}
			if err == nil && string(body) != string(tc.answer.Body) {
				t.Errorf("result %s", body)
			}
			c := b.End().Calls[0]
			if c.State != tc.wantState || c.Reason != tc.want || c.ResultDigest != tc.answer.Digest || c.ResultBytes != tc.answer.Bytes {
				t.Errorf("journal has %+v", c)
			}
		})
	}
}

func TestJournalEntry(t *testing.T) {
	x := toolOf("x", contract.EffectReadOnly, &fake{})
	x.Grant = contract.GrantRef{Name: "g", UID: "gu", Generation: 7}
	b := newBroker(t, Config{Tools: []Tool{x}})
	if _, err := b.Call(t.Context(), "x", json.RawMessage(`{ "b":1, "a":2 }`)); err != nil {
		t.Fatal(err)
	}
	want := []contract.Call{{
		Seq: 1, ID: "u:3:1", Tool: "x", Grant: "g", GrantUID: "gu", GrantGeneration: 7, Effect: contract.EffectReadOnly,
		State: contract.CallCompleted, ArgumentsDigest: contract.Digest([]byte(`{"a":2,"b":1}`)),
		ResultDigest: contract.Digest([]byte("1")), ResultBytes: 1, Attempts: 1,
		StartTime: "2026-01-02T03:04:05.001Z", EndTime: "2026-01-02T03:04:05.002Z",
	}}
	if diff := cmp.Diff(want, b.End().Calls); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func TestPrecisionLossIsSaid(t *testing.T) {
	for body, want := range map[string]bool{`{"n":9007199254740993}`: true, `{"n":9007199254740992}`: false, `"9007199254740993"`: false} {
		b := newBroker(t, Config{Tools: []Tool{toolOf("x", contract.EffectReadOnly, &fake{answer: func(context.Context, Request) (Answer, error) { return answerOf(body), nil }})}})
		if got, err := b.Call(t.Context(), "x", json.RawMessage("{}")); err != nil || string(got) != body {
			t.Errorf("result %s, error %v", got, err)
		}
		if c := b.End().Calls[0]; c.PrecisionLoss != want {
			t.Errorf("%s: precisionLoss is %v", body, c.PrecisionLoss)
		}
	}
}
