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
	var err error
	if a.Messages, err = readItems(a.Input); err != nil {
		return a, err
	}
	if a.Instructions != "" {
		a.Messages = slices.Insert(a.Messages, 0, message{Role: "system", Content: &a.Instructions})
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
	if p := checkMessages(a.Messages); p != "" {
		return p
	}
	if p := checkTools(a.Tools, a.Input != nil); p != "" {
		return p
	}
	for _, want := range s.System {
		if !strings.Contains(a.Messages[0].text(), want) {
			return fmt.Sprintf("the system text does not hold %q", want)
		}
	}
	return ""
}

// checkTurn says what is wrong with a request for one turn of a script.
func (a asked) checkTurn(t Turn, s Script) string {
	last := a.Messages[len(a.Messages)-1]
	if !strings.HasPrefix(last.text(), t.LastPrefix) {
		return fmt.Sprintf("the last message does not begin with %q", t.LastPrefix)
	}
	for _, want := range t.WantLast {
		if !strings.Contains(last.text(), want) {
			return fmt.Sprintf("the last message does not hold %q", want)
		}
	}
	for _, want := range [][]string{s.WantTools, t.WantTools} {
		if offered := a.offered(); want != nil && !slices.Equal(slices.Sorted(slices.Values(want)), offered) {
			return fmt.Sprintf("the tools offered are %q, want %q", offered, want)
		}
	}
	if t.WantResults == nil {
		return ""
	}
	results := newest(a.Messages)
	if len(results) != len(t.WantResults) {
		return fmt.Sprintf("there are %d tool results at the end, want %d", len(results), len(t.WantResults))
	}
	for i, want := range t.WantResults {
		if !strings.Contains(results[i].text(), want) {
			return fmt.Sprintf("tool result %d does not hold %q", i+1, want)
		}
	}
	return ""
}

// offered are the names of the tools that are offered, sorted.
func (a asked) offered() []string {
	list, _ := tools(a.Tools, a.Input != nil) // checked before
	var names []string
	for _, f := range list {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}
