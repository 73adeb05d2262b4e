package loop

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// EventType says what an Event is about.
type EventType string

// The types of event.
const (
	EventExecutionStarted  EventType = "execution.started"
	EventCall              EventType = "call"
	EventExecutionFinished EventType = "execution.finished"
)

// Event is one line of what a run tells while it goes on. It never has
// arguments, results, messages or credentials.
type Event struct {
	// Time is RFC 3339 in UTC.
	Time string    `json:"time"`
	Type EventType `json:"type"`
	// Run is <namespace>/<name>.
	Run        string `json:"run"`
	RunUID     string `json:"runUID"`
	Generation int64  `json:"generation"`
	// Seq, Tool and Grant name the call.
	Seq   int64  `json:"seq,omitempty"`
	Tool  string `json:"tool,omitempty"`
	Grant string `json:"grant,omitempty"`
	// State is the call's, or the execution's result.
	State  string          `json:"state,omitempty"`
	Reason contract.Reason `json:"reason,omitempty"`
	// DurationMs is the time since the call was admitted or the execution began.
	DurationMs int64 `json:"durationMs"`
}

// Events writes events as JSON lines. It is the one writer of its stream; a nil
// *Events writes nothing.
type Events struct {
	mu  sync.Mutex
	w   io.Writer
	now func() time.Time
}

// NewEvents returns a writer of events onto w.
func NewEvents(w io.Writer, now func() time.Time) *Events { return &Events{w: w, now: now} }

func (e *Events) started(b contract.Bundle) { e.emit(b, Event{Type: EventExecutionStarted}) }

func (e *Events) call(b contract.Bundle, x broker.Event) {
	e.emit(b, Event{
		Type: EventCall, Seq: x.Call.Seq, Tool: x.Call.Tool, Grant: x.Call.Grant,
		State: string(x.Call.State), Reason: x.Call.Reason, DurationMs: x.Duration.Milliseconds(),
	})
}

func (e *Events) finished(b contract.Bundle, o Outcome) {
	x := Event{Type: EventExecutionFinished, State: string(contract.ResultSucceeded), DurationMs: o.Usage.WallMs}
	if o.Fault != nil {
		x.State, x.Reason = string(contract.ResultFailed), o.Fault.Reason
	}
	e.emit(b, x)
}

func (e *Events) emit(b contract.Bundle, x Event) {
	if e == nil {
		return
	}
	x.Time = e.now().UTC().Format(time.RFC3339Nano)
	x.Run, x.RunUID, x.Generation = b.Run.Namespace+"/"+b.Run.Name, b.Run.UID, b.Run.Generation
	line, err := json.Marshal(x)
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	// A stream that nobody reads must not stop the run.
	_, _ = e.w.Write(append(line, '\n'))
}
