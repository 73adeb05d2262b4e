package broker

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// series answers the nth attempt with the nth failure, and then with 5.
func series(failures ...*Failure) *fake {
	f := &fake{}
	f.answer = func(context.Context, Request) (Answer, error) {
		if n := len(f.requests); n <= len(failures) {
			return Answer{}, failures[n-1]
		}
		return answerOf("5"), nil
	}
	return f
}

func TestRetry(t *testing.T) {
	var (
		unproven = &Failure{Message: "lost"}
		never    = &Failure{Proof: NeverSent, Message: "refused"}
		answered = &Failure{Proof: Answered, Message: "404"}
		final    = &Failure{Message: "lost", Final: true}
		receipt  = &Failure{Message: "lost", Receipt: "r-1"}
		deferred = &Failure{Reason: contract.ReasonCallDeferred}
		patient  = &Failure{Message: "busy", RetryAfter: maxRetryAfter + 1}
	)
	tests := map[string]struct {
		effect   contract.Effect
		attempts int64
		failures []*Failure
		wantSent int
		want     contract.Reason
		end      string
	}{
		"read only, at last":                  {contract.EffectReadOnly, 3, []*Failure{unproven, never}, 3, "", "1 x Completed "},
		"idempotent, at last":                 {contract.EffectIdempotent, 3, []*Failure{unproven, unproven}, 3, "", "1 x Completed "},
		"effectful, never":                    {contract.EffectEffectful, 3, []*Failure{unproven}, 1, contract.ReasonEffectUncertain, "1 x Uncertain EffectUncertain"},
		"effectful, not even what left not":   {contract.EffectEffectful, 3, []*Failure{never}, 1, contract.ReasonToolFailed, "1 x Failed ToolFailed"},
		"not granted":                         {contract.EffectReadOnly, 0, []*Failure{unproven}, 1, contract.ReasonToolFailed, "1 x Failed ToolFailed"},
		"all attempts used":                   {contract.EffectReadOnly, 3, []*Failure{unproven, unproven, unproven}, 3, contract.ReasonToolFailed, "1 x Failed ToolFailed"},
		"more than any grant may say":         {contract.EffectReadOnly, 100, []*Failure{never, never, never, never, never}, 5, contract.ReasonToolFailed, "1 x Failed ToolFailed"},
		"an answer is one":                    {contract.EffectReadOnly, 3, []*Failure{answered}, 1, contract.ReasonToolFailed, "1 x Failed ToolFailed"},
		"final is final":                      {contract.EffectReadOnly, 3, []*Failure{final}, 1, contract.ReasonToolFailed, "1 x Failed ToolFailed"},
		"a terminal reason is":                {contract.EffectReadOnly, 3, []*Failure{deferred}, 1, contract.ReasonCallDeferred, "1 x Failed CallDeferred"},
		"too long to wait":                    {contract.EffectReadOnly, 3, []*Failure{patient}, 1, contract.ReasonToolFailed, "1 x Failed ToolFailed"},
		"the worst attempt counts":            {contract.EffectIdempotent, 3, []*Failure{unproven, answered}, 2, contract.ReasonEffectUncertain, "1 x Uncertain EffectUncertain"},
		"also one in the middle":              {contract.EffectIdempotent, 3, []*Failure{never, unproven, never}, 3, contract.ReasonEffectUncertain, "1 x Uncertain EffectUncertain"},
		"done is done":                        {contract.EffectIdempotent, 3, []*Failure{unproven, {Proof: Done}}, 2, contract.ReasonChildResultInvalid, "1 x Completed ChildResultInvalid"},
		"nothing left in any":                 {contract.EffectIdempotent, 2, []*Failure{never, never}, 2, contract.ReasonToolFailed, "1 x Failed ToolFailed"},
		"a refusal after nothing left":        {contract.EffectIdempotent, 3, []*Failure{never, answered}, 2, contract.ReasonToolFailed, "1 x Failed ToolFailed"},
		"terminal after something unproven":   {contract.EffectIdempotent, 3, []*Failure{unproven, {Proof: NeverSent, Reason: contract.ReasonBrokerUnavailable}}, 2, contract.ReasonBrokerUnavailable, "1 x Uncertain BrokerUnavailable"},
		"a receipt of an attempt is not lost": {contract.EffectIdempotent, 2, []*Failure{receipt, unproven}, 2, contract.ReasonEffectUncertain, "1 x Uncertain EffectUncertain"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			backend := series(tc.failures...)
			x := toolOf("x", tc.effect, backend)
			if tc.attempts > 0 {
				x.Retry = &contract.Retry{Attempts: tc.attempts}
			}
			b := newBroker(t, Config{Tools: []Tool{x}})
			body, err := b.Call(t.Context(), "x", json.RawMessage("{}"))
			if got := reasonOf(err); got != tc.want || err == nil && string(body) != "5" {
				t.Errorf("result %s, error %v, want the reason %q", body, err, tc.want)
			}
			r := b.End()
			if diff := cmp.Diff([]string{tc.end}, states(r.Calls)); diff != "" {
				t.Errorf("journal (-want +got):\n%s", diff)
			}
			if c := r.Calls[0]; len(backend.requests) != tc.wantSent || c.Attempts != int64(tc.wantSent) || r.Admitted != 1 {
				t.Errorf("sent %d times, %d attempts, want %d; %d charged", len(backend.requests), c.Attempts, tc.wantSent, r.Admitted)
			}
			if name == "a receipt of an attempt is not lost" && r.Calls[0].Receipt != "r-1" {
				t.Errorf("receipt %q", r.Calls[0].Receipt)
			}
			for _, q := range backend.requests {
				if q.ID != "u:3:1" {
					t.Errorf("an attempt has the id %s", q.ID)
				}
			}
		})
	}
}

