package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestProgress has every type of event, as a person sees it.
func TestProgress(t *testing.T) {
	call := func(typ contract.EventType, state contract.CallState, r contract.Reason) contract.Event {
		return contract.Event{Type: typ, Step: 1, Seq: 2, Tool: "pay", State: string(state), Reason: r, DurationMs: 5}
	}
	tests := map[string]struct {
		event contract.Event
		want  string
	}{
		"execution.started":     {contract.Event{Type: contract.EventExecutionStarted}, ""},
		"step.started":          {contract.Event{Type: contract.EventStepStarted, Step: 3}, "step 3\n"},
		"model.requested":       {contract.Event{Type: contract.EventModelRequested, Step: 3}, "  asking the model\n"},
		"model.delta":           {contract.Event{Type: contract.EventModelDelta, Content: &contract.EventContent{Text: "par"}}, ""},
		"model.retried":         {contract.Event{Type: contract.EventModelRetried, Reason: contract.ReasonModelError, DurationMs: 20}, "  the model is asked again (ModelError) after 20 ms\n"},
		"model.answered":        {contract.Event{Type: contract.EventModelAnswered, DurationMs: 7, InputTokens: 10, OutputTokens: 2, Attempts: 1}, "  the model answered after 7 ms, 10 tokens in and 2 out\n"},
		"model.answered, late":  {contract.Event{Type: contract.EventModelAnswered, OutputTokens: 2, Attempts: 3}, "  the model answered, 0 tokens in and 2 out, 3 attempts\n"},
		"model.answered, not":   {contract.Event{Type: contract.EventModelAnswered, Reason: contract.ReasonModelError, Attempts: 1}, "  the model answered (ModelError)\n"},
		"program.started":       {contract.Event{Type: contract.EventProgramStarted, Tool: "code", ID: "code_execution_1"}, "  running the program\n"},
		"program.finished":      {contract.Event{Type: contract.EventProgramFinished, Tool: "code", State: "Failed", Reason: contract.ReasonTimeout, DurationMs: 9}, "  the program ended: Failed (Timeout) after 9 ms\n"},
		"program.refused":       {contract.Event{Type: contract.EventProgramRefused}, "  the program was not run: only the end is taken now\n"},
		"protocol.error":        {contract.Event{Type: contract.EventProtocolError, Reason: contract.ReasonProtocolError}, "  the answer is no message\n"},
		"tool.started":          {contract.Event{Type: contract.EventToolStarted, Tool: "buy", ID: "c1"}, "  calling buy\n"},
		"tool.finished":         {contract.Event{Type: contract.EventToolFinished, Tool: "buy", ID: "c1", State: "Succeeded", DurationMs: 4}, "  buy ended: Succeeded after 4 ms\n"},
		"tool.finished, failed": {contract.Event{Type: contract.EventToolFinished, Tool: "buy", State: "Failed", Reason: contract.ReasonInvalidArguments}, "  buy ended: Failed (InvalidArguments)\n"},
		"pending":               {contract.Event{Type: contract.EventPending, Tool: "pay", ID: "p-1"}, "  waiting for an answer to pay (p-1)\n"},
		"resolved":              {contract.Event{Type: contract.EventResolved, Tool: "pay", ID: "p-1", State: "Approve"}, "  pay was answered: Approve\n"},
		"call":                  {call(contract.EventCall, contract.CallCompleted, ""), "    pay: Completed after 5 ms\n"},
		"call.denied":           {call(contract.EventCallDenied, contract.CallRefused, contract.ReasonToolNotAllowed), "    pay: Refused (ToolNotAllowed) after 5 ms\n"},
		"call.overflow":         {call(contract.EventCallOverflow, contract.CallRefused, contract.ReasonCallLimitExceeded), "    pay: Refused (CallLimitExceeded) after 5 ms\n"},
		"call.abandoned":        {call(contract.EventCallAbandoned, contract.CallAbandoned, contract.ReasonTimeout), "    pay: Abandoned (Timeout) after 5 ms\n"},
		"call.progress":         {contract.Event{Type: contract.EventCallProgress, Tool: "pay", Done: new(1.0), Total: new(4.0)}, "    pay: at 1 of 4\n"},
		"call.progress, open":   {contract.Event{Type: contract.EventCallProgress, Tool: "pay", Done: new(0.5), Total: new(0.0)}, "    pay: at 0.5\n"},
		"call.progress, none":   {contract.Event{Type: contract.EventCallProgress, Tool: "pay"}, "    pay: at work\n"},
		"call.drifted":          {call(contract.EventCallDrifted, contract.CallCompleted, ""), "    pay: it is no longer declared as it was pinned\n"},
		"latched":               {call(contract.EventLatched, "", contract.ReasonToolNotAllowed), ""},
		"final":                 {contract.Event{Type: contract.EventFinal}, "  that is the output\n"},
		"error":                 {contract.Event{Type: contract.EventError, Reason: contract.ReasonStepLimitExceeded}, "  the run failed (StepLimitExceeded)\n"},
		"step.finished":         {contract.Event{Type: contract.EventStepFinished, State: "Code"}, ""},
		"execution.finished":    {contract.Event{Type: contract.EventExecutionFinished, State: "Succeeded"}, ""},
		"transcript.truncated":  {contract.Event{Type: contract.EventTruncated, Omitted: &contract.Omitted{Contents: 1}}, "  the transcript is full: contents are left out of it\n"},
		"transcript.lost":       {contract.Event{Type: contract.EventTranscriptLost}, "  the transcript could not be stored\n"},
		"lines.dropped":         {contract.Event{Type: contract.EventLinesDropped, Omitted: &contract.Omitted{Records: 3}}, "  3 events are not shown here\n"},
		"lines.dropped, none":   {contract.Event{Type: contract.EventLinesDropped}, "  0 events are not shown here\n"},
		"one of the future":     {contract.Event{Type: "x", Tool: "pay", State: "y"}, ""},
		"nothing for terminals": {contract.Event{Type: contract.EventToolStarted, Tool: "a\x1b[2Jb"}, "  calling a\\u001b[2Jb\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			line, err := json.Marshal(tc.event)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if n, err := (progress{&out}).Write(append(line, '\n')); err != nil || n != len(line)+1 {
				t.Fatalf("%d bytes of %d, %v", n, len(line)+1, err)
			}
			if out.String() != tc.want {
				t.Errorf("%q, want %q", out.String(), tc.want)
			}
		})
	}
	t.Run("every type", func(t *testing.T) {
		raw, err := os.ReadFile(filepath.Join("..", "..", "api", "contract", "event.go"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			name, typ, ok := strings.Cut(line, `EventType = "`)
			if !ok || !strings.HasPrefix(strings.TrimSpace(name), "Event") {
				continue
			}
			typ, _, _ = strings.Cut(typ, `"`)
			if !slices.ContainsFunc(slices.Collect(maps.Keys(tests)), func(n string) bool { return strings.HasPrefix(n, typ) }) {
				t.Errorf("no case has %s", typ)
			}
		}
	})
}

func TestProgressOfNoEvent(t *testing.T) {
	if _, err := (progress{&bytes.Buffer{}}).Write([]byte("text\n")); err == nil {
		t.Error("no error")
	}
}

// TestProgressTo: only a terminal gets words.
func TestProgressTo(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var buffer bytes.Buffer
	if progressTo(f) != f || progressTo(&buffer) != &buffer {
		t.Error("what is no terminal gets words")
	}
}
