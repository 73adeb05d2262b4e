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

// The types of event. Each change of a call is one event of the most particular
// type; the end of a run by a call is one more.
const (
	EventExecutionStarted EventType = "execution.started"
	// EventCall is a change of a call that has no type of its own.
	EventCall EventType = "call"
	// EventCallDenied is a call that the run has no authority for.
	EventCallDenied EventType = "call.denied"
	// EventCallOverflow is a call that no budget was left for, or an answer that is
	// too large.
	EventCallOverflow EventType = "call.overflow"
	// EventCallAbandoned is a call that was charged and never sent.
	EventCallAbandoned EventType = "call.abandoned"
	// EventCallProgress is how far a tool says it is, at most once in
	// broker.ProgressEvery.
	EventCallProgress EventType = "call.progress"
	// EventCallDrifted is a call of a tool that is no longer declared as pinned.
	EventCallDrifted EventType = "call.drifted"
	// EventLatched is the end of all calls: from here on nothing reaches a tool.
	EventLatched           EventType = "latched"
	EventExecutionFinished EventType = "execution.finished"
)

// The types of event of an agent. Every step that has started is finished, with
// the kind of the answer as its state.
const (
	EventStepStarted    EventType = "step.started"
	EventModelRequested EventType = "model.requested"
	// EventModelAnswered is the end of a request, also of one that failed.
	EventModelAnswered   EventType = "model.answered"
	EventProgramStarted  EventType = "program.started"
	EventProgramFinished EventType = "program.finished"
	// EventProgramRefused is a program that came where only the end was allowed.
	EventProgramRefused EventType = "program.refused"
	// EventProtocolError is an answer that is no message.
	EventProtocolError EventType = "protocol.error"
	// EventFinal is the output of the run.
	EventFinal        EventType = "final"
	EventStepFinished EventType = "step.finished"
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
	// Step is the agent's, from 1.
	Step int64 `json:"step,omitempty"`
	// ID is that of a program, which is a call of the logical tool code.
	ID string `json:"id,omitempty"`
	// Seq, Tool and Grant name the call.
	Seq   int64  `json:"seq,omitempty"`
	Tool  string `json:"tool,omitempty"`
	Grant string `json:"grant,omitempty"`
	// State is the call's, the result of the execution or of a program, or the kind
	// of a step.
	State  string          `json:"state,omitempty"`
	Reason contract.Reason `json:"reason,omitempty"`
	// DurationMs is the time since the call was admitted, or since the execution,
	// the step, the request or the program began.
	DurationMs int64 `json:"durationMs"`
	// InputTokens and OutputTokens are what the model's endpoint counted, and
	// Attempts how often it was asked.
	InputTokens  int64 `json:"inputTokens,omitempty"`
	OutputTokens int64 `json:"outputTokens,omitempty"`
	Attempts     int64 `json:"attempts,omitempty"`
	// Done and Total are a tool's progress; Total is 0 when it does not say.
	Done  *float64 `json:"done,omitempty"`
	Total *float64 `json:"total,omitempty"`
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

// step tells what an agent does.
func (e *Events) step(b contract.Bundle, x Event) { e.emit(b, x) }

func (e *Events) call(b contract.Bundle, step int64, x broker.Event) {
	line := Event{
		Type: typeOf(x), Step: step, Seq: x.Call.Seq, Tool: x.Call.Tool, Grant: x.Call.Grant,
		State: string(x.Call.State), Reason: x.Call.Reason, DurationMs: x.Duration.Milliseconds(),
	}
	if p := x.Progress; p != nil {
		line.Done, line.Total = &p.Done, &p.Total
	}
	e.emit(b, line)
	if x.Latched {
		line.Type, line.State = EventLatched, ""
		e.emit(b, line)
	}
}

// typeOf is the most particular type of a change.
func typeOf(x broker.Event) EventType {
	refused := x.Call.State == contract.CallRefused
	switch r := x.Call.Reason; {
	case x.Progress != nil:
		return EventCallProgress
	case x.Drifted:
		return EventCallDrifted
	case x.Call.State == contract.CallAbandoned:
		return EventCallAbandoned
	case r == contract.ReasonChildResultTooLarge, refused && (r == contract.ReasonCallLimitExceeded || r == contract.ReasonEvidenceBudgetTooSmall):
		return EventCallOverflow
	case refused && r.Class() == contract.ClassTerminal:
		return EventCallDenied
	}
	return EventCall
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
