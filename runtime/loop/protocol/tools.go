package protocol

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// ToolsInput is what a model is told and offered in the protocol Tools.
type ToolsInput struct {
	// Instructions are the user's, and come first; blank ones are left out.
	Instructions string
	// Limits are those of each program, ChildCalls that of the run.
	Limits contract.Limits
	// MaxSteps bounds the answers of the run; 0 is not spoken of.
	MaxSteps int64
	// Catalogue is of the tools that a program may call.
	Catalogue contract.Catalogue
	// Recipes and Tools are offered as one native tool each, in this order, behind
	// run_code.
	Recipes []contract.PinnedRecipeTool
	Tools   []contract.PinnedTool
}

// Definition is one native tool as the model is offered it.
type Definition struct {
	Name, Description string
	// Parameters is the JSON Schema of the arguments: an object.
	Parameters json.RawMessage
}

// RenderTools returns the system text: the user's instructions and the contract of
// the protocol. The same input gives the same bytes.
func RenderTools(in ToolsInput) string {
	var b strings.Builder
	if text := strings.TrimFunc(in.Instructions, space); text != "" {
		b.WriteString(text + "\n\n")
	}
	b.WriteString(toolsText)
	if in.MaxSteps > 0 {
		fmt.Fprintf(&b, "- Answers in the run: %d.\n", in.MaxSteps)
	}
	return b.String()
}

var toolsText = fmt.Sprintf(`# Answers

Work with the tools you are offered. An answer that calls no tool ends the run: its whole text is the output. So write the finished answer there, and nothing before it is done.

- A tool that needs no program is called directly. `+contract.RunCodeTool+` runs a program of yours that calls tools: take it for several calls, loops, filtering or arithmetic over results.
- The calls of one answer are made one after another, in their order, at most %d. Each has its result in a message of its own: {"result":…}; with "cut" it is only the beginning.
- TOOL_ERROR: {"reason":…,"message":…,"effects":[…]}, or {"error":{…}} from `+contract.RunCodeTool+`, means that the call failed. InvalidArguments: nothing happened, correct the arguments. effects are the calls that took effect already (state Completed) or may have (Uncertain): do not repeat them. Everything that is not listed there did nothing.
- Some calls wait for a person, who may deny them: ApprovalRequired. Do not ask again for what was denied.
- PROTOCOL_ERROR: … means: the answer was neither a call nor an end. The third one fails the run.
`, contract.MaxTurnCalls)

// Definitions returns what the model is offered: run_code, whose description has
// the contract of programs and the catalogue, the recipes, and the tools.
func Definitions(in ToolsInput) []Definition {
	out := []Definition{{Name: contract.RunCodeTool, Description: runCodeText(in), Parameters: json.RawMessage(RunCodeSchema)}}
	for _, r := range in.Recipes {
		out = append(out, Definition{Name: r.ToolName, Description: r.Description, Parameters: objectSchema(r.InputSchema)})
	}
	for _, t := range in.Tools {
		out = append(out, Definition{Name: t.Tool.Name, Description: directDescription(t), Parameters: objectSchema(t.Tool.InputSchema)})
	}
	return out
}

// RunCodeSchema is the JSON Schema of the arguments of run_code.
const RunCodeSchema = `{"type":"object","properties":{` +
	`"source":{"type":"string","minLength":1,"description":"The whole program: JavaScript that declares function main(input)."},` +
	`"input":{"description":"The argument of main, any JSON; the input of the run without it."}},` +
	`"required":["source"],"additionalProperties":false}`

// runCodeText is the description of run_code.
func runCodeText(in ToolsInput) string {
	var b strings.Builder
	b.WriteString("Runs one JavaScript program and returns what its main returns.\n")
	b.WriteString(programText)
	callable := len(in.Catalogue.Names) > 0
	if callable {
		b.WriteString(callText)
		b.WriteString("- Only the tools of the list below can be called, and none that waits for a person. A recipe cannot be called.\n")
	}
	b.WriteString(absentText)
	if list := limitsOf(PromptInput{Limits: in.Limits}, callable); list != "" {
		b.WriteString("- Limits: " + list + ".\n")
	}
	b.WriteString(catalogueText(in.Catalogue))
	return b.String()
}

// directDescription is the description of a tool that the model may call itself, with
// what the call may do and whom it waits for.
func directDescription(t contract.PinnedTool) string {
	var notes []string
	switch t.Tool.Defaulted().Effect {
	case contract.EffectReadOnly:
		notes = append(notes, "It only reads.")
	case contract.EffectIdempotent, contract.EffectEffectful:
		notes = append(notes, "It has an effect.")
	}
	switch {
	case t.Tool.Deferred:
		notes = append(notes, "Its result comes later, from a person.")
	case t.Approval == contract.ApprovalRequired:
		notes = append(notes, "Each call waits until a person approves it.")
	}
	text := strings.Join(notes, " ")
	if t.Tool.Description == "" {
		return text
	}
	return t.Tool.Description + "\n\n(" + text + ")"
}

// objectSchema is an input schema as endpoints take it: arguments are an object.
func objectSchema(schema json.RawMessage) json.RawMessage {
	var keys map[string]json.RawMessage
	if json.Unmarshal(schema, &keys) != nil || keys == nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	if _, ok := keys["type"]; !ok {
		keys["type"] = json.RawMessage(`"object"`)
	}
	if _, ok := keys["properties"]; !ok {
		keys["properties"] = json.RawMessage("{}")
	}
	text, err := contract.Canonical(keys)
	if err != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	return text
}
