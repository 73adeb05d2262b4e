package trace

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// The form of the conventions for messages (gen_ai.input.messages
// and gen_ai.output.messages).
type (
	chatMessage struct {
		Role         string `json:"role"`
		Parts        []part `json:"parts"`
		FinishReason string `json:"finish_reason,omitempty"`
	}
	part struct {
		Type      string `json:"type"`
		Content   string `json:"content,omitempty"`
		ID        string `json:"id,omitempty"`
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments,omitempty"`
		Response  string `json:"response,omitempty"`
	}
)

// shown is what the model was shown, as JSON: the newest messages that fit.
func shown(messages []loop.Message) string {
	var out []json.RawMessage
	left := maxContentBytes
	for _, m := range slices.Backward(messages) {
		raw := encoded(messageOf(m))
		if left -= len(raw) + 1; left < 0 {
			break
		}
		out = append(out, raw)
	}
	slices.Reverse(out)
	return string(listed(out))
}

func messageOf(m loop.Message) chatMessage {
	out := chatMessage{Role: string(m.Role)}
	switch {
	case m.Role == loop.RoleTool:
		out.Parts = append(out.Parts, part{Type: "tool_call_response", ID: word(m.ToolCallID), Response: bounded(m.Text)})
	case m.Text != "":
		out.Parts = append(out.Parts, part{Type: "text", Content: bounded(m.Text)})
	}
	out.Parts = append(out.Parts, callsOf(m.ToolCalls)...)
	return out
}

// said is the answer, as JSON.
func said(a loop.ModelAnswer) string {
	out := chatMessage{Role: string(loop.RoleAssistant), FinishReason: word(a.FinishReason)}
	if a.Text != nil {
		out.Parts = append(out.Parts, part{Type: "text", Content: bounded(*a.Text)})
	}
	out.Parts = append(out.Parts, callsOf(a.ToolCalls)...)
	return string(listed([]json.RawMessage{encoded(out)}))
}

// maxCalls bounds the calls of one message in a span.
const maxCalls = 16

func callsOf(calls []contract.ModelToolCall) (out []part) {
	for _, c := range calls[:min(len(calls), maxCalls)] {
		out = append(out, part{Type: "tool_call", ID: word(c.ID), Name: word(c.Name), Arguments: contract.Truncate(clean(c.Arguments), maxTextBytes/maxCalls)})
	}
	return out
}

// maxTextBytes bounds one text: escaped, which makes it six times as long at
// worst, a message of it is within what a span may have.
const maxTextBytes = maxContentBytes / 6 / 2

func bounded(text string) string { return contract.Truncate(clean(text), maxTextBytes) }

func word(text string) string { return contract.Truncate(clean(text), maxWordBytes) }

func clean(text string) string { return strings.ToValidUTF8(text, "�") }

// encoded is v, of which nothing can be without a form in JSON.
func encoded(v any) json.RawMessage {
	raw, _ := json.Marshal(v) // of strings and lists
	return raw
}

func listed(list []json.RawMessage) json.RawMessage {
	if list == nil {
		return json.RawMessage("[]")
	}
	return encoded(list)
}
