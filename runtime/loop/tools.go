package loop

import (
	"context"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop/protocol"
)

// maxAnswerCalls bounds the native calls of an answer that is looked at.
const maxAnswerCalls = 4 * contract.MaxTurnCalls

// recipe is a recipe that the model may call, with its schemas.
type recipe struct {
	contract.PinnedRecipeTool
	input, output *contract.Schema
	told          bool // its program is in the transcript
}

// offer is what one request offers the model. It is not changed any more.
type offer struct {
	tools []ModelTool
	calls map[string]native
}

// native is one of the three things that a model may call.
type native struct {
	recipe *recipe
	direct bool // or else, without a recipe, it is run_code
}

// beginTools makes what the steps of the protocol Tools share.
func (a *agent) beginTools(shown contract.Catalogue) *contract.Fault {
	a.shown = shown
	pinned := make([]contract.PinnedTool, 0, len(a.Tools))
	for _, t := range a.Tools {
		pinned = append(pinned, t.PinnedTool)
	}
	if err := contract.CheckOffer(pinned, a.pinned.Recipes, shown); err != nil {
		return faultOf(err)
	}
	taken := map[string]bool{contract.RunCodeTool: true}
	take := func(name string) *contract.Fault {
		if taken[name] {
			return contract.Faultf(contract.ReasonNameConflict, "two tools of the model are named %q", name)
		}
		taken[name] = true
		return nil
	}
	for _, r := range a.pinned.Recipes {
		x := recipe{PinnedRecipeTool: r}
		var err error
		if x.input, err = contract.CompileSchema(r.InputSchema); err == nil {
			x.output, err = contract.CompileSchema(r.OutputSchema)
		}
		if err != nil {
			return faultOf(err)
		}
		if f := take(r.ToolName); f != nil {
			return f
		}
		a.recipes = append(a.recipes, x)
	}
	for _, t := range pinned {
		if f := take(t.Tool.Name); t.Direct && f != nil {
			return f
		}
	}
	a.history.system = protocol.RenderTools(a.toolsInput())
	return nil
}

// toolsInput is what the model may be offered now: while an effect is in doubt,
// only the tools that are ReadOnly.
func (a *agent) toolsInput() protocol.ToolsInput {
	in := protocol.ToolsInput{
		Instructions: a.pinned.Instructions, Limits: a.Bundle.Limits, MaxSteps: a.pinned.MaxSteps, Catalogue: a.shown, Recipes: a.pinned.Recipes,
	}
	for _, t := range a.Tools {
		if t.Direct && (!a.doubted || t.Tool.Defaulted().Effect == contract.EffectReadOnly) {
			in.Tools = append(in.Tools, t.PinnedTool)
		}
	}
	return in
}

func (a *agent) offer() offer {
	in := a.toolsInput()
	o := offer{calls: map[string]native{contract.RunCodeTool: {}}}
	for _, d := range protocol.Definitions(in) {
		o.tools = append(o.tools, ModelTool(d))
	}
	for i := range a.recipes {
		o.calls[a.recipes[i].ToolName] = native{recipe: &a.recipes[i]}
	}
	for _, t := range in.Tools {
		o.calls[t.Tool.Name] = native{direct: true}
	}
	return o
}

