package broker

import (
	"context"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// writeThrough is the hook that keeps the journal outside the process, for calls
// that may change something.
type writeThrough struct {
	Pass
	b *Broker
}

// Dispatch implements Hook: the intent.
func (w writeThrough) Dispatch(ctx context.Context, m Moment) (context.Context, error) {
	return ctx, w.record(ctx, m, "the call was not sent, since its intent could not be written down")
}

// Result implements Hook: the outcome.
func (w writeThrough) Result(ctx context.Context, m Moment) error {
	return w.record(ctx, m, "the outcome of a call could not be written down")
}

func (w writeThrough) record(ctx context.Context, m Moment, otherwise string) error {
	if m.Call.Effect == contract.EffectReadOnly {
		return nil
	}
	w.b.mu.Lock()
	calls, refused := w.b.book.snapshot(), w.b.book.refused
	w.b.mu.Unlock()
	if err := w.b.cfg.Journal.Record(ctx, calls, refused); err != nil {
		return contract.Faultf(contract.ReasonBrokerUnavailable, "%s", otherwise)
	}
	return nil
}

// observer is the hook of Config.Observe.
type observer struct {
	Pass
	f func(Event)
}

// Observe implements Hook.
func (o observer) Observe(_ context.Context, m Moment) {
	o.f(Event{
		Call: m.Call, Duration: m.Duration, Latched: m.Latched, Drifted: m.Drifted, Progress: m.Progress,
		Arguments: m.Arguments, Result: m.Result, Fault: m.Fault, Evidence: m.Evidence,
	})
}
