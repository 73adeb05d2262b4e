package loop

import (
	"context"
	"encoding/json"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Role says who a message to the model is from.
type Role string

// The roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	// RoleTool is the result of a native tool call.
	RoleTool Role = "tool"
)

// Message is one message of the history that a model is shown.
type Message struct {
	Role Role
	Text string
	// ToolCalls are the native tool calls of an answer (RoleAssistant).
	ToolCalls []contract.ModelToolCall
	// ToolCallID is the call that this is the result of (RoleTool).
	ToolCallID string
}

// ModelTool is one native tool that a model is offered.
type ModelTool struct {
	Name, Description string
	// Parameters is the JSON Schema of the arguments: an object.
	Parameters json.RawMessage
}

// ModelRequest asks the model once.
type ModelRequest struct {
	Messages []Message
	// Tools are offered to the model; none in protocol Code.
	Tools []ModelTool
	// Delta, when set, is told of parts of the answer as they come: text, or
	// reasoning, which never becomes part of the answer.
	Delta func(text, reasoning string)
}

// ModelAnswer is one whole answer.
type ModelAnswer struct {
	// Text is the answer; nil when there was none.
	Text *string
	// Reasoning is what the model said apart from the answer, for the transcript
	// only.
	Reasoning string
	// FinishReason is the endpoint's own word, "" when it gave none.
	FinishReason string
	// ToolCalls are the native tool calls of the answer, in their order, offered or
	// not.
	ToolCalls []contract.ModelToolCall
	// InputTokens and OutputTokens are the endpoint's count; Counted says that it
	// gave one.
	InputTokens, OutputTokens int64
	Counted                   bool
	// Attempts counts how often the endpoint was asked.
	Attempts int64
}

// Model is the one endpoint that a run may ask. Ask fails with an error that wraps
// a *contract.Fault of the reason ModelError, or with ctx's.
type Model interface {
	Ask(ctx context.Context, r ModelRequest) (ModelAnswer, error)
}
