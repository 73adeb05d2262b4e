package script

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// asked is a request as the server reads it, of either API.
type asked struct {
	Model    string          `json:"model"`
	User     string          `json:"user"`
	Messages []message       `json:"messages"`
	Input    json.RawMessage `json:"input"`
	// Instructions is the system text of the Responses API, if it is not a message.
	Instructions  string          `json:"instructions"`
	Stream        bool            `json:"stream"`
	StreamOptions *streamOptions  `json:"stream_options"`
	N             *int            `json:"n"`
	Tools         json.RawMessage `json:"tools"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// read decodes a request strictly enough for the test of a client: the contents
// of its messages are strings.
func read(raw []byte, responses bool) (asked, error) {
	var a asked
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, err
	}
	if !responses {
		if a.Input != nil {
			return a, fmt.Errorf("input belongs to the other API")
		}
		return a, nil
	}
	if a.Messages != nil {
		return a, fmt.Errorf("messages belong to the other API")
	}
	if err := json.Unmarshal(a.Input, &a.Messages); err != nil {
		return a, err
	}
	if a.Instructions != "" {
		a.Messages = slices.Insert(a.Messages, 0, message{Role: "system", Content: a.Instructions})
	}
	return a, nil
}

// check says what is wrong with a request: "" when nothing is.
func (a asked) check(s Script) string {
	switch {
	case a.Model == "":
		return "model is missing"
	case s.Model != "" && a.Model != s.Model:
		return fmt.Sprintf("model is %q, want %q", a.Model, s.Model)
	case len(a.Messages) == 0:
		return "there are no messages"
	case a.Messages[0].Role != "system":
		return "the first message is not the system text"
	case a.N != nil && *a.N != 1:
		return "n is not 1"
	case a.StreamOptions != nil && !a.Stream:
		return "stream_options without stream"
	}
	for i, m := range a.Messages {
		switch {
		case m.Role != "user" && m.Role != "assistant" && (m.Role != "system" || i != 0):
			return fmt.Sprintf("message %d has the role %q", i, m.Role)
		case m.Content == "":
			return fmt.Sprintf("message %d is empty", i)
		}
	}
	if len(a.Messages) > 1 && a.Messages[len(a.Messages)-1].Role != "user" {
		return "the last message is not the user's"
	}
	for _, want := range s.System {
		if !strings.Contains(a.Messages[0].Content, want) {
			return fmt.Sprintf("the system text does not hold %q", want)
		}
	}
	return ""
}

// checkTurn says what is wrong with a request for one turn.
func (a asked) checkTurn(t Turn) string {
	if last := a.Messages[len(a.Messages)-1]; !strings.HasPrefix(last.Content, t.LastPrefix) {
		return fmt.Sprintf("the last message does not begin with %q", t.LastPrefix)
	}
	return ""
}
