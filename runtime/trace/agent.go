package trace

import (
	"context"
	"net/url"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	api "go.opentelemetry.io/otel/trace"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// Attributes of our own of an agent's spans.
const (
	keyProtocol      = attribute.Key("codeact.agent.protocol")
	keySteps         = attribute.Key("codeact.agent.steps")
	keyEstimated     = attribute.Key("codeact.usage.estimated")
	keyStep          = attribute.Key("codeact.step.number")
	keyStepKind      = attribute.Key("codeact.step.kind")
	keyDrift         = attribute.Key("codeact.step.drift")
	keyProgram       = attribute.Key("codeact.step.program_digest")
	keyModelAttempts = attribute.Key("codeact.model.attempts")
)

const (
	// unknownTool stands for every name that is no tool of the run: the model may
	// have written anything there.
	unknownTool = "_OTHER"
	// maxWordBytes bounds what is taken over of an endpoint's own words: an id, or
	// why it stopped.
	maxWordBytes = 128
)

// Spans returns what the loop tells of an agent's run, nil without a tracer. A
// step is below the span of its context; the request to the model and each
// program, recipe and tool are below the step, and child calls below these.
func (t *Tracer) Spans() loop.Spans {
	if t == nil || t.bundle.Agent == nil {
		return nil
	}
	return spans{t: t, agent: *t.bundle.Agent}
}

type spans struct {
	t     *Tracer
	agent contract.PinnedAgent
}

// agentOf says which agent is invoked.
func agentOf(a contract.PinnedAgent) []attribute.KeyValue {
	return append(modelOf(a.Model), semconv.GenAIOperationNameInvokeAgent, keyProtocol.String(string(a.Protocol)))
}

// modelOf says who answers. Every endpoint speaks OpenAI's form, which is what the
// conventions have as the provider; the server tells which one it really is.
func modelOf(m contract.PinnedModel) []attribute.KeyValue {
	out := []attribute.KeyValue{semconv.GenAIProviderNameOpenAI, semconv.GenAIRequestModel(m.Model)}
	if u, err := url.Parse(m.URL); err == nil && u.Hostname() != "" {
		out = append(out, semconv.ServerAddress(u.Hostname()))
		if n, err := strconv.Atoi(u.Port()); err == nil {
			out = append(out, semconv.ServerPort(n))
		}
	}
	return out
}

// used is what an agent's run needed.
func used(o loop.Outcome) []attribute.KeyValue {
	out := []attribute.KeyValue{
		keySteps.Int(len(o.Steps)),
		semconv.GenAIUsageInputTokensKey.Int64(o.Usage.InputTokens), semconv.GenAIUsageOutputTokensKey.Int64(o.Usage.OutputTokens),
	}
	if o.Usage.TokensEstimated {
		out = append(out, keyEstimated.Bool(true))
	}
	return out
}

// Step implements loop.Spans. What is still open in the step when it ends was left
// by a panic, which is the end of the step as well.
func (s spans) Step(ctx context.Context, step int64) (context.Context, func(contract.Step)) {
	ctx, span := s.t.tracer.Start(ctx, "codeact.step", api.WithAttributes(keyStep.Int64(step)))
	return ctx, func(x contract.Step) {
		if x.Kind != "" {
			span.SetAttributes(keyStepKind.String(string(x.Kind)))
		}
		if x.Drift {
			span.SetAttributes(keyDrift.Bool(true))
		}
		if x.ProgramDigest != "" {
			span.SetAttributes(keyProgram.String(x.ProgramDigest))
		}
		lost := s.t.open.endIn(span)
		switch {
		case x.Reason != "":
			fail(span, contract.Reason(x.Reason))
		case lost:
			fail(span, contract.ReasonWorkerLost)
		}
		span.End()
	}
}

// Inference implements loop.Spans.
func (s spans) Inference(ctx context.Context, r loop.ModelRequest) (context.Context, func(loop.ModelAnswer, *contract.Fault)) {
	m := s.agent.Model
	attributes := append(modelOf(m), semconv.GenAIOperationNameChat)
	attributes = append(attributes, asked(s.agent.Options)...)
	ctx, span := s.t.tracer.Start(ctx, "chat "+m.Model, api.WithSpanKind(api.SpanKindClient), api.WithAttributes(attributes...))
	if s.t.bundle.Operator.TraceContent {
		span.SetAttributes(semconv.GenAIInputMessagesKey.String(shown(r.Messages)))
	}
	return ctx, func(a loop.ModelAnswer, f *contract.Fault) {
		span.SetAttributes(keyModelAttempts.Int64(a.Attempts))
		if a.Counted {
			span.SetAttributes(semconv.GenAIUsageInputTokensKey.Int64(a.InputTokens), semconv.GenAIUsageOutputTokensKey.Int64(a.OutputTokens))
		}
		if a.FinishReason != "" {
			span.SetAttributes(semconv.GenAIResponseFinishReasons(word(a.FinishReason)))
		}
		if s.t.bundle.Operator.TraceContent && (a.Text != nil || len(a.ToolCalls) > 0) {
			span.SetAttributes(semconv.GenAIOutputMessagesKey.String(said(a)))
		}
		if f != nil {
			fail(span, f.Reason)
		}
		span.End()
	}
}

// asked are the parameters of a request, as far as they are set.
func asked(o contract.ModelOptions) (out []attribute.KeyValue) {
	if n, err := o.Temperature.Float64(); err == nil {
		out = append(out, semconv.GenAIRequestTemperature(n))
	}
	if n, err := o.TopP.Float64(); err == nil {
		out = append(out, semconv.GenAIRequestTopP(n))
	}
	if o.MaxOutputTokens > 0 {
		out = append(out, semconv.GenAIRequestMaxTokensKey.Int64(o.MaxOutputTokens))
	}
	if o.Seed != nil {
		out = append(out, semconv.GenAIRequestSeedKey.Int64(*o.Seed))
	}
	return out
}

// Tool implements loop.Spans.
func (s spans) Tool(ctx context.Context, name, id string) (context.Context, func(*contract.Fault)) {
	if !s.knows(name) {
		name = unknownTool
	}
	attributes := []attribute.KeyValue{semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolName(name), semconv.GenAIToolType("function")}
	if id != "" {
		attributes = append(attributes, semconv.GenAIToolCallID(word(id)))
	}
	ctx, span := s.t.tracer.Start(ctx, "execute_tool "+name, api.WithAttributes(attributes...))
	return ctx, func(f *contract.Fault) {
		if f != nil {
			fail(span, f.Reason)
		}
		span.End()
	}
}

// knows reports whether the name is one of the run's own.
func (s spans) knows(name string) bool {
	if name == loop.CodeTool || name == contract.RunCodeTool {
		return true
	}
	for _, r := range s.agent.Recipes {
		if r.ToolName == name {
			return true
		}
	}
	_, ok := s.t.tools[name]
	return ok
}
