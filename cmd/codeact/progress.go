package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// progressTo is where the events of an agent's run go: a line for a person on a
// terminal, the events themselves, as JSON lines, everywhere else.
func progressTo(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return progress{w}
		}
	}
	return w
}

// progress shows events to a person. It gets one event a Write.
type progress struct{ w io.Writer }

// Write implements io.Writer.
func (p progress) Write(line []byte) (int, error) {
	var e contract.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return 0, err
	}
	if text := told(e); text != "" {
		if _, err := io.WriteString(p.w, plain(text)+"\n"); err != nil {
			return 0, err
		}
	}
	return len(line), nil
}

// told is an event in words, "" for one that says nothing to a person.
func told(e contract.Event) string {
	switch e.Type {
	case contract.EventStepStarted:
		return fmt.Sprintf("step %d", e.Step)
	case contract.EventModelRequested:
		return "  asking the model"
	case contract.EventModelAnswered:
		return "  the model answered" + ended(e) + tokensOf(e)
	case contract.EventProgramStarted:
		return "  running the program"
	case contract.EventProgramFinished:
		return "  the program ended: " + e.State + ended(e)
	case contract.EventProgramRefused:
		return "  the program was not run: only the end is taken now"
	case contract.EventProtocolError:
		return "  the answer is no message"
	case contract.EventFinal:
		return "  that is the output"
	default: // of a call, or of nothing that a person waits for
	}
	if e.Tool == "" || e.Type == contract.EventLatched {
		return ""
	}
	return fmt.Sprintf("    %s: %s%s", e.Tool, e.State, ended(e))
}

// ended is the reason and the time of what is over, as far as there are any.
func ended(e contract.Event) string {
	var out strings.Builder
	if e.Reason != "" {
		fmt.Fprintf(&out, " (%s)", e.Reason)
	}
	if e.DurationMs > 0 {
		fmt.Fprintf(&out, " after %d ms", e.DurationMs)
	}
	return out.String()
}

func tokensOf(e contract.Event) string {
	var out string
	if e.InputTokens+e.OutputTokens > 0 {
		out = fmt.Sprintf(", %d tokens in and %d out", e.InputTokens, e.OutputTokens)
	}
	if e.Attempts > 1 {
		out += fmt.Sprintf(", %d attempts", e.Attempts)
	}
	return out
}
