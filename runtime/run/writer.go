package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/runtime/report"
)

// writer writes through into the claimed execution what must be known while it
// goes on: the journal, with the steps of an agent so far and the call that waits.
type writer struct {
	client *report.Client
	now    func() time.Time
	// slot is held by the one write that is under way: a hook may be left behind
	// while it writes, and nothing older may come after what is newer.
	slot chan struct{}

	mu sync.Mutex // guards so
	so contract.Execution
}

func newWriter(c *report.Client, claim contract.Execution, now func() time.Time) *writer {
	return &writer{client: c, now: now, slot: make(chan struct{}, 1), so: claim}
}

// Record implements broker.Journal.
func (w *writer) Record(ctx context.Context, calls []contract.Call, refused int64) error {
	w.keep(func(e *contract.Execution) { e.Calls, e.RefusedCalls = calls, refused })
	return w.write(ctx, w.client.WriteThrough)
}

// steps keeps the steps for the next write. They alone are not worth one.
func (w *writer) steps(s []contract.Step) {
	w.keep(func(e *contract.Execution) { e.Steps = s })
}

// Await implements loop.Desk. While the API server cannot be reached, it goes on
// waiting. The error is ctx's, or wraps a *contract.Fault.
func (w *writer) Await(ctx context.Context, p contract.Pending) (loop.Resolution, error) {
	if p.Since == "" {
		p.Since = w.now().UTC().Format(time.RFC3339)
	}
	w.keep(func(e *contract.Execution) { e.Pending = []contract.Pending{p} })
	defer w.keep(func(e *contract.Execution) { e.Pending = nil })
	if err := w.write(ctx, w.client.WriteWhile); err != nil {
		if ctx.Err() != nil {
			return loop.Resolution{}, ctx.Err()
		}
		return loop.Resolution{}, fmt.Errorf("%w: %w", contract.Faultf(contract.ReasonBrokerUnavailable,
			"the call was not made, since nobody could be told that it waits"), err)
	}
	a, err := w.client.Answer(ctx, p.ID)
	if ctx.Err() != nil {
		return loop.Resolution{}, ctx.Err() // the report follows, and has nothing that waits
	}
	w.keep(func(e *contract.Execution) { e.Pending = nil })
	// The answer stands whether or not that can be written now: the next write says
	// it too.
	_ = w.write(ctx, w.client.WriteThrough)
	if err != nil {
		return loop.Resolution{}, err
	}
	return loop.Resolution{Decision: a.Decision, Result: a.Result, By: a.By}, nil
}

func (w *writer) keep(edit func(*contract.Execution)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	edit(&w.so)
}

// write writes what is newest when its turn comes.
func (w *writer) write(ctx context.Context, by func(context.Context, contract.Execution) error) error {
	select {
	case w.slot <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.slot }()
	w.mu.Lock()
	e := w.so
	w.mu.Unlock()
	return by(ctx, e)
}