// TestRetryWaits shows how long is waited: doubling, or as long as the tool asks.
func TestRetryWaits(t *testing.T) {
	tests := map[string]struct {
		asked time.Duration
		want  []time.Duration // at least
	}{
		"doubling":           {0, []time.Duration{20 * time.Millisecond, 40 * time.Millisecond}},
		"as the tool asks":   {60 * time.Millisecond, []time.Duration{60 * time.Millisecond, 60 * time.Millisecond}},
		"not less than ours": {30 * time.Millisecond, []time.Duration{30 * time.Millisecond, 40 * time.Millisecond}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var at []time.Time
			backend := &fake{answer: func(context.Context, Request) (Answer, error) {
				at = append(at, time.Now())
				return Answer{}, &Failure{RetryAfter: tc.asked}
			}}
			x := toolOf("x", contract.EffectReadOnly, backend)
			x.Retry = &contract.Retry{Attempts: 3, BackoffMs: 20}
			b := newBroker(t, Config{Tools: []Tool{x}})
			_, _ = b.Call(t.Context(), "x", json.RawMessage("{}"))
			for i, want := range tc.want {
				if d := at[i+1].Sub(at[i]); d < want || d > want+2*time.Second {
					t.Errorf("wait %d was %s, want %s", i+1, d, want)
				}
			}
		})
	}
}

// TestRetryIsStopped shows that a wait ends with the run, and never begins when
// the run would end first.
func TestRetryIsStopped(t *testing.T) {
	long := 20 * time.Second
	tests := map[string]struct {
		proof    Proof
		deadline bool
		want     contract.Reason
		end      string
	}{
		"cancelled, unproven":   {Unproven, false, contract.ReasonCancelled, "1 x Uncertain Cancelled"},
		"cancelled, never sent": {NeverSent, false, contract.ReasonCancelled, "1 x Failed ToolFailed"},
		"no time, unproven":     {Unproven, true, contract.ReasonEffectUncertain, "1 x Uncertain EffectUncertain"},
		"no time, never sent":   {NeverSent, true, contract.ReasonToolFailed, "1 x Failed ToolFailed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tc.deadline {
				// On the broker's clock, which is not the machine's, this is before the wait is over.
				var stop context.CancelFunc
				ctx, stop = context.WithDeadline(ctx, time.Now().Add(long/2))
				defer stop()
			}
			backend := &fake{answer: func(context.Context, Request) (Answer, error) {
				if !tc.deadline {
					time.AfterFunc(10*time.Millisecond, func() { cancel(contract.Faultf(contract.ReasonCancelled, "c")) })
				}
				return Answer{}, &Failure{Proof: tc.proof}
			}}
			x := toolOf("x", contract.EffectIdempotent, backend)
			x.Retry = &contract.Retry{Attempts: 3, BackoffMs: long.Milliseconds()}
			b := newBroker(t, Config{Tools: []Tool{x}})
			b.cfg.Now = time.Now
			start := time.Now()
			if _, err := b.Call(ctx, "x", json.RawMessage("{}")); reasonOf(err) != tc.want {
				t.Errorf("error %v, want the reason %s", err, tc.want)
			}
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("it took %s", d)
			}
			if diff := cmp.Diff([]string{tc.end}, states(b.End().Calls)); diff != "" {
				t.Errorf("journal (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTimeoutIsPerAttempt shows that a slow attempt does not use up the next one's
// time.
func TestTimeoutIsPerAttempt(t *testing.T) {
	backend := &fake{}
	backend.answer = func(ctx context.Context, _ Request) (Answer, error) {
		if len(backend.requests) == 3 {
			return answerOf("5"), nil
		}
		<-ctx.Done()
		return Answer{}, &Failure{}
	}
	x := toolOf("x", contract.EffectIdempotent, backend)
	x.TimeoutMs, x.Retry = 50, &contract.Retry{Attempts: 3}
	b := newBroker(t, Config{Tools: []Tool{x}})
	if body, err := b.Call(t.Context(), "x", json.RawMessage("{}")); err != nil || string(body) != "5" {
		t.Errorf("result %s, error %v", body, err)
	}
	if c := b.End().Calls[0]; c.Attempts != 3 || c.State != contract.CallCompleted {
		t.Errorf("journal has %+v", c)
	}
}

// TestDeafBackend shows that a backend that ignores its context is left behind,
// and not called again.
func TestDeafBackend(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	x := toolOf("x", contract.EffectIdempotent, &fake{answer: func(context.Context, Request) (Answer, error) {
		<-release
		return answerOf("5"), nil
	}})
	x.TimeoutMs, x.Retry = 20, &contract.Retry{Attempts: 3}
	b := newBroker(t, Config{Tools: []Tool{x}})
	start := time.Now()
	_, err := b.Call(t.Context(), "x", json.RawMessage("{}"))
	if f, _ := contract.AsFault(err); f == nil || f.Reason != contract.ReasonEffectUncertain || !strings.Contains(f.Message, "within 20ms") {
		t.Errorf("error %v", err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %s", d)
	}
	if c := b.End().Calls[0]; c.Attempts != 1 || c.State != contract.CallUncertain {
		t.Errorf("journal has %+v", c)
	}
}
