package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// execResult is the JSON of codeact exec and codeact run: a contract with their users.
type execResult struct {
	Status  string          `json:"status"`
	Value   json.RawMessage `json:"value,omitempty"`
	Reason  contract.Reason `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	Line    int             `json:"line,omitempty"`
	Column  int             `json:"column,omitempty"`
	Stack   []string        `json:"stack,omitempty"`
	Calls   []execCall      `json:"calls"`
	Usage   contract.Usage  `json:"usage"`
	// Evidence is what the call that ended the run left behind.
	Evidence json.RawMessage `json:"evidence,omitempty"`
	Media    *execMedia      `json:"media,omitempty"`
}

// execMedia says what media the run's result has. The pictures are not shown.
type execMedia struct {
	Seq      int64             `json:"seq"`
	Text     string            `json:"text"`
	Geometry contract.Geometry `json:"geometry"`
	Pictures int               `json:"pictures"`
}

// execCall is one child call: Outcome is Completed, or the reason of the call.
// A call that was refused has no Seq.
type execCall struct {
	Seq      int64  `json:"seq,omitempty"`
	Tool     string `json:"tool"`
	Outcome  string `json:"outcome"`
	Attempts int64  `json:"attempts,omitempty"`
	Receipt  string `json:"receipt,omitempty"`
}

func resultOf(o loop.Outcome) execResult {
	r := execResult{Status: "ok", Value: o.Value, Calls: []execCall{}, Usage: o.Usage}
	if f := o.Fault; f != nil {
		r.Status, r.Reason, r.Message, r.Line, r.Column, r.Stack = "error", f.Reason, f.Message, f.Line, f.Column, f.Stack
	}
	if r.Status == "error" && o.Evidence != "" {
		r.Evidence = json.RawMessage(o.Evidence)
	}
	if m := o.Media; m != nil {
		r.Media = &execMedia{Seq: o.MediaSeq, Text: m.Text, Geometry: m.Geometry, Pictures: len(m.Pictures)}
	}
	for _, c := range o.Calls {
		x := execCall{Seq: c.Seq, Tool: c.Tool, Outcome: string(c.State), Receipt: c.Receipt}
		if c.Attempts > 1 {
			x.Attempts = c.Attempts
		}
		if c.Reason != "" {
			x.Outcome = string(c.Reason)
		}
		r.Calls = append(r.Calls, x)
	}
	return r
}

// printResult tells how a program or run ended, and is errFailed when that was
// with a fault.
func printResult(w io.Writer, format string, o loop.Outcome) error {
	show := printText
	if format == "json" {
		show = printJSON
	}
	if err := show(w, resultOf(o)); err != nil {
		return err
	}
	if o.Fault != nil {
		return errFailed
	}
	return nil
}

func printJSON(w io.Writer, r execResult) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

func printIndented(w io.Writer, x any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(x)
}

func printText(w io.Writer, r execResult) error {
	var b bytes.Buffer
	if r.Status == "ok" {
		if err := json.Indent(&b, r.Value, "", "  "); err != nil {
			return err
		}
		b.WriteByte('\n')
	} else {
		fmt.Fprintf(&b, "error: %s: %s\n", r.Reason, r.Message)
		switch {
		case r.Line > 0 && r.Column > 0:
			fmt.Fprintf(&b, "  at line %d, column %d\n", r.Line, r.Column)
		case r.Line > 0:
			fmt.Fprintf(&b, "  at line %d\n", r.Line)
		}
		for _, frame := range r.Stack {
			fmt.Fprintf(&b, "  in %s\n", frame)
		}
	}
	if r.Evidence != nil {
		fmt.Fprintf(&b, "  evidence: %s\n", r.Evidence)
	}
	if m := r.Media; m != nil {
		fmt.Fprintf(&b, "\nmedia: %d pictures of %dx%d, from call %d\n", m.Pictures, m.Geometry.Width, m.Geometry.Height, m.Seq)
	}
	if len(r.Calls) > 0 {
		b.WriteString("\ncalls:\n")
		t := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
		for _, c := range r.Calls {
			seq := "-"
			if c.Seq > 0 {
				seq = fmt.Sprint(c.Seq)
			}
			name := strings.NewReplacer("\n", `\u000a`, "\t", `\u0009`).Replace(c.Tool)
			more := ""
			if c.Attempts > 1 {
				more = fmt.Sprintf("\t%d attempts", c.Attempts)
			}
			if c.Receipt != "" {
				more += "\treceipt " + c.Receipt
			}
			fmt.Fprintf(t, "  %s\t%s\t%s%s\n", seq, name, c.Outcome, more)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(&b, "\nused: %d ms, %d KiB of heap, %d units of fuel, %d calls\n", r.Usage.WallMs, r.Usage.HeapBytes>>10, r.Usage.Fuel, r.Usage.ChildCalls)
	_, err := io.WriteString(w, plain(b.String()))
	return err
}

// plain writes what could command a terminal, or turn the order of letters, as
// JSON would: values, messages and names come from a program that nobody trusts.
func plain(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
