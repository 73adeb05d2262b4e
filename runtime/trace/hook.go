package trace

import (
	"context"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	api "go.opentelemetry.io/otel/trace"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// Hooks returns what hangs on the broker's calls, nothing without a tracer: one
// span a call, from its dispatch to its outcome, below the span of the context. A
// call that ended before its dispatch has a span without a length.
func (t *Tracer) Hooks() []broker.Hook {
	if t == nil {
		return nil
	}
	return []broker.Hook{hook{t: t}}
}

type hook struct {
	broker.Pass
	t *Tracer
}

// spanKey is the context key of the call's span. The span of the context may be
// that of the execution: a call may end before its own has begun.
type spanKey struct{}

// Dispatch implements broker.Hook: it starts the span, so that the request and
// the hooks behind this one are within it.
func (h hook) Dispatch(ctx context.Context, m broker.Moment) (context.Context, error) {
	ctx, span := h.start(ctx, m)
	h.content(span, semconv.GenAIToolCallArgumentsKey, m.Arguments)
	return context.WithValue(ctx, spanKey{}, span), nil
}

// Observe implements broker.Hook: it ends the span with the outcome.
func (h hook) Observe(ctx context.Context, m broker.Moment) {
	if m.Progress != nil || m.Call.State == contract.CallDispatched {
		return
	}
	span, begun := ctx.Value(spanKey{}).(api.Span)
	if !begun {
		_, span = h.start(ctx, m)
	}
	c := m.Call
	span.SetAttributes(keyState.String(string(c.State)), keyAttempts.Int64(c.Attempts))
	if c.ResultDigest != "" {
		span.SetAttributes(keyResult.String(c.ResultDigest))
	}
	if c.Reason != "" {
		fail(span, c.Reason)
	}
	h.content(span, semconv.GenAIToolCallResultKey, m.Result)
	span.End()
}

func (h hook) start(ctx context.Context, m broker.Moment) (context.Context, api.Span) {
	c := m.Call
	attributes := []attribute.KeyValue{
		semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolName(c.Tool), semconv.GenAIToolType("function"),
		keyEffect.String(string(c.Effect)),
	}
	if c.ID != "" {
		attributes = append(attributes, semconv.GenAIToolCallID(c.ID), keyArguments.String(c.ArgumentsDigest))
	}
	if c.Grant != "" {
		attributes = append(attributes, keyGrant.String(c.Grant))
	}
	attributes = append(attributes, h.t.server(c.Tool)...)
	return h.t.tracer.Start(ctx, "execute_tool "+c.Tool, api.WithSpanKind(api.SpanKindClient), api.WithAttributes(attributes...))
}

// server says where the tool is: the host of its URL, and nothing else of it,
// since a path may hold what was taken from the arguments.
func (t *Tracer) server(tool string) []attribute.KeyValue {
	p, ok := t.tools[tool]
	if !ok {
		return nil
	}
	var out []attribute.KeyValue
	var address string
	switch {
	case p.Backend.MCP != nil:
		out = append(out, semconv.McpMethodNameToolsCall)
		address = p.Backend.MCP.URL
	case p.Backend.HTTP != nil:
		address = p.Backend.HTTP.URL
	}
	if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
		out = append(out, semconv.ServerAddress(u.Hostname()))
	}
	return out
}

// content puts text into the span, where the operator wants that.
func (h hook) content(span api.Span, key attribute.Key, text []byte) {
	if h.t.bundle.Operator.TraceContent && len(text) > 0 {
		span.SetAttributes(key.String(strings.ToValidUTF8(contract.Truncate(string(text), maxContentBytes), "�")))
	}
}
