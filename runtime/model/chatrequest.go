package model

import (
	"encoding/json"

	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// chatTurn is a message of a request for a chat completion.
type chatTurn struct {
	Role string `json:"role"`
	// Content is null beside calls alone, which Ollama takes for no content, while
	// llama.cpp refuses a message without the member.
	Content    *string        `json:"content"`
	ToolCalls  []chatTurnCall `json:"tool_calls,omitempty"`
	ToolCallID string         `json:"tool_call_id,omitempty"`
}

type chatTurnCall struct {
	ID       string           `json:"id,omitempty"`
	Type     string           `json:"type"`
	Function chatTurnFunction `json:"function"`
}

type chatTurnFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// chatTool offers a tool to chat completions.
type chatTool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

// chatBody is the body of a request for a chat completion.
func (c *Client) chatBody(r loop.ModelRequest) ([]byte, error) {
	o := c.options
	body := c.extra()
	body["model"], body["n"], body["messages"] = c.pin.Model, 1, chatTurns(r.Messages)
	if len(r.Tools) > 0 {
		var tools []chatTool
		for _, t := range r.Tools {
			tools = append(tools, chatTool{Type: "function", Function: functionOf(t)})
		}
		body["tools"] = tools
	}
	if c.form.stream {
		body["stream"] = true
		if c.form.usage {
			body["stream_options"] = map[string]bool{"include_usage": true}
		}
	}
	if len(o.Stop) > 0 {
		body["stop"] = o.Stop
	}
	if o.ReasoningEffort != "" {
		body["reasoning_effort"] = o.ReasoningEffort
	}
	if o.Seed != nil {
		body["seed"] = *o.Seed
	}
	if o.Store != nil {
		body["store"] = *o.Store
	}
	if o.User != "" {
		body["user"] = o.User
	}
	// Ollama and others ignore max_completion_tokens in silence, while those that
	// no longer take max_tokens say so (RATIONALE.md).
	switch {
	case o.MaxOutputTokens > 0 && c.form.modern:
		body["max_completion_tokens"] = o.MaxOutputTokens
	case o.MaxOutputTokens > 0:
		body["max_tokens"] = o.MaxOutputTokens
	}
	return marshal(body)
}

func chatTurns(messages []loop.Message) []chatTurn {
	var out []chatTurn
	for _, m := range messages {
		t := chatTurn{Role: string(m.Role), Content: &m.Text, ToolCallID: m.ToolCallID}
		for _, call := range m.ToolCalls {
			t.ToolCalls = append(t.ToolCalls, chatTurnCall{
				ID: call.ID, Type: "function", Function: chatTurnFunction{Name: call.Name, Arguments: readable(call.Arguments)},
			})
		}
		if len(t.ToolCalls) > 0 && m.Text == "" {
			t.Content = nil
		}
		out = append(out, t)
	}
	return out
}

// readable are arguments that an endpoint can read back: vLLM and Ollama parse
// them for their templates and refuse the whole history for one that is no object.
// What was wrong with it stands in the call's result.
func readable(arguments string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) != nil || object == nil {
		return "{}"
	}
	return arguments
}
