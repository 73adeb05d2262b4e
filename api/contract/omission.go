package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Bounds of what one event says, in bytes before they are spelled as JSON.
const (
	// MaxContentBytes bounds one text or value of an event.
	MaxContentBytes = 256 << 10
	// MaxEventContentBytes bounds those of one event together.
	MaxEventContentBytes = 1 << 20
)

// Omission says of one part of an event that it is not there as a whole. Of a text
// the beginning may be there; a value is there or is not.
type Omission struct {
	// Field is the member of the content, as in "result" or "messages[1].text".
	Field string `json:"field"`
	// Bytes and Digest are those of the whole, Kept counts the bytes that are there.
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest"`
	Kept   int64  `json:"kept,omitempty"`
}

// Bounded is the content as an event may carry it: each text that is too long is
// cut, each value that is too large or no JSON is left out, and Omitted says so.
func (c *EventContent) Bounded() *EventContent {
	return c.cut(&cutter{each: MaxContentBytes, left: MaxEventContentBytes})
}

// Bare is the content without any text or value, which Omitted names.
func (c *EventContent) Bare() *EventContent { return c.cut(&cutter{}) }

// OmittedBytes is the size of all that is not there.
func (c *EventContent) OmittedBytes() (n int64) {
	if c == nil {
		return 0
	}
	for _, o := range c.Omitted {
		n += o.Bytes - o.Kept
	}
	return n
}

func (c *EventContent) cut(k *cutter) *EventContent {
	if c == nil {
		return nil
	}
	x := *c
	x.Messages, x.ToolCalls = slices.Clone(c.Messages), slices.Clone(c.ToolCalls)
	for i := range x.Messages {
		k.text(fmt.Sprintf("messages[%d].text", i), &x.Messages[i].Text)
	}
	k.text("text", &x.Text)
	k.text("reasoning", &x.Reasoning)
	for i := range x.ToolCalls {
		k.name(fmt.Sprintf("toolCalls[%d].id", i), &x.ToolCalls[i].ID)
		k.name(fmt.Sprintf("toolCalls[%d].name", i), &x.ToolCalls[i].Name)
		k.text(fmt.Sprintf("toolCalls[%d].arguments", i), &x.ToolCalls[i].Arguments)
	}
	k.text("source", &x.Source)
	k.value("inputSchema", &x.InputSchema)
	k.value("outputSchema", &x.OutputSchema)
	k.value("input", &x.Input)
	k.value("arguments", &x.Arguments)
	k.value("result", &x.Result)
	k.text("message", &x.Message)
	k.text("evidence", &x.Evidence)
	k.value("output", &x.Output)
	x.Omitted = k.merge(c.Omitted)
	return &x
}

// cutter cuts contents down to at most each bytes, and left bytes together.
type cutter struct {
	each, left int
	omitted    []Omission
}

func (k *cutter) text(field string, s *string) {
	whole := *s
	if room := min(k.each, k.left); len(whole) > room {
		*s = Truncate(whole, room)
		k.omit(field, []byte(whole), len(*s))
	}
	k.left -= len(*s)
}

// maxPlainName is how long a model's word for an id or a tool may be before it counts
// as contents, in bytes.
const maxPlainName = 128

// name cuts what is no name, but a text in its place.
func (k *cutter) name(field string, s *string) {
	if len(*s) > maxPlainName {
		k.text(field, s)
	}
}

func (k *cutter) value(field string, v *json.RawMessage) {
	whole := *v
	if len(whole) > 0 && (len(whole) > min(k.each, k.left) || !utf8.Valid(whole) || !json.Valid(whole)) {
		*v = nil
		k.omit(field, whole, 0)
	}
	k.left -= len(*v)
}

func (k *cutter) omit(field string, whole []byte, kept int) {
	k.omitted = append(k.omitted, Omission{Field: field, Bytes: int64(len(whole)), Digest: Digest(whole), Kept: int64(kept)})
}

// merge adds what was left out before: of a part that was cut already, the size and
// the digest of the whole stay.
func (k *cutter) merge(before []Omission) []Omission {
	if len(before) == 0 {
		return k.omitted
	}
	out := slices.Clone(before)
	for _, o := range k.omitted {
		i := slices.IndexFunc(out, func(b Omission) bool { return b.Field == o.Field })
		if i < 0 {
			out = append(out, o)
			continue
		}
		out[i].Kept = o.Kept
	}
	return out
}
