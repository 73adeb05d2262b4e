package model

import (
	"encoding/json"
	"strings"
)

// chat is a chat completion, or a chunk of one. Everything that endpoints do
// differently stays raw here, so that one odd member does not spoil the rest.
type chat struct {
	Object  json.RawMessage `json:"object"`
	Error   json.RawMessage `json:"error"`
	Choices json.RawMessage `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
}

type chatChoice struct {
	Index        json.RawMessage `json:"index"`
	Message      *chatMessage    `json:"message"`
	Delta        *chatMessage    `json:"delta"`
	FinishReason json.RawMessage `json:"finish_reason"`
	Error        json.RawMessage `json:"error"`
}

type chatMessage struct {
	Content          json.RawMessage `json:"content"`
	Refusal          json.RawMessage `json:"refusal"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"`
	ToolCalls        json.RawMessage `json:"tool_calls"`
	FunctionCall     json.RawMessage `json:"function_call"`
}

// chatDocument takes a whole chat completion.
func (a *answer) chatDocument(raw []byte) error {
	choices, err := a.chatHead(raw)
	if err != nil {
		return err
	}
	for _, c := range choices {
		if !first(c) {
			continue
		}
		if c.Message == nil {
			return broken("its answer has no message")
		}
		return a.chatChoice(c, c.Message, false)
	}
	return broken("its answer has no choices")
}

// chatEvent takes one chunk. One without choices carries something else: a count,
// a verdict of Azure's filters, nothing.
func (a *answer) chatEvent(name string, raw []byte) error {
	if name == "error" {
		return a.eventError(raw)
	}
	choices, err := a.chatHead(raw)
	if err != nil {
		return err
	}
	for _, c := range choices {
		if !first(c) {
			continue
		}
		if c.Delta == nil {
			c.Delta = &chatMessage{}
		}
		if err := a.chatChoice(c, c.Delta, true); err != nil {
			return err
		}
	}
	return nil
}

// eventError reads the data of an event named error: an object with the error in
// it, or the error itself.
func (a *answer) eventError(raw []byte) error {
	var doc chat
	if json.Unmarshal(raw, &doc) == nil && given(doc.Error) {
		raw = doc.Error
	}
	return a.failed(raw)
}

func (a *answer) chatHead(raw []byte) ([]chatChoice, error) {
	var doc chat
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, broken("its answer is not JSON in the form of the API")
	}
	if given(doc.Error) {
		return nil, a.failed(doc.Error)
	}
	if str(doc.Object) == "error" { // older vLLM
		return nil, a.failed(raw)
	}
	var choices []chatChoice
	if given(doc.Choices) {
		if err := json.Unmarshal(doc.Choices, &choices); err != nil {
			return nil, broken("its answer is not JSON in the form of the API")
		}
	}
	a.count(doc.Usage)
	return choices, nil
}

// first reports whether it is the choice that was asked for.
func first(c chatChoice) bool {
	return !given(c.Index) || string(c.Index) == "0"
}

func (a *answer) chatChoice(c chatChoice, m *chatMessage, streamed bool) error {
	if given(c.Error) {
		return a.failed(c.Error)
	}
	text, reasoning := content(m.Content)
	if text == "" {
		text = str(m.Refusal) // the model's own words, too
	}
	// Who says it under both names says the same.
	if own := thought(m.ReasoningContent); own != "" {
		reasoning += own
	} else {
		reasoning += thought(m.Reasoning)
	}
	a.addReasoning(reasoning)
	if err := a.addText(text); err != nil {
		return err
	}
	if err := a.chatCalls(m, streamed); err != nil {
		return err
	}
	return a.finished(str(c.FinishReason))
}

// finished takes a finish reason. Some endpoints send an empty one with every
// chunk, and some say that they gave up in the place of an error.
func (a *answer) finished(reason string) error {
	switch reason {
	case "":
		return nil
	case "error", "abort":
		return broken("its answer ended early (%s)", reason)
	}
	a.finish = reason
	return nil
}

// thought reads reasoning: a string, an object with a text, or a list of those.
func thought(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] == '"' {
		return str(raw)
	}
	if raw[0] == '{' {
		raw = append(append(json.RawMessage{'['}, raw...), ']')
	}
	var parts []struct {
		Text json.RawMessage `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts) // whatever else it is, nobody needs it
	var out strings.Builder
	for _, p := range parts {
		out.WriteString(str(p.Text))
	}
	return out.String()
}

// content reads the content of a message: a string, null, or a list of parts, of
// which the texts are the answer.
func content(raw json.RawMessage) (text, reasoning string) {
	if len(raw) == 0 || raw[0] != '[' {
		return str(raw), ""
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return "", ""
	}
	var t, r strings.Builder
	for _, p := range parts {
		var x struct {
			Type     string          `json:"type"`
			Text     json.RawMessage `json:"text"`
			Refusal  json.RawMessage `json:"refusal"`
			Thinking json.RawMessage `json:"thinking"`
		}
		if json.Unmarshal(p, &x) != nil {
			t.WriteString(str(p)) // a list of strings
			continue
		}
		switch x.Type {
		case "thinking", "reasoning":
			inner, _ := content(x.Thinking)
			r.WriteString(inner + str(x.Text))
		case "text", "output_text", "":
			t.WriteString(str(x.Text))
		case "refusal":
			t.WriteString(str(x.Refusal))
		}
	}
	return t.String(), r.String()
}
