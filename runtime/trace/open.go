package trace

import (
	"context"
	"slices"
	"sync"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// open knows the spans that have begun and not ended. One that nobody ends, since
// a panic went by its end, would never be sent.
type open struct {
	mu    sync.Mutex
	spans []sdk.ReadWriteSpan // in the order of their beginning
}

// OnStart implements sdk.SpanProcessor.
func (o *open) OnStart(_ context.Context, s sdk.ReadWriteSpan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spans = append(o.spans, s)
}

// OnEnd implements sdk.SpanProcessor.
func (o *open) OnEnd(s sdk.ReadOnlySpan) {
	id := s.SpanContext().SpanID()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spans = slices.DeleteFunc(o.spans, func(x sdk.ReadWriteSpan) bool { return x.SpanContext().SpanID() == id })
}

// Shutdown implements sdk.SpanProcessor.
func (*open) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdk.SpanProcessor.
func (*open) ForceFlush(context.Context) error { return nil }

// end ends the open spans that are chosen, the inner ones first, as work that was
// lost, and reports whether there were any.
func (o *open) end(chosen func(sdk.ReadWriteSpan) bool) bool {
	o.mu.Lock()
	var left []sdk.ReadWriteSpan
	for _, s := range slices.Backward(o.spans) {
		if chosen(s) {
			left = append(left, s)
		}
	}
	o.mu.Unlock()
	for _, s := range left {
		fail(s, contract.ReasonWorkerLost)
		s.End()
	}
	return len(left) > 0
}

// endIn ends the open spans directly in parent.
func (o *open) endIn(parent api.Span) bool {
	id := parent.SpanContext().SpanID()
	return o.end(func(s sdk.ReadWriteSpan) bool { return s.Parent().SpanID() == id })
}
