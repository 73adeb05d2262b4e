// Package script is the handler of the model server: it plays scripts of turns in
// the form of OpenAI's chat completions and Responses APIs, checks what it is
// sent, and misbehaves as it is told. A credential is never kept or printed, only
// whether it was the expected one. The README.md beside it has the form.
package script

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Script is what one model says, turn by turn.
type Script struct {
	// Turns are played in order, one a request.
	Turns []Turn `json:"turns"`
	// RepeatLast plays the last turn again and again; without it, a request behind
	// the last turn is refused with 400.
	RepeatLast bool `json:"repeatLast,omitempty"`
	// Stream says what becomes of a request for a stream.
	Stream Streaming `json:"stream,omitempty"`
	// Model is the model's name that every request must have; empty takes any.
	Model string `json:"model,omitempty"`
	// System must each stand in the system text.
	System []string `json:"system,omitempty"`
	// WantTools are the names of the native tools that every request must offer, in
	// any order, and no others; nil takes any.
	WantTools []string `json:"wantTools,omitzero"`
}

// Streaming says what becomes of a request for a stream.
type Streaming string

// What becomes of a request for a stream.
const (
	// StreamAsAsked streams when the request asks for it. It is the default.
	StreamAsAsked Streaming = ""
	// StreamRefused answers 400 and names the parameter stream.
	StreamRefused Streaming = "refuse"
	// StreamOptionsRefused answers 400 to stream_options, and streams without them.
	StreamOptionsRefused Streaming = "refuse-options"
	// StreamIgnored answers with one JSON document all the same.
	StreamIgnored Streaming = "ignore"
)

// Turn is one answer. In JSON, a string stands for a turn with that text.
type Turn struct {
	// Text is the answer; Reasoning is what is said apart from it.
	Text      string `json:"text,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
	// FinishReason is stop when it is empty, and tool_calls with tool calls.
	FinishReason string     `json:"finishReason,omitempty"`
	ToolCalls    []ToolCall `json:"toolCalls,omitempty"`
	// Usage is left out of the answer when it is nil.
	Usage *Usage `json:"usage,omitempty"`
	// DelayMs is the wait before the answer, DripMs that before each chunk of a
	// stream, in milliseconds.
	DelayMs int64 `json:"delayMs,omitempty"`
	DripMs  int64 `json:"dripMs,omitempty"`
	// Hold waits for POST /release?name=… before the answer, two minutes at most.
	Hold string `json:"hold,omitempty"`
	// LastPrefix is how the last message of the request must begin.
	LastPrefix string `json:"lastPrefix,omitempty"`
	// WantLast must each stand in the last message of the request.
	WantLast []string `json:"wantLast,omitempty"`
	// WantTools is that of the script, for this turn.
	WantTools []string `json:"wantTools,omitzero"`
	// WantResults are parts of the tool results at the end of the request, one for
	// each and in their order; an empty list wants none, nil takes any.
	WantResults []string `json:"wantResults,omitzero"`

	// Status is the answer's; other than 0 and 200, it comes with an error object
	// that says Error.
	Status int `json:"status,omitempty"`
	// Times is how many requests get Status before the turn is played as if it had
	// none; 0 means that the status is the turn.
	Times int `json:"times,omitempty"`
	// RetryAfter is the header of that name.
	RetryAfter string `json:"retryAfter,omitempty"`
	// Error is an error object: with a status it is the body, without one it comes
	// inside a 200, in a stream behind the first half of the text.
	Error string `json:"error,omitempty"`
	// Cut ends the answer early.
	Cut Cut `json:"cut,omitempty"`
	// Raw is the body as it stands, with ContentType (application/json when that is
	// empty) and Headers; nothing else of the turn is heeded but the waits and the
	// status.
	Raw         string            `json:"raw,omitempty"`
	ContentType string            `json:"contentType,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
}

// Cut says where an answer ends early.
type Cut string

// Where an answer ends early.
const (
	// CutNone ends it where it ends.
	CutNone Cut = ""
	// CutBefore closes the connection without an answer.
	CutBefore Cut = "before"
	// CutFrame closes the connection inside a frame, or inside the JSON document.
	CutFrame Cut = "frame"
	// CutEnd ends a stream properly, but without finish reason or [DONE].
	CutEnd Cut = "end"
)

// ToolCall is a native tool call, which nobody may have offered.
type ToolCall struct {
	// ID is call_<turn>_<call> when it is empty, both counted from 1.
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	// Arguments is the text that stands in the answer. In a script it may be the
	// object itself, or any text.
	Arguments string `json:"arguments"`
}

// UnmarshalJSON takes an object of arguments for its text.
func (c *ToolCall) UnmarshalJSON(raw []byte) error {
	var x struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		return err
	}
	*c = ToolCall{ID: x.ID, Name: x.Name}
	if len(x.Arguments) == 0 || x.Arguments[0] == '"' {
		return json.Unmarshal([]byte(cmp.Or(string(x.Arguments), `""`)), &c.Arguments)
	}
	var text bytes.Buffer
	if err := json.Compact(&text, x.Arguments); err != nil {
		return err
	}
	c.Arguments = text.String()
	return nil
}

// called is the turn, which is the nth, with an id for each call.
func (t Turn) called(n int) Turn {
	t.ToolCalls = slices.Clone(t.ToolCalls)
	for i := range t.ToolCalls {
		if c := &t.ToolCalls[i]; c.ID == "" {
			c.ID = fmt.Sprintf("call_%d_%d", n, i+1)
		}
	}
	return t
}

// Usage is the endpoint's count of tokens.
type Usage struct {
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
}

// UnmarshalJSON takes a string for a turn with that text, and refuses unknown
// members: a script with a typing error would play another test.
func (t *Turn) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &t.Text)
	}
	type plain Turn
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode((*plain)(t))
}

// finish is the finish reason with its default.
func (t Turn) finish() string {
	switch {
	case t.FinishReason != "":
		return t.FinishReason
	case len(t.ToolCalls) > 0:
		return "tool_calls"
	}
	return "stop"
}
