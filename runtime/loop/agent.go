package loop

import (
	"context"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/loop/protocol"
)

// agent is a run whose programs a model writes. One step is one request to the
// model and what comes of its answer.
type agent struct {
	*run
	pinned  contract.PinnedAgent
	output  *contract.Schema
	broker  *broker.Broker
	history history
	tokens  tokens
	steps   []contract.Step
	// mistakes counts the answers that were no message.
	mistakes int
	// closing says that a program has succeeded, and only the end may follow.
	closing bool
	// last is the last useful result, and left what the last call left that ended
	// its program.
	last *contract.LastResult
	left string
	used contract.Usage
	// What follows is of the protocol Tools alone. offered is what the present step
	// offers: nothing else may its answer call.
	shown   contract.Catalogue
	recipes []recipe
	offered offer
	// doubted says that a call may have had an effect: only ReadOnly tools are
	// callable.
	doubted bool
}

// turn is what came of one step: the output of the run, its failure, or what the
// model is told so that it goes on.
type turn struct {
	value    json.RawMessage
	fault    *contract.Fault
	feedback string
	// calls are the native calls of the answer, as the model is shown them again, and
	// results what came of each.
	calls   []contract.ModelToolCall
	results []Message
}

// agent takes the model through its steps.
func (r *run) agent(ctx context.Context) Outcome {
	a := &agent{run: r, pinned: *r.Bundle.Agent}
	if f := a.begin(); f != nil {
		return Outcome{Fault: f}
	}
	value, f := a.turns(ctx)
	return a.outcome(value, f)
}

// begin makes everything that the steps share. Of an empty catalogue nothing may
// be called.
func (a *agent) begin() *contract.Fault {
	if a.Model == nil {
		return contract.Faultf(contract.ReasonModelError, "this runtime has no way to a model")
	}
	if a.pinned.MaxSteps <= 0 {
		a.pinned.MaxSteps = contract.DefaultMaxSteps
	}
	a.pinned.MaxSteps = min(a.pinned.MaxSteps, contract.MaxMaxSteps)
	var f *contract.Fault
	if a.output, f = a.prepare(); f != nil {
		return f
	}
	shown, f := a.catalogue()
	if f != nil {
		return f
	}
	native := a.pinned.Protocol == contract.ProtocolTools
	if shown.Step == contract.CatalogueEmpty {
		a.Tools = uncallable(a.Tools, native)
	}
	if a.broker, f = a.newBroker(); f != nil {
		return f
	}
	a.history = history{prompt: protocol.Task(a.pinned.Prompt, a.Bundle.Input), maxItems: a.pinned.MaxItems}
	if native {
		return a.beginTools(shown)
	}
	a.history.system = protocol.Render(protocol.PromptInput{
		Instructions: a.pinned.Instructions, Finalize: a.pinned.Finalize, Limits: a.Bundle.Limits, MaxSteps: a.pinned.MaxSteps, Catalogue: shown,
	})
	return nil
}

// uncallable keeps every tool from code, whose author could be shown none. The
// model may call them natively all the same.
func uncallable(tools []broker.Tool, native bool) []broker.Tool {
	if !native {
		return nil
	}
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].NotFromCode = true
	}
	return tools
}

// catalogue is what the model is shown of the tools: the one that was pinned, if
// the bundle says so.
func (a *agent) catalogue() (contract.Catalogue, *contract.Fault) {
	var pinned []contract.PinnedTool
	for _, t := range a.Tools {
		pinned = append(pinned, t.PinnedTool)
	}
	c, err := contract.NewCatalogue(contract.FromCode(pinned), contract.MaxCatalogueBytes)
	if err != nil {
		return c, faultOf(err)
	}
	if p := a.Bundle.Catalogue; p != nil && *p != *c.Pinned() {
		return c, contract.Faultf(contract.ReasonDigestMismatch, "the catalogue of the tools is not the pinned one")
	}
	return c, nil
}

func (a *agent) turns(ctx context.Context) (json.RawMessage, *contract.Fault) {
	for n := range a.pinned.MaxSteps {
		if f := stopped(ctx); f != nil {
			return nil, f
		}
		if t := a.step(ctx, n+1); t.value != nil || t.fault != nil {
			return t.value, t.fault
		}
	}
	return nil, contract.Faultf(contract.ReasonStepLimitExceeded,
		"the model came to no end within %d steps (spec.agent.maxSteps)", a.pinned.MaxSteps)
}

// step asks the model once and acts on its answer. Every step is closed, on every
// way out.
func (a *agent) step(ctx context.Context, n int64) turn {
	s := contract.Step{Step: n}
	ctx, ended := a.Spans.Step(ctx, n)
	defer func() { ended(s) }()
	start := a.Now()
	a.at.Store(n)
	a.Events.step(a.Bundle, contract.Event{Type: contract.EventStepStarted, Step: n})
	answer, f := a.ask(ctx, &s)
	t := turn{fault: f}
	if f == nil {
		t = a.act(ctx, &s, answer)
		if t.results != nil {
			a.history.addCalls(answer.Text, t.calls, t.results)
		}
		a.history.add(answer.Text, t.feedback)
	}
	if t.fault != nil && s.Reason == "" {
		s.Reason = string(t.fault.Reason)
	}
	a.steps = append(a.steps, s)
	a.tell(a.steps)
	a.Events.step(a.Bundle, contract.Event{
		Type: contract.EventStepFinished, Step: n, State: string(s.Kind), Reason: contract.Reason(s.Reason), DurationMs: a.Now().Sub(start).Milliseconds(),
	})
	a.at.Store(0)
	return t
}

