package broker

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// person is a desk at which somebody answers as he is told.
type person func(ctx context.Context, p contract.Pending) (Resolution, error)

func (f person) Await(ctx context.Context, p contract.Pending) (Resolution, error) { return f(ctx, p) }

// waiting is a tool that waits, deferred or for its approval.
func waiting(e contract.Effect, deferred bool, b Backend) Tool {
	t := toolOf("x", e, b)
	t.Direct, t.Tool.Deferred = true, deferred
	if !deferred {
		t.Approval = contract.ApprovalRequired
	}
	return t
}

// TestWaitingInOrder holds the moments of a call that waits to their order: nothing
// is dispatched before the answer, and nothing is sent before the journal says so.
func TestWaitingInOrder(t *testing.T) {
	tests := map[string]struct {
		effect   contract.Effect
		deferred bool
		decision contract.Decision
		want     []string
	}{
		"approved": {contract.EffectEffectful, false, contract.DecisionApprove, []string{
			"a admit", "write 1 x Awaiting ", "wait", "a dispatch Dispatched", "write 1 x Dispatched ", "a observe Dispatched", "send",
			"a result Completed", "write 1 x Completed ", "a observe Completed",
		}},
		"approved, and only reads": {contract.EffectReadOnly, false, contract.DecisionApprove, []string{
			"a admit", "write 1 x Awaiting ", "wait", "a dispatch Dispatched", "a observe Dispatched", "send", "a result Completed", "a observe Completed",
		}},
		"denied": {contract.EffectEffectful, false, contract.DecisionDeny, []string{
			"a admit", "write 1 x Awaiting ", "wait", "a observe Abandoned",
		}},
		"answered": {contract.EffectEffectful, true, contract.DecisionApprove, []string{
			"a admit", "write 1 x Awaiting ", "wait", "a result Completed", "write 1 x Completed ", "a observe Completed",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var log []string
			backend := &fake{answer: func(context.Context, Request) (Answer, error) {
				log = append(log, "send")
				return answerOf("1"), nil
			}}
			b := newBroker(t, Config{
				Tools: []Tool{waiting(tc.effect, tc.deferred, backend)}, Hooks: []Hook{&watch{name: "a", log: &log}}, Journal: &store{log: &log},
				Desk: person(func(context.Context, contract.Pending) (Resolution, error) {
					log = append(log, "wait")
					return Resolution{Decision: tc.decision, Result: json.RawMessage("1"), By: "p"}, nil
				}),
			})
			_, _ = b.Next(Scope{Direct: true}).Call(t.Context(), "x", json.RawMessage("{}"))
			if diff := cmp.Diff(tc.want, log); diff != "" {
				t.Errorf("what happened (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWaitTakesNoTime: what a person needs is no time of the tool's.
func TestWaitTakesNoTime(t *testing.T) {
	for _, d := range []contract.Decision{contract.DecisionApprove, contract.DecisionDeny} {
		t.Run(string(d), func(t *testing.T) {
			var told time.Duration
			b := newBroker(t, Config{
				Tools: []Tool{waiting(contract.EffectEffectful, false, &fake{})}, Observe: func(e Event) { told = max(told, e.Duration) },
			})
			now := time.Unix(0, 0)
			b.cfg.Now = func() time.Time { now = now.Add(time.Millisecond); return now }
			b.cfg.Desk = person(func(context.Context, contract.Pending) (Resolution, error) {
				now = now.Add(time.Hour)
				return Resolution{Decision: d}, nil
			})
			_, _ = b.Next(Scope{Direct: true}).Call(t.Context(), "x", json.RawMessage("{}"))
			if got := b.End().Tools[0].WallMs; got > 10 || told > 10*time.Millisecond {
				t.Errorf("%d ms are of the tool, and %v of the call", got, told)
			}
		})
	}
}

// TestStoppedWhileWaiting ends the run while a call waits, whatever the desk says.
func TestStoppedWhileWaiting(t *testing.T) {
	for _, want := range []contract.Reason{contract.ReasonCancelled, contract.ReasonDeadlineExceeded} {
		for how, end := range map[string]error{"with an answer": nil, "with an error": errors.New("x")} {
			t.Run(string(want)+" "+how, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				tool, log := &fake{}, []string{}
				b := newBroker(t, Config{Tools: []Tool{waiting(contract.EffectEffectful, false, tool)}, Journal: &store{log: &log}})
				b.cfg.Desk = person(func(context.Context, contract.Pending) (Resolution, error) {
					cancel(contract.Faultf(want, "w"))
					return Resolution{Decision: contract.DecisionApprove}, end
				})
				_, err := b.Next(Scope{Direct: true}).Call(ctx, "x", json.RawMessage("{}"))
				r := b.End()
				if reasonOf(err) != want || r.Fault == nil || r.Fault.Reason != want || len(tool.requests) > 0 {
					t.Errorf("%v, latched %v, sent %d", err, r.Fault, len(tool.requests))
				}
				if diff := cmp.Diff([]string{"1 x Abandoned " + string(want)}, states(r.Calls)); diff != "" {
					t.Errorf("journal (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestHostileAnswers has answers that nobody should give.
func TestHostileAnswers(t *testing.T) {
	const object = `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`
	approve := func(result string) Resolution {
		return Resolution{Decision: contract.DecisionApprove, Result: json.RawMessage(result), By: "p"}
	}
	text := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	tests := map[string]struct {
		answer  Resolution
		err     error
		schema  string
		wait    bool // for an approval
		want    contract.Reason
		wantEnd string
		body    string
	}{
		"as large as may be":       {answer: approve(text(contract.MaxResolutionResultBytes)), wantEnd: "1 x Completed ", body: text(contract.MaxResolutionResultBytes)},
		"a byte more":              {answer: approve(text(contract.MaxResolutionResultBytes + 1)), want: contract.ReasonChildResultTooLarge, wantEnd: "1 x Completed ChildResultTooLarge"},
		"too large, says the desk": {err: contract.Faultf(contract.ReasonChildResultTooLarge, "x"), want: contract.ReasonChildResultTooLarge, wantEnd: "1 x Completed ChildResultTooLarge"},
		"too large for an approval": {
			err: contract.Faultf(contract.ReasonChildResultTooLarge, "x"), wait: true, want: contract.ReasonChildResultTooLarge, wantEnd: "1 x Abandoned ChildResultTooLarge",
		},
		"no UTF-8":                     {answer: approve("\"\xff\""), want: contract.ReasonChildResultInvalid, wantEnd: "1 x Completed ChildResultInvalid"},
		"half a character":             {answer: approve(`{"a":"\ud800"}`), schema: object, want: contract.ReasonChildResultInvalid, wantEnd: "1 x Completed ChildResultInvalid"},
		"no JSON":                      {answer: approve(`{"a":`), want: contract.ReasonChildResultInvalid, wantEnd: "1 x Completed ChildResultInvalid"},
		"two values":                   {answer: approve(`1 2`), want: contract.ReasonChildResultInvalid, wantEnd: "1 x Completed ChildResultInvalid"},
		"blanks":                       {answer: approve(" "), want: contract.ReasonChildResultInvalid, wantEnd: "1 x Completed ChildResultInvalid"},
		"nested without end":           {answer: approve(strings.Repeat("[", 30000) + strings.Repeat("]", 30000)), want: contract.ReasonChildResultInvalid, wantEnd: "1 x Completed ChildResultInvalid"},
		"a key twice is the last one":  {answer: approve(`{"a":1, "a":"x"}`), schema: object, wantEnd: "1 x Completed ", body: `{"a":"x"}`},
		"a key twice, the last is bad": {answer: approve(`{"a":"x","a":1}`), schema: object, want: contract.ReasonChildResultInvalid, wantEnd: "1 x Completed ChildResultInvalid"},
		"no decision":                  {answer: Resolution{Result: json.RawMessage("1")}, want: contract.ReasonApprovalRequired, wantEnd: "1 x Abandoned ApprovalRequired"},
		"another decision":             {answer: Resolution{Decision: "approve", By: " "}, wait: true, want: contract.ReasonApprovalRequired, wantEnd: "1 x Abandoned ApprovalRequired"},
		"a denial with a result":       {answer: Resolution{Decision: contract.DecisionDeny, Result: json.RawMessage("1"), By: "\xff"}, want: contract.ReasonApprovalRequired, wantEnd: "1 x Abandoned ApprovalRequired"},
		"an approval with a result":    {answer: approve("7"), wait: true, wantEnd: "1 x Completed ", body: "1"},
		"a catchable fault":            {err: contract.Faultf(contract.ReasonToolFailed, "x"), want: contract.ReasonBrokerUnavailable, wantEnd: "1 x Abandoned BrokerUnavailable"},
		"an error":                     {err: errors.New("x"), wait: true, want: contract.ReasonBrokerUnavailable, wantEnd: "1 x Abandoned BrokerUnavailable"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tool := waiting(contract.EffectEffectful, !tc.wait, &fake{})
			tool.Tool.OutputSchema = json.RawMessage(tc.schema)
			l := contract.DefaultLimits()
			l.OutputBytes = 1 << 20
			b := newBroker(t, Config{Limits: l, Tools: []Tool{tool}, Desk: person(func(context.Context, contract.Pending) (Resolution, error) { return tc.answer, tc.err })})
			body, err := b.Next(Scope{Direct: true}).Call(t.Context(), "x", json.RawMessage("{}"))
			if reasonOf(err) != tc.want || string(body) != tc.body {
				t.Errorf("%.200s, %.200v", body, err)
			}
			if f, _ := contract.AsFault(err); f != nil && (!utf8.ValidString(f.Message) || strings.HasPrefix(f.Message, " ")) {
				t.Errorf("message %q", f.Message)
			}
			if diff := cmp.Diff([]string{tc.wantEnd}, states(b.End().Calls)); diff != "" {
				t.Errorf("journal (-want +got):\n%s", diff)
			}
		})
	}
}
