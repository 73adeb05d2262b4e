package loop

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// Events writes events as JSON lines. It is the one writer of its stream; a nil
// *Events writes nothing.
type Events struct {
	mu  sync.Mutex
	w   io.Writer
	now func() time.Time
}

// NewEvents returns a writer of events onto w.
func NewEvents(w io.Writer, now func() time.Time) *Events { return &Events{w: w, now: now} }

func (e *Events) started(b contract.Bundle) {
	e.emit(b, contract.Event{Type: contract.EventExecutionStarted})
}

// step tells what an agent does.
func (e *Events) step(b contract.Bundle, x contract.Event) { e.emit(b, x) }

func (e *Events) call(b contract.Bundle, step int64, x broker.Event) {
	line := contract.Event{
		Type: typeOf(x), Step: step, Seq: x.Call.Seq, Tool: x.Call.Tool, Grant: x.Call.Grant,
		State: string(x.Call.State), Reason: x.Call.Reason, DurationMs: x.Duration.Milliseconds(),
	}
	if p := x.Progress; p != nil {
		line.Done, line.Total = &p.Done, &p.Total
	}
	e.emit(b, line)
	if x.Latched {
		line.Type, line.State = contract.EventLatched, ""
		e.emit(b, line)
	}
}

// typeOf is the most particular type of a change.
func typeOf(x broker.Event) contract.EventType {
	refused := x.Call.State == contract.CallRefused
	switch r := x.Call.Reason; {
	case x.Progress != nil:
		return contract.EventCallProgress
	case x.Drifted:
		return contract.EventCallDrifted
	case x.Call.State == contract.CallAbandoned:
		return contract.EventCallAbandoned
	case r == contract.ReasonChildResultTooLarge, refused && (r == contract.ReasonCallLimitExceeded || r == contract.ReasonEvidenceBudgetTooSmall):
		return contract.EventCallOverflow
	case refused && r.Class() == contract.ClassTerminal:
		return contract.EventCallDenied
	}
	return contract.EventCall
}

func (e *Events) finished(b contract.Bundle, o Outcome) {
	x := contract.Event{Type: contract.EventExecutionFinished, State: string(contract.ResultSucceeded), DurationMs: o.Usage.WallMs}
	if o.Fault != nil {
		x.State, x.Reason = string(contract.ResultFailed), o.Fault.Reason
	}
	e.emit(b, x)
}

func (e *Events) emit(b contract.Bundle, x contract.Event) {
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