// ask gets one answer. The fault, if any, ends the run: nothing in the answer is
// looked at.
func (a *agent) ask(ctx context.Context, s *contract.Step) (ModelAnswer, *contract.Fault) {
	r := ModelRequest{Messages: a.history.messages()}
	if a.pinned.Protocol == contract.ProtocolTools {
		a.offered = a.offer()
		r.Tools = a.offered.tools
	}
	a.Events.step(a.Bundle, contract.Event{Type: contract.EventModelRequested, Step: s.Step, Content: a.history.unseen()})
	start := a.Now()
	inner, answered := a.Spans.Inference(ctx, r)
	answer, err := a.request(inner, r, s.Step)
	s.ModelMs, s.Attempts = a.Now().Sub(start).Milliseconds(), answer.Attempts
	if answer.Counted {
		s.InputTokens, s.OutputTokens = max(0, answer.InputTokens), max(0, answer.OutputTokens)
	}
	a.tokens.add(r, answer)
	f := stopped(ctx)
	switch {
	case f != nil:
	case err != nil:
		s.Kind, f = contract.StepModelError, modelFault(err)
	case a.tokens.over(a.pinned.MaxTokens):
		f = contract.Faultf(contract.ReasonTokenBudgetExceeded,
			"the run has used %d tokens of its model, more than its %d", a.tokens.total(), a.pinned.MaxTokens)
	}
	answered(answer, f)
	x := contract.Event{
		Type: contract.EventModelAnswered, Step: s.Step, DurationMs: s.ModelMs,
		InputTokens: s.InputTokens, OutputTokens: s.OutputTokens, Attempts: s.Attempts,
		Content: &contract.EventContent{Reasoning: answer.Reasoning, FinishReason: answer.FinishReason, ToolCalls: answer.ToolCalls},
	}
	if answer.Text != nil {
		x.Content.Text = *answer.Text
	}
	if f != nil {
		x.Reason, x.Content.Message = f.Reason, f.Message
	}
	a.Events.step(a.Bundle, x)
	return answer, f
}

// act does what the answer says.
func (a *agent) act(ctx context.Context, s *contract.Step, answer ModelAnswer) turn {
	if a.pinned.Protocol == contract.ProtocolTools {
		return a.actTools(ctx, s, answer)
	}
	m := a.read(answer)
	s.Drift = m.Drift
	switch m.Kind {
	case protocol.Code:
		s.ProgramDigest = contract.Digest([]byte(m.Code))
		if !a.closing {
			return a.program(ctx, s, m.Code)
		}
		s.Kind = contract.StepRefused
		a.Events.step(a.Bundle, contract.Event{Type: contract.EventProgramRefused, Step: s.Step, Content: source(m.Code, nil)})
		return turn{feedback: protocol.FinalizeMode()}
	case protocol.Final:
		s.Kind = contract.StepFinal
		return a.end(s, m.Output)
	case protocol.Error:
	}
	return a.noMessage(s, protocol.ProtocolError(m))
}

// noMessage is a step whose answer is no message of the protocol.
func (a *agent) noMessage(s *contract.Step, feedback string) turn {
	s.Kind, s.Reason = contract.StepProtocolError, string(contract.ReasonProtocolError)
	if f := a.mistake(s, contract.ReasonProtocolError, feedback); f != nil {
		return turn{fault: f}
	}
	return turn{feedback: feedback}
}

// mistake counts an answer that breaks the protocol. The fault, if any, ends the run.
func (a *agent) mistake(s *contract.Step, r contract.Reason, message string) *contract.Fault {
	a.mistakes++
	a.Events.step(a.Bundle, contract.Event{
		Type: contract.EventProtocolError, Step: s.Step, Reason: r, Content: &contract.EventContent{Message: message},
	})
	if a.mistakes <= contract.MaxProtocolErrors {
		return nil
	}
	return contract.Faultf(contract.ReasonProtocolError, "%d answers of the model were no message of the protocol", a.mistakes)
}

// read is the message of an answer. Some are none for what is not in their text.
func (a *agent) read(answer ModelAnswer) protocol.Message {
	none := func(w protocol.Why) protocol.Message { return protocol.Message{Kind: protocol.Error, Why: w} }
	if answer.Text != nil && len(*answer.Text) > contract.MaxModelAnswerBytes {
		return none(protocol.WhyTooLong)
	}
	if len(answer.ToolCalls) > 0 {
		return none(protocol.WhyNativeCall)
	}
	m := protocol.Parse(answer.Text, answer.FinishReason)
	if most := a.Bundle.Limits.OutputBytes; most > 0 && int64(len(m.Output)) > most {
		return none(protocol.WhyOutputTooLarge)
	}
	if !utf8.Valid(m.Output) {
		return none(protocol.WhyMalformed)
	}
	return m
}

// end is the end of the run with an output.
func (a *agent) end(s *contract.Step, value json.RawMessage) turn {
	if f := checked(a.output, value); f != nil {
		return turn{fault: f}
	}
	a.Events.step(a.Bundle, contract.Event{Type: contract.EventFinal, Step: s.Step, Content: &contract.EventContent{Output: value}})
	return turn{value: value}
}

// modelFault is the fault of a request that no answer came of. The text of an
// error that is no fault may hold anything.
func modelFault(err error) *contract.Fault {
	if f, ok := contract.AsFault(err); ok {
		return f
	}
	return contract.Faultf(contract.ReasonModelError, "the model could not be asked")
}

// stopped says why ctx is done, or nil.
func stopped(ctx context.Context) *contract.Fault {
	return contract.Stopped(ctx, contract.ReasonDeadlineExceeded, "run")
}
