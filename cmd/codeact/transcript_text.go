package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// shortBytes is how much of an argument or a result a person is shown: two lines.
const shortBytes = 160

// text is the transcript as a person reads it.
func (t *transcript) text(out *bytes.Buffer, broken error) {
	v := view{out}
	if len(t.events) > 0 {
		e := t.events[0]
		v.line(0, "run %s (%s), execution %d", e.Run, e.RunUID, e.Generation)
		if e.BundleDigest != "" {
			v.line(0, "bundle %s", e.BundleDigest)
		}
		v.line(0, "from %s to %s", e.Time, t.events[len(t.events)-1].Time)
	}
	switch {
	case broken == nil:
		v.line(0, "%d records, %s", len(t.events), t.checked)
	case len(t.events) == 0:
		v.line(0, "THIS TRANSCRIPT DOES NOT HOLD: %v", broken)
	default:
		v.line(0, "THIS TRANSCRIPT DOES NOT HOLD: %v", broken)
		v.line(0, "%d records come before it, or hold in themselves:", len(t.events))
	}
	for _, e := range t.events {
		v.event(e)
	}
}

// view writes for a person. Nothing in it may command a terminal.
type view struct{ out *bytes.Buffer }

func (v view) line(indent int, format string, args ...any) {
	text := strings.ReplaceAll(plain(fmt.Sprintf(format, args...)), "\n", `\u000a`)
	v.out.WriteString(strings.Repeat("  ", indent) + text + "\n")
}

// block writes a text of many lines below a title with its size; nothing when it is
// empty.
func (v view) block(indent int, title, text string) {
	if text == "" {
		return
	}
	v.line(indent, "%s, %d bytes:", title, len(text))
	v.lines(indent+1, text)
}

func (v view) lines(indent int, text string) {
	for line := range strings.Lines(text) {
		v.line(indent, "%s", untabbed(line))
	}
}

// program writes a source with the numbers of its lines.
func (v view) program(indent int, c *contract.EventContent) {
	if c.Source == "" {
		return
	}
	v.line(indent, "program %s, %d bytes:", c.SourceDigest, len(c.Source))
	n := 0
	for line := range strings.Lines(c.Source) {
		n++
		v.line(indent, "%4d | %s", n, untabbed(line))
	}
}

func untabbed(line string) string {
	return strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")
}

// value writes the beginning of a value, and its size; nothing when there is none.
func (v view) value(indent int, title string, value []byte) {
	if len(value) == 0 {
		return
	}
	text, more := string(value), ""
	if len(text) > shortBytes {
		text, more = contract.Truncate(text, shortBytes), " …"
	}
	v.line(indent, "%s, %d bytes: %s%s", title, len(value), text, more)
}

// event writes what happened, and below it what was said.
func (v view) event(e contract.Event) {
	indent := 1
	title := told(e)
	switch e.Type {
	case contract.EventExecutionStarted:
		indent, title = 0, "the run started"
	case contract.EventExecutionFinished:
		indent, title = 0, "the run ended: "+e.State+ended(e)
	case contract.EventStepStarted:
		indent = 0
	case contract.EventStepFinished:
		title = "step ended: " + e.State + ended(e)
	case contract.EventLatched:
		indent, title = 2, "from here on nothing reaches a tool"+ended(e)
	case contract.EventResolved:
		if c := e.Content; c != nil && c.Message != "" {
			title += " by " + c.Message
		}
		title += ended(e)
	case contract.EventTruncated:
		o := omitted(e)
		title = fmt.Sprintf("TRUNCATED: the contents of %d records (%d bytes) and %d records are left out so far", o.Contents, o.Bytes, o.Records)
	case contract.EventCall, contract.EventCallDenied, contract.EventCallOverflow, contract.EventCallAbandoned, contract.EventCallDrifted:
		indent = 2
		if e.Seq > 0 {
			title = fmt.Sprintf("call %d, %s", e.Seq, strings.TrimSpace(title))
		}
	default:
		if title == "" {
			title = string(e.Type)
		}
	}
	v.line(indent, "%s", strings.TrimSpace(title))
	if e.Content != nil {
		v.content(indent+1, e.Type, e.Content)
	}
}

func (v view) content(indent int, typ contract.EventType, c *contract.EventContent) {
	if c.Dropped > 0 {
		v.line(indent, "%d older messages are no longer shown to it", c.Dropped)
	}
	for _, m := range c.Messages {
		title := m.Role
		if m.ToolCallID != "" {
			title += " " + m.ToolCallID
		}
		v.block(indent, title, m.Text)
	}
	v.block(indent, "reasoning, apart from the answer", c.Reasoning)
	v.block(indent, "answer", c.Text)
	for _, call := range c.ToolCalls {
		v.value(indent, "tool call "+call.Name+" "+call.ID, []byte(call.Arguments))
	}
	if c.FinishReason != "" {
		v.line(indent, "finish reason %s", c.FinishReason)
	}
	v.program(indent, c)
	v.value(indent, "input", c.Input)
	v.value(indent, "arguments", c.Arguments)
	v.value(indent, "result", c.Result)
	if c.Message != "" && typ != contract.EventResolved {
		v.block(indent, "message", c.Message)
	}
	if c.Line > 0 {
		v.line(indent, "at line %d, column %d", c.Line, c.Column)
	}
	v.value(indent, "evidence", []byte(c.Evidence))
	if len(c.Output) > 0 {
		v.line(indent, "output, %d bytes:", len(c.Output))
		v.lines(indent+1, indented(c.Output))
	}
	for _, o := range c.Omitted {
		v.line(indent, "NOT HERE: %s, %d of %d bytes are kept; the digest of all is %s", o.Field, o.Kept, o.Bytes, o.Digest)
	}
}

func indented(value json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, value, "", "  ") != nil {
		return string(value)
	}
	return out.String()
}
