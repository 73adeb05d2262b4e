package main

import (
	"fmt"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// maxShownBytes bounds each value in the text of a transcript; -o jsonl has all of it.
const maxShownBytes = 2000

// recorded is one record of a transcript for a person to read; each line ends with
// a line feed.
func recorded(e contract.Event) string {
	var b strings.Builder
	c := e.Content
	if c == nil {
		c = &contract.EventContent{}
	}
	fmt.Fprintf(&b, "%4d  %s", e.N, e.Type)
	for _, word := range []string{e.Tool, e.State, string(e.Reason)} {
		if word != "" {
			b.WriteString("  " + word)
		}
	}
	if e.Step > 0 {
		fmt.Fprintf(&b, "  (step %d)", e.Step)
	}
	b.WriteByte('\n')
	for _, m := range c.Messages {
		shown(&b, "to the model, "+m.Role, m.Text)
	}
	if c.Dropped > 0 {
		shown(&b, "no longer shown", fmt.Sprintf("%d messages", c.Dropped))
	}
	shown(&b, "reasoning", c.Reasoning)
	shown(&b, "text", c.Text)
	for _, call := range c.ToolCalls {
		shown(&b, "calls "+call.Name, call.Arguments)
	}
	shown(&b, "program", numbered(c.Source))
	shown(&b, "input", string(c.Input))
	shown(&b, "arguments", string(c.Arguments))
	shown(&b, "result", string(c.Result))
	shown(&b, "message", c.Message)
	shown(&b, "evidence", c.Evidence)
	shown(&b, "output", string(c.Output))
	return b.String()
}

// shown writes a text below its label, unless it is empty.
func shown(b *strings.Builder, label, text string) {
	if text == "" {
		return
	}
	cut := contract.Truncate(text, maxShownBytes)
	fmt.Fprintf(b, "      %s:\n", label)
	for line := range strings.SplitSeq(strings.TrimRight(cut, "\n"), "\n") {
		fmt.Fprintf(b, "        %s\n", line)
	}
	if len(cut) < len(text) {
		fmt.Fprintf(b, "        … (%d bytes in all)\n", len(text))
	}
}

// numbered is a program with the numbers of its lines.
func numbered(source string) string {
	if source == "" {
		return ""
	}
	var b strings.Builder
	n := 0
	for line := range strings.SplitSeq(strings.TrimRight(source, "\n"), "\n") {
		n++
		fmt.Fprintf(&b, "%3d  %s\n", n, line)
	}
	return b.String()
}
