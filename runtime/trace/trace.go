// Package trace tells an OpenTelemetry collector what a run does: one span for
// the execution and one below it for every child call; in the run of an agent, one
// for each step between these, with its request to the model and its program or
// tool. A collector that is slow, or gone, never holds a run up.
package trace

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	api "go.opentelemetry.io/otel/trace"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

const (
	// scope names this package as the maker of the spans.
	scope = "github.com/codeact-dev/codeact-operator/runtime/trace"
	// service is the service.name of every runtime pod.
	service = "codeact-runtime"
	// exportFor bounds one export.
	exportFor = 5 * time.Second
	// flushFor bounds what the end of a run waits for the collector.
	flushFor = 2 * time.Second
	// maxContentBytes bounds arguments and results in a span.
	maxContentBytes = 64 << 10
)

// Attributes of our own; the others follow OpenTelemetry's conventions for
// generative AI and for MCP (semantic conventions 1.41).
const (
	keyNamespace    = attribute.Key("codeact.run.namespace")
	keyRun          = attribute.Key("codeact.run.name")
	keyRunUID       = attribute.Key("codeact.run.uid")
	keyGeneration   = attribute.Key("codeact.run.generation")
	keyRecipe       = attribute.Key("codeact.recipe.name")
	keySourceDigest = attribute.Key("codeact.source.digest")
	keyGrant        = attribute.Key("codeact.grant.name")
	keyEffect       = attribute.Key("codeact.call.effect")
	keyState        = attribute.Key("codeact.call.state")
	keyAttempts     = attribute.Key("codeact.call.attempts")
	keyArguments    = attribute.Key("codeact.call.arguments_digest")
	keyResult       = attribute.Key("codeact.call.result_digest")
)

// Tracer makes the spans of one execution. A nil *Tracer makes none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   api.Tracer
	open     *open
	bundle   contract.Bundle
	tools    map[string]contract.PinnedTool
}

// New returns a tracer that sends to the collector of the environment
// (OTEL_EXPORTER_OTLP_ENDPOINT and what else the exporter reads there), by OTLP
// over HTTP. Nothing is sent before the first span has ended.
func New(ctx context.Context, b contract.Bundle) (*Tracer, error) {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithTimeout(exportFor))
	if err != nil {
		return nil, fmt.Errorf("trace exporter: %w", err)
	}
	return newTracer(exporter, b), nil
}

func newTracer(exporter sdk.SpanExporter, b contract.Bundle) *Tracer {
	// What the collector answers may hold anything: it is nobody's log line.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	began := &open{}
	t := &Tracer{
		provider: sdk.NewTracerProvider(
			sdk.WithSpanProcessor(began),
			sdk.WithBatcher(exporter),
			// Whoever asked for the run has decided for it, if there is a parent.
			sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample())),
			sdk.WithResource(resource.NewSchemaless(semconv.ServiceName(service), semconv.K8SNamespaceName(b.Run.Namespace))),
		),
		open: began, bundle: b, tools: map[string]contract.PinnedTool{},
	}
	t.tracer = t.provider.Tracer(scope)
	for _, p := range b.Tools {
		t.tools[p.Tool.Name] = p
	}
	return t
}

// Execution starts the span of the execution, below the span that the bundle
// names, if any. The returned function ends it with what the execution came to.
func (t *Tracer) Execution(ctx context.Context) (context.Context, func(loop.Outcome)) {
	if t == nil {
		return ctx, func(loop.Outcome) {}
	}
	r := t.bundle.Run
	attributes := []attribute.KeyValue{
		keyNamespace.String(r.Namespace), keyRun.String(r.Name), keyRunUID.String(r.UID),
		keyGeneration.Int64(r.Generation), keySourceDigest.String(t.bundle.SourceDigest),
	}
	name := "codeact.execution"
	if t.bundle.Recipe != nil {
		attributes = append(attributes, keyRecipe.String(t.bundle.Recipe.Name))
	}
	if a := t.bundle.Agent; a != nil {
		name, attributes = "invoke_agent", append(attributes, agentOf(*a)...)
	}
	ctx, span := t.tracer.Start(below(ctx, t.bundle.TraceParent), name, api.WithAttributes(attributes...))
	return ctx, func(o loop.Outcome) {
		if t.bundle.Agent != nil {
			span.SetAttributes(used(o)...)
		}
		if o.Fault != nil {
			fail(span, o.Fault.Reason)
		}
		span.End()
	}
}

// below makes a span elsewhere the parent of those of ctx. One that is none is not
// looked at: nobody's run fails for a trace.
func below(ctx context.Context, traceParent string) context.Context {
	if !contract.ValidTraceParent(traceParent) {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceParent})
}

// fail marks a span. The fault's message stays out of it: a program may have
// written its data there.
func fail(span api.Span, r contract.Reason) {
	span.SetStatus(codes.Error, string(r))
	span.SetAttributes(semconv.ErrorTypeKey.String(string(r)))
}

// Close ends the spans that are still open, sends what is left and waits for the
// collector for a short time. It has no error: there is nobody whom it would help.
func (t *Tracer) Close(ctx context.Context) {
	if t == nil {
		return
	}
	t.open.end(func(sdk.ReadWriteSpan) bool { return true })
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushFor)
	defer cancel()
	_ = t.provider.Shutdown(ctx)
}
