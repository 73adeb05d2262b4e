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
	case contract.EventModelRetried:
		return "  the model is asked again" + ended(e)
	case contract.EventToolStarted:
		return "  calling " + e.Tool
	case contract.EventToolFinished:
		return "  " + e.Tool + " ended: " + e.State + ended(e)
	case contract.EventPending:
		return fmt.Sprintf("  waiting for an answer to %s (%s)", e.Tool, e.ID)
	case contract.EventResolved:
		return fmt.Sprintf("  %s was answered: %s", e.Tool, e.State)
	case contract.EventFinal:
		return "  that is the output"
	case contract.EventError:
		return "  the run failed" + ended(e)
	default:
		return toldOfRest(e)
	}
}

// toldOfRest is an event of a call, or about the transcript, or the events,
// themselves.
func toldOfRest(e contract.Event) string {
	switch e.Type {
	case contract.EventCallProgress:
		return "    " + e.Tool + ": " + far(e)
	case contract.EventCallDrifted:
		return "    " + e.Tool + ": it is no longer declared as it was pinned"
	case contract.EventCall, contract.EventCallDenied, contract.EventCallOverflow, contract.EventCallAbandoned:
		return fmt.Sprintf("    %s: %s%s", e.Tool, e.State, ended(e))
	case contract.EventTruncated:
		return "  the transcript is full: contents are left out of it"
	case contract.EventTranscriptLost:
		return "  the transcript could not be stored"
	case contract.EventLinesDropped:
		return fmt.Sprintf("  %d events are not shown here", omitted(e).Records)
	default: // nothing that a person waits for
		return ""
	}
}

// omitted is what the event counts as left out.
func omitted(e contract.Event) contract.Omitted {
	if e.Omitted == nil {
		return contract.Omitted{}
	}
	return *e.Omitted
}

// far is how far a tool says it is.
func far(e contract.Event) string {
	if e.Done == nil {
		return "at work"
	}
	if e.Total == nil || *e.Total <= 0 {
		return fmt.Sprintf("at %g", *e.Done)
	}
	return fmt.Sprintf("at %g of %g", *e.Done, *e.Total)
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
