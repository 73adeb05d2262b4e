package script

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// message is one message of a request, of either API.
type message struct {
	Role       string        `json:"role"`
	Content    *string       `json:"content"`
	ToolCalls  []messageCall `json:"tool_calls"`
	ToolCallID string        `json:"tool_call_id"`
}

type messageCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (m message) text() string {
	if m.Content == nil {
		return ""
	}
	return *m.Content
}

// readItems reads the input of the Responses API as messages: calls belong to the
// answer before them.
func readItems(raw json.RawMessage) ([]message, error) {
	var items []struct {
		message
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
		Output    string `json:"output"`
	}
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, err
	}
	var out []message
	for _, it := range items {
		switch it.Type {
		case "", "message":
			out = append(out, it.message)
		case "function_call":
			if n := len(out); n == 0 || out[n-1].Role != "assistant" {
				out = append(out, message{Role: "assistant"})
			}
			c := messageCall{ID: it.CallID, Type: "function"}
			c.Function.Name, c.Function.Arguments = it.Name, it.Arguments
			last := &out[len(out)-1]
			last.ToolCalls = append(last.ToolCalls, c)
		case "function_call_output":
			out = append(out, message{Role: "tool", Content: &it.Output, ToolCallID: it.CallID})
		default:
			return nil, fmt.Errorf("an item of the input has the type %q", it.Type)
		}
	}
	return out, nil
}

// newest are the tool results at the end.
func newest(messages []message) []message {
	i := len(messages)
	for i > 0 && messages[i-1].Role == "tool" {
		i--
	}
	return messages[i:]
}

// checkMessages says what is wrong with the messages: "" when nothing is. Each
// call of an answer must have its one result right behind the answer.
func checkMessages(messages []message) string {
	var open []string // the calls without a result
	for i, m := range messages {
		if len(open) > 0 && m.Role != "tool" {
			return fmt.Sprintf("message %d stands where the result of the call %q belongs", i, open[0])
		}
		switch m.Role {
		case "system":
			if i != 0 {
				return fmt.Sprintf("message %d has the role %q", i, m.Role)
			}
		case "user":
		case "assistant":
			for _, c := range m.ToolCalls {
				if p := checkCall(c); p != "" {
					return fmt.Sprintf("message %d: %s", i, p)
				}
				if slices.Contains(open, c.ID) {
					return fmt.Sprintf("message %d has two calls of the id %q", i, c.ID)
				}
				open = append(open, c.ID)
			}
		case "tool":
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return fmt.Sprintf("message %d is the result of %q, which no answer before it called", i, m.ToolCallID)
			}
			open = slices.Delete(open, at, at+1)
			if m.Content == nil {
				return fmt.Sprintf("message %d has no content", i)
			}
			continue // an empty result is one
		default:
			return fmt.Sprintf("message %d has the role %q", i, m.Role)
		}
		if m.text() == "" && len(m.ToolCalls) == 0 {
			return fmt.Sprintf("message %d is empty", i)
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("the call %q has no result", open[0])
	}
	if last := messages[len(messages)-1].Role; len(messages) > 1 && last != "user" && last != "tool" {
		return "the last message is neither the user's nor a tool's"
	}
	return ""
}

// checkCall holds a call that is sent back to what the strictest endpoints read.
func checkCall(c messageCall) string {
	var object map[string]any
	switch {
	case c.ID == "":
		return "a call has no id"
	case c.Type != "function":
		return fmt.Sprintf("a call has the type %q", c.Type)
	case c.Function.Name == "":
		return "a call has no name"
	case json.Unmarshal([]byte(c.Function.Arguments), &object) != nil || object == nil:
		return fmt.Sprintf("the arguments of the call %q are no JSON object", c.ID)
	}
	return ""
}

// tool is a native tool that is offered, in the form of either API.
type tool struct {
	Type     string    `json:"type"`
	Function *function `json:"function"`
	function
}

type function struct {
	Name       string `json:"name"`
	Parameters *struct {
		Type       string          `json:"type"`
		Properties *map[string]any `json:"properties"`
	} `json:"parameters"`
}

// maxTools is how many tools OpenAI takes.
const maxTools = 128

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// tools reads what is offered: nothing is nil.
func tools(raw json.RawMessage, responses bool) ([]function, string) {
	if raw == nil {
		return nil, ""
	}
	var list []tool
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, "the tools cannot be read: " + err.Error()
	}
	var out []function
	for i, t := range list {
		f := t.function
		if (t.Function == nil) != responses {
			return nil, fmt.Sprintf("tool %d is in the form of the other API", i)
		}
		if t.Function != nil {
			f = *t.Function
		}
		if t.Type != "function" {
			return nil, fmt.Sprintf("tool %d has the type %q", i, t.Type)
		}
		out = append(out, f)
	}
	return out, ""
}

// checkTools says what is wrong with the tools that are offered.
func checkTools(raw json.RawMessage, responses bool) string {
	list, problem := tools(raw, responses)
	if problem != "" {
		return problem
	}
	if raw != nil && (len(list) == 0 || len(list) > maxTools) {
		return fmt.Sprintf("%d tools are offered, want 1 to %d", len(list), maxTools)
	}
	seen := map[string]bool{}
	for _, f := range list {
		switch {
		case !toolName.MatchString(f.Name):
			return fmt.Sprintf("a tool has the name %q", f.Name)
		case seen[f.Name]:
			return fmt.Sprintf("two tools have the name %q", f.Name)
		case f.Parameters == nil || f.Parameters.Type != "object" || f.Parameters.Properties == nil:
			return fmt.Sprintf("the parameters of the tool %q are no schema of an object with properties", f.Name)
		}
		seen[f.Name] = true
	}
	return ""
}
