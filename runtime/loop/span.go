package loop

import (
	"context"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Spans are told where the parts of an agent's run begin and end: a step, one
// request to the model in it, and one program, recipe or direct tool call in it. The
// context that each returns is that of everything inside; the returned function
// is called once, on every way out.
type Spans interface {
	Step(ctx context.Context, step int64) (context.Context, func(contract.Step))
	Inference(ctx context.Context, r ModelRequest) (context.Context, func(ModelAnswer, *contract.Fault))
	// Tool is a call of the logical tool name with the id of the model's, or of the
	// runtime's own.
	Tool(ctx context.Context, name, id string) (context.Context, func(*contract.Fault))
}

// noSpans is for a run that nobody traces.
type noSpans struct{}

func (noSpans) Step(ctx context.Context, _ int64) (context.Context, func(contract.Step)) {
	return ctx, func(contract.Step) {}
}

func (noSpans) Inference(ctx context.Context, _ ModelRequest) (context.Context, func(ModelAnswer, *contract.Fault)) {
	return ctx, func(ModelAnswer, *contract.Fault) {}
}

func (noSpans) Tool(ctx context.Context, _, _ string) (context.Context, func(*contract.Fault)) {
	return ctx, func(*contract.Fault) {}
}