// actTools does what an answer says in the protocol Tools.
func (a *agent) actTools(ctx context.Context, s *contract.Step, answer ModelAnswer) turn {
	said := Message{ToolCalls: answer.ToolCalls}
	if answer.Text != nil {
		said.Text = *answer.Text
	}
	calls := len(answer.ToolCalls)
	switch {
	case said.bytes() > contract.MaxModelAnswerBytes:
		return a.noMessage(s, protocol.ToolsError(protocol.WhyTooLong))
	case calls > maxAnswerCalls:
		return a.noMessage(s, protocol.ToolsError(protocol.WhyManyCalls))
	case calls > 0 && protocol.CutShort(answer.FinishReason):
		return a.noMessage(s, protocol.ToolsError(protocol.WhyCutCalls))
	case calls > 0:
		return a.turnOf(ctx, s, answer.ToolCalls)
	}
	if why := protocol.ReadTools(answer.Text, answer.FinishReason); why != "" {
		return a.noMessage(s, protocol.ToolsError(why))
	}
	if !utf8.ValidString(said.Text) {
		return a.noMessage(s, protocol.ToolsError(protocol.WhyMalformed))
	}
	spoken := protocol.Spoken(said.Text)
	s.Drift = spoken != said.Text
	value, err := contract.Canonical(spoken)
	if most := a.Bundle.Limits.OutputBytes; err != nil || most > 0 && int64(len(value)) > most {
		return a.noMessage(s, protocol.ToolsError(protocol.WhyOutputTooLarge))
	}
	s.Kind = contract.StepFinal
	return a.end(s, value)
}

// turnOf makes the native calls of one answer, one after another in their order.
func (a *agent) turnOf(ctx context.Context, s *contract.Step, calls []contract.ModelToolCall) turn {
	s.Kind, s.ToolCalls = contract.StepTools, int64(len(calls))
	repeats := repeated(calls)
	calls = identified(s.Step, calls)
	if f := a.strangers(s, calls); f != nil {
		return turn{fault: f}
	}
	a.tell(append(slices.Clip(a.steps), *s))
	t := turn{calls: shownAgain(calls)}
	most := room(len(calls))
	for i, c := range calls {
		var text string
		f := stopped(ctx)
		if f == nil {
			text, f = a.native(ctx, s, c, refusedFor(i, repeats[i]), most)
		}
		if f != nil {
			return turn{fault: f}
		}
		t.results = append(t.results, Message{Role: RoleTool, Text: text, ToolCallID: c.ID})
	}
	return t
}

// room is how many bytes each of n results may have, so that together they fit the
// history.
func room(n int) int { return min(protocol.MaxFeedbackBytes, maxHistoryBytes/n) }

// strangers counts an answer that calls what was not offered as one mistake.
func (a *agent) strangers(s *contract.Step, calls []contract.ModelToolCall) *contract.Fault {
	for _, c := range calls {
		if _, ok := a.offered.calls[c.Name]; !ok {
			return a.mistake(s, contract.ReasonToolNotAllowed, notOffered(c.Name).Message)
		}
	}
	return nil
}

func notOffered(name string) *contract.Fault {
	return contract.Faultf(contract.ReasonToolNotAllowed, "no tool named %q is offered", contract.Truncate(name, 64))
}

// shownAgain is the calls as a later request may repeat them: endpoints refuse a
// name or arguments that could be no call's.
func shownAgain(calls []contract.ModelToolCall) []contract.ModelToolCall {
	calls = slices.Clone(calls)
	for i, c := range calls {
		if !contract.ValidToolName(c.Name) {
			calls[i].Name = "unknown"
		}
		if _, f := object(c.Arguments); f != nil {
			calls[i].Arguments = "{}"
		} else if len(c.Arguments) == 0 {
			calls[i].Arguments = "{}"
		}
	}
	return calls
}

// object is the arguments of a native call, as JSON text. None are an empty object.
func object(text string) (json.RawMessage, *contract.Fault) {
	if blank(text) {
		return json.RawMessage("{}"), nil
	}
	args := json.RawMessage(text)
	if !contract.WellFormed(args) {
		return nil, contract.Faultf(contract.ReasonInvalidArguments, "the arguments are not well-formed Unicode")
	}
	x, err := contract.DecodeJSON(args)
	if err != nil {
		return nil, contract.Faultf(contract.ReasonInvalidArguments, "the arguments are not JSON: %v", err)
	}
	if _, ok := x.(map[string]any); !ok {
		return nil, contract.Faultf(contract.ReasonInvalidArguments, "the arguments are no JSON object")
	}
	if twice(args) {
		return nil, contract.Faultf(contract.ReasonInvalidArguments, "a key occurs twice in an object of the arguments; send every key once")
	}
	return args, nil
}
