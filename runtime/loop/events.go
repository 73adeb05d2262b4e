package loop

import (
	"io"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// Events tells what a run does, in one order: as JSON lines on a stream, and, where
// a transcript is kept, in that. A nil *Events tells nothing.
type Events struct {
	now  func() time.Time
	live *live

	mu       sync.Mutex // held for one event
	recorder *recorder  // nil where no transcript is kept
}

// NewEvents returns a writer of events onto w. It gives w one line a Write, and
// waits for it only at the end of the run, for two seconds at most: lines that a
// slow w leaves too many of are dropped, and counted in a line of their own.
func NewEvents(w io.Writer, now func() time.Time) *Events {
	e := &Events{now: now, live: &live{w: w}}
	e.live.lost = func(lines int64) []byte {
		line, _ := contract.Event{Type: contract.EventLinesDropped, Omitted: &contract.Omitted{Records: lines}}.Line()
		return line
	}
	return e
}

// Record keeps the transcript of the execution from here on. It is for the
// beginning, and for a bundle that does not forbid it.
func (e *Events) Record(o contract.TranscriptOrigin) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recorder = newRecorder(o)
}

// Flush waits until every line so far is written, for two seconds at most.
func (e *Events) Flush() {
	if e != nil {
		e.live.flush()
	}
}

// Transcript returns the packed transcript of a run that has ended, and where it
// ends; nil when none was kept. The bytes are not changed any more.
func (e *Events) Transcript() ([]byte, *contract.TranscriptRef) {
	if e == nil {
		return nil, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.recorder == nil || !e.recorder.closed {
		return nil, nil
	}
	ref := e.recorder.ref()
	return e.recorder.out.Bytes(), &ref
}

// Lost tells, on the stream only, that the transcript could not be stored.
func (e *Events) Lost(b contract.Bundle) {
	if e == nil {
		return
	}
	e.emit(b, contract.Event{Type: contract.EventTranscriptLost})
	e.live.flush()
}

func (e *Events) started(b contract.Bundle) {
	limits := b.Limits
	x := contract.Event{Type: contract.EventExecutionStarted, Content: &contract.EventContent{
		Source: b.Source, Input: b.Input, Limits: &limits, InputSchema: b.InputSchema, OutputSchema: b.OutputSchema,
	}}
	if b.Recipe != nil {
		x.Content.Recipe = b.Recipe.Name
	}
	if e != nil && e.recorder != nil {
		x.BundleDigest = e.recorder.origin.BundleDigest
	}
	if b.Source != "" {
		x.Content.SourceDigest = b.SourceDigest
	}
	e.emit(b, x)
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
	} else {
		line.Content = contentOf(x)
	}
	e.emit(b, line)
	if x.Latched {
		line.Type, line.State, line.Content = contract.EventLatched, "", nil
		e.emit(b, line)
	}
}

// contentOf is what was said at a change of a call. The arguments come with the
// first change of a call that was admitted, and what the program saw with the last.
func contentOf(x broker.Event) *contract.EventContent {
	c := &contract.EventContent{Result: x.Result, ResultDigest: x.Call.ResultDigest, Evidence: x.Evidence}
	if s := x.Call.State; s == contract.CallDispatched || s == contract.CallAbandoned {
		c.Arguments = x.Arguments
	}
	if f := x.Fault; f != nil {
		c.Message = f.Message
	}
	if reflect.ValueOf(*c).IsZero() {
		return nil
	}
	return c
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

// finished tells how the run ended, closes the transcript, and waits for the stream.
func (e *Events) finished(b contract.Bundle, o Outcome) {
	if e == nil {
		return
	}
	x := contract.Event{Type: contract.EventExecutionFinished, State: string(contract.ResultSucceeded), DurationMs: o.Usage.WallMs}
	if f := o.Fault; f != nil {
		x.State, x.Reason = string(contract.ResultFailed), f.Reason
		e.emit(b, contract.Event{Type: contract.EventError, Reason: f.Reason, Content: &contract.EventContent{
			Message: f.Message, Line: f.Line, Column: f.Column, Evidence: o.Evidence,
		}})
	} else {
		x.Content = &contract.EventContent{Output: o.Value, OutputDigest: contract.Digest(o.Value)}
	}
	e.emit(b, x)
	e.live.flush()
}

func (e *Events) emit(b contract.Bundle, x contract.Event) {
	if e == nil {
		return
	}
	if b.Transcript == contract.TranscriptNone {
		if x.Type == contract.EventModelDelta {
			return
		}
		x.Content = nil
		if !known(b, x.Tool) {
			x.Tool = contract.UnknownTool
		}
		if x.Type == contract.EventToolStarted || x.Type == contract.EventToolFinished {
			x.ID = "" // the model's own words
		}
	}
	x.Content = x.Content.Bounded()
	x.Run, x.RunUID, x.Generation = b.Run.Namespace+"/"+b.Run.Name, b.Run.UID, b.Run.Generation
	e.mu.Lock()
	defer e.mu.Unlock()
	x.Time = e.now().UTC().Format(time.RFC3339Nano)
	for _, line := range e.lines(x) {
		e.live.put(line)
	}
}

// known reports whether a name is not of a program's or a model's own making.
func known(b contract.Bundle, name string) bool {
	if name == "" || name == CodeTool || name == contract.RunCodeTool {
		return true
	}
	if b.Agent != nil && slices.ContainsFunc(b.Agent.Recipes, func(r contract.PinnedRecipeTool) bool { return r.ToolName == name }) {
		return true
	}
	return slices.ContainsFunc(b.Tools, func(t contract.PinnedTool) bool { return t.Tool.Name == name })
}

// lines are the event on the stream, as it is in the transcript.
func (e *Events) lines(x contract.Event) [][]byte {
	if e.recorder == nil || !x.Type.Recorded() {
		line, err := x.Line()
		if err != nil {
			return nil
		}
		return [][]byte{line}
	}
	ends := x.Type == contract.EventExecutionFinished
	lines := e.recorder.record(x, ends || x.Type == contract.EventError)
	if ends {
		lines = append(lines, e.recorder.close(x)...)
	}
	return lines
}
