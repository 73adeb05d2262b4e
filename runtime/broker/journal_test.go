package broker

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// store is a journal that remembers what was written when, and fails as told.
type store struct {
	log    *[]string
	fail   func(n int) error
	writes int
}

func (s *store) Record(_ context.Context, calls []contract.Call, _ int64) error {
	s.writes++
	*s.log = append(*s.log, "write "+states(calls)[len(calls)-1])
	if s.fail != nil {
		return s.fail(s.writes)
	}
	return nil
}

// TestWriteThrough shows what is written before and after what is sent.
func TestWriteThrough(t *testing.T) {
	down := errors.New("down")
	tests := map[string]struct {
		effect  contract.Effect
		failure error // of the tool
		fail    func(int) error
		want    contract.Reason
		wantLog []string
		// wantEnd is the journal at the end.
		wantEnd []string
	}{
		"read only is not written": {
			effect: contract.EffectReadOnly, wantLog: []string{"send"}, wantEnd: []string{"1 x Completed "},
		},
		"intent and outcome": {
			effect:  contract.EffectEffectful,
			wantLog: []string{"write 1 x Dispatched ", "send", "write 1 x Completed "}, wantEnd: []string{"1 x Completed "},
		},
		"a failure that the program learns of": {
			effect: contract.EffectIdempotent, failure: &Failure{Proof: Answered}, want: contract.ReasonToolFailed,
			wantLog: []string{"write 1 x Dispatched ", "send", "write 1 x Failed ToolFailed"}, wantEnd: []string{"1 x Failed ToolFailed"},
		},
		"a terminal failure is left to the report": {
			effect: contract.EffectEffectful, failure: &Failure{}, want: contract.ReasonEffectUncertain,
			wantLog: []string{"write 1 x Dispatched ", "send"}, wantEnd: []string{"1 x Uncertain EffectUncertain"},
		},
		"no intent, no call": {
			effect: contract.EffectIdempotent, fail: func(int) error { return down }, want: contract.ReasonBrokerUnavailable,
			wantLog: []string{"write 1 x Dispatched "}, wantEnd: []string{"1 x Abandoned BrokerUnavailable"},
		},
		"no outcome": {
			effect: contract.EffectEffectful, want: contract.ReasonBrokerUnavailable,
			fail: func(n int) error {
				if n == 2 {
					return down
				}
				return nil
			},
			wantLog: []string{"write 1 x Dispatched ", "send", "write 1 x Completed "}, wantEnd: []string{"1 x Uncertain BrokerUnavailable"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var log []string
			backend := &fake{answer: func(context.Context, Request) (Answer, error) {
				log = append(log, "send")
				return answerOf("1"), tc.failure
			}}
			b := newBroker(t, Config{Tools: []Tool{toolOf("x", tc.effect, backend)}, Journal: &store{log: &log, fail: tc.fail}})
			_, err := b.Call(t.Context(), "x", json.RawMessage("{}"))
			if got := reasonOf(err); got != tc.want {
				t.Errorf("error %v, want the reason %q", err, tc.want)
			}
			if diff := cmp.Diff(tc.wantLog, log); diff != "" {
				t.Errorf("what happened (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantEnd, states(b.End().Calls)); diff != "" {
				t.Errorf("journal (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStopDuringACall shows that the run's reason is that of the stop, while the
// journal says what is known of the call.
func TestStopDuringACall(t *testing.T) {
	tests := map[string]struct {
		effect contract.Effect
		proof  Proof
		cause  error
		want   contract.Reason
		end    string
	}{
		"effectful, cancelled":   {contract.EffectEffectful, Unproven, contract.Faultf(contract.ReasonCancelled, "c"), contract.ReasonCancelled, "1 x Uncertain Cancelled"},
		"idempotent, interrupt":  {contract.EffectIdempotent, Unproven, contract.Faultf(contract.ReasonInterrupted, "i"), contract.ReasonInterrupted, "1 x Uncertain Interrupted"},
		"read only, deadline":    {contract.EffectReadOnly, Unproven, contract.Faultf(contract.ReasonDeadlineExceeded, "d"), contract.ReasonDeadlineExceeded, "1 x Failed DeadlineExceeded"},
		"effectful, never sent":  {contract.EffectEffectful, NeverSent, context.DeadlineExceeded, contract.ReasonTimeout, "1 x Failed ToolFailed"},
		"effectful, refused":     {contract.EffectEffectful, Answered, nil, contract.ReasonCancelled, "1 x Failed ToolFailed"},
		"effectful, plain cause": {contract.EffectEffectful, Unproven, errors.New("x"), contract.ReasonCancelled, "1 x Uncertain Cancelled"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			backend := &fake{answer: func(ctx context.Context, _ Request) (Answer, error) {
				cancel(tc.cause)
				<-ctx.Done()
				return Answer{}, &Failure{Proof: tc.proof}
			}}
			b := newBroker(t, Config{Tools: []Tool{toolOf("x", tc.effect, backend)}})
			if _, err := b.Call(ctx, "x", json.RawMessage("{}")); reasonOf(err) != tc.want {
				t.Errorf("error %v, want the reason %s", err, tc.want)
			}
			// An executor that goes on under another context gets nowhere.
			if _, err := b.Call(t.Context(), "x", json.RawMessage("{}")); reasonOf(err) != tc.want {
				t.Errorf("second error %v, want the reason %s", err, tc.want)
			}
			r := b.End()
			if len(backend.requests) != 1 || r.Fault == nil || r.Fault.Reason != tc.want {
				t.Errorf("%d requests, fault %v", len(backend.requests), r.Fault)
			}
			if got := states(r.Calls)[0]; got != tc.end {
				t.Errorf("journal has %q, want %q", got, tc.end)
			}
		})
	}
}

func TestCallTimeout(t *testing.T) {
	x := toolOf("x", contract.EffectReadOnly, &fake{answer: func(ctx context.Context, _ Request) (Answer, error) {
		<-ctx.Done()
		return Answer{}, &Failure{Message: "in other words"}
	}})
	x.TimeoutMs = 5
	b := newBroker(t, Config{Tools: []Tool{x}})
	_, err := b.Call(t.Context(), "x", json.RawMessage("{}"))
	f, _ := contract.AsFault(err)
	if f == nil || f.Reason != contract.ReasonToolFailed || f.Message != "tool x did not answer within 5ms" {
		t.Errorf("error %v", err)
	}
	if r := b.End(); r.Fault != nil {
		t.Errorf("a call's own timeout ended the run with %v", r.Fault)
	}
}

func TestEvents(t *testing.T) {
	var got []string
	b := newBroker(t, Config{
		Tools:   []Tool{toolOf("x", contract.EffectReadOnly, &fake{})},
		Observe: func(e Event) { got = append(got, states([]contract.Call{e.Call})[0]+" "+e.Duration.String()) },
	})
	_, _ = b.Call(t.Context(), "x", json.RawMessage("{}"))
	_, _ = b.Call(t.Context(), "y", json.RawMessage("{}"))
	want := []string{"1 x Dispatched  0s", "1 x Completed  1ms", "0 y Refused ToolNotAllowed 0s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestNewRefusesABrokenProjection(t *testing.T) {
	bad := toolOf("x", contract.EffectReadOnly, &fake{})
	bad.Tool.OutputSchema = json.RawMessage(`{"type":7}`)
	tests := map[string]struct {
		tools []Tool
		want  contract.Reason
	}{
		"a schema": {[]Tool{bad}, contract.ReasonSchemaInvalid},
		"a name twice": {
			[]Tool{toolOf("x", contract.EffectReadOnly, &fake{}), toolOf("x", contract.EffectReadOnly, &fake{})},
			contract.ReasonNameConflict,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(Config{Tools: tc.tools, Now: time.Now})
			if got := reasonOf(err); got != tc.want {
				t.Errorf("error %v, want the reason %s", err, tc.want)
			}
		})
	}
}
