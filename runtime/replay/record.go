// Package replay executes the programs of a run again: in the real sandbox, against
// the results that the run's transcript has. Executions are deterministic, so that
// a program must make the same calls and come to the same end. No tool takes part,
// and nothing is read, written or dialled.
package replay

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Record is what a transcript has of the programs of a run.
type Record struct {
	// Run is <namespace>/<name>.
	Run          string
	RunUID       string
	Generation   int64
	BundleDigest string
	// Programs are those that were executed, in their order.
	Programs []Program
	// Direct counts the calls of tools that a model made itself: no program is behind
	// them.
	Direct int
	// End is how the run ended, which need not be a program's doing.
	End End
	// Omitted is what the transcript had no room for; nil when that is nothing.
	Omitted *contract.Omitted
}

// Program is one execution of a program.
type Program struct {
	// Step is the agent's, 0 without one; ID and Tool are those of the event that
	// began it. Tool is empty for the program of the run itself.
	Step int64
	ID   string
	Tool string
	// Recipe is the name of the Recipe that it is of, or "".
	Recipe string
	// Called says that a model called the recipe.
	Called bool

	Source, SourceDigest string
	// Input is the argument of main. Respelled says that its own text had blanks.
	Input     json.RawMessage
	Respelled bool
	// Limits are nil in transcripts of earlier versions.
	Limits                    *contract.Limits
	InputSchema, OutputSchema json.RawMessage
	Calls                     []Call
	End                       End
	// Missing says what the transcript lacks to execute it again; "" for nothing.
	Missing string
}

// Call is one call of a tool by a program, as it was.
type Call struct {
	// Seq is the run's number of the call, 0 for a refused one.
	Seq   int64
	Tool  string
	State contract.CallState
	// Arguments are canonical JSON, nil for a refused call; ArgumentsDigest is there
	// even where they were too large for the transcript.
	Arguments       json.RawMessage
	ArgumentsDigest string
	// Result is what the program saw, and Fault why it saw none.
	Result json.RawMessage
	Fault  *contract.Fault
	// Latched says that the call ended the program.
	Latched bool
	// Respelled says that the result's own text had blanks.
	Respelled bool
	// Missing says what the transcript lacks of its outcome; "" for nothing.
	Missing string
}

// End is how a program, or a run, ended.
type End struct {
	// Known is false where the transcript ends before.
	Known bool
	// Value is the JSON that was returned, nil with a Fault, or where it was too large
	// for the transcript; Digest is that of its bytes.
	Value  json.RawMessage
	Digest string
	Fault  *contract.Fault
}

// ErrNoContents is the error of events that say nothing of what was said: those of a
// run that keeps no transcript.
var ErrNoContents = errors.New("the run kept no transcript (spec.transcript: None): its events have no contents")

// Read finds the programs of a run in the events of its transcript. What is missing in
// them is said in the Record. A chain of hashes shows only that events are as they
// were written, and anybody may write one: events of which some belong to another
// execution, or that come where no runtime writes them, are an error.
func Read(events []contract.Event) (Record, error) {
	if len(events) == 0 || events[0].Type != contract.EventExecutionStarted {
		return Record{}, fmt.Errorf("the transcript does not begin with %s", contract.EventExecutionStarted)
	}
	if events[0].Content == nil {
		return Record{}, ErrNoContents
	}
	r := reader{recipes: map[string]Program{}}
	for i, e := range events {
		if err := r.ordered(events[0], i, e); err != nil {
			return Record{}, fmt.Errorf("record %d of the transcript, %s, %w", i+1, e.Type, err)
		}
		r.event(e)
	}
	if r.open != nil {
		r.close(End{})
	}
	return r.Record, nil
}

// reader reads events in their order.
type reader struct {
	Record
	limits *contract.Limits
	// open is the program that is being executed, nil between two.
	open *Program
	// recipes are those that were called so far, by the digest of their source.
	recipes map[string]Program
	fault   *contract.Fault
	seq     int64 // of the last admitted call
}

// ordered says why an event cannot be the next one, or nil.
func (r *reader) ordered(first contract.Event, i int, e contract.Event) error {
	switch {
	case e.Run != first.Run || e.RunUID != first.RunUID || e.Generation != first.Generation:
		return errors.New("is of another execution")
	case i > 0 && e.Type == contract.EventExecutionStarted:
		return errors.New("is there already")
	case r.End.Known && e.Type != contract.EventTruncated:
		return errors.New("comes after the end of the run")
	}
	return nil
}

// interrupted closes a program whose end is not there when something else begins, or
// ends: there may have been no room for it. Nobody shall take it for one that holds.
func (r *reader) interrupted(by contract.Event) {
	ends := by.Type == contract.EventProgramFinished || by.Type == contract.EventToolFinished
	if r.open != nil && !(ends && by.ID == r.open.ID) {
		r.close(End{})
	}
}

func (r *reader) event(e contract.Event) {
	c := e.Content
	if c == nil {
		c = &contract.EventContent{}
	}
	switch e.Type {
	case contract.EventProgramStarted, contract.EventToolStarted, contract.EventProgramFinished, contract.EventToolFinished:
		r.interrupted(e)
	default:
	}
	switch e.Type {
	case contract.EventExecutionStarted:
		r.Run, r.RunUID, r.Generation, r.BundleDigest, r.limits = e.Run, e.RunUID, e.Generation, e.BundleDigest, c.Limits
		if c.SourceDigest != "" {
			r.begin(e, c, c.Input, "input")
			r.open.InputSchema, r.open.OutputSchema = c.InputSchema, c.OutputSchema
			r.lacksSchema(c)
		}
	case contract.EventProgramStarted:
		r.begin(e, c, c.Input, "input")
	case contract.EventToolStarted:
		r.tool(e, c)
	case contract.EventCall, contract.EventCallDenied, contract.EventCallOverflow, contract.EventCallAbandoned, contract.EventCallDrifted:
		r.call(e, c)
	case contract.EventLatched:
		if r.open != nil && len(r.open.Calls) > 0 {
			r.open.Calls[len(r.open.Calls)-1].Latched = true
		}
	case contract.EventProgramFinished, contract.EventToolFinished:
		if r.open != nil {
			r.close(endOf(e, c, c.Result, "result"))
		}
	case contract.EventError:
		r.fault = contract.Faultf(e.Reason, "%s", c.Message).At(c.Line, c.Column)
	case contract.EventExecutionFinished:
		r.End = endOf(e, c, c.Output, "output")
		if r.End.Fault != nil && r.fault != nil {
			r.End.Fault = r.fault
		}
		if r.open != nil {
			r.close(r.End)
		}
	case contract.EventTruncated:
		r.Omitted = e.Omitted
	default:
	}
}

// begin begins a program with an input that is the field of its event.
func (r *reader) begin(e contract.Event, c *contract.EventContent, input json.RawMessage, field string) {
	p := &Program{
		Step: e.Step, ID: e.ID, Tool: e.Tool, Recipe: c.Recipe, Source: c.Source, SourceDigest: c.SourceDigest, Input: input, Limits: r.limits,
		Called: e.Type == contract.EventToolStarted && e.Tool != contract.RunCodeTool,
	}
	p.Respelled = c.InputDigest != "" && c.InputDigest != contract.Digest(input)
	if o := left(c, field); o != nil {
		p.Missing = fmt.Sprintf("its input is not in the transcript, for its size of %d bytes", o.Bytes)
	}
	if o := left(c, "source"); o != nil {
		p.Missing = fmt.Sprintf("its program is not in the transcript, for its size of %d bytes", o.Bytes)
	}
	r.open = p
	r.sound()
}

// sound says when the source is not the one of its digest, or the limits are some that no
// API server admits.
func (r *reader) sound() {
	switch p := r.open; {
	case p.Missing != "" || p.Called && p.Source == "":
	case p.SourceDigest == "":
		p.Missing = "its program is not in the transcript"
	case contract.Digest([]byte(p.Source)) != p.SourceDigest:
		p.Missing = "its program in the transcript is not the one of its digest"
	case p.Limits != nil && !admitted(*p.Limits):
		p.Missing = "its limits in the transcript are out of the bounds of any run"
	}
}

func admitted(l contract.Limits) bool {
	for _, v := range []int64{l.SourceBytes, l.InputBytes, l.OutputBytes, l.HeapBytes, l.StackBytes, l.WallClockMs, l.Fuel, l.Calls()} {
		if v < 0 {
			return false
		}
	}
	return l.CheckWithin(contract.Ceilings()) == nil
}

func (r *reader) lacksSchema(c *contract.EventContent) {
	for _, field := range []string{"inputSchema", "outputSchema"} {
		if o := left(c, field); o != nil && r.open.Missing == "" {
			r.open.Missing = fmt.Sprintf("its %s is not in the transcript, for its size of %d bytes", field, o.Bytes)
		}
	}
}

// tool begins a native call of a model: of a program, of a recipe or of a tool.
func (r *reader) tool(e contract.Event, c *contract.EventContent) {
	switch {
	case c.SourceDigest == "":
		if e.Tool != contract.RunCodeTool { // or else its arguments hold no program
			r.Direct++
		}
		return
	case e.Tool == contract.RunCodeTool:
		r.begin(e, c, c.Input, "input")
		return
	}
	known, seen := r.recipes[c.SourceDigest]
	r.begin(e, c, c.Arguments, "arguments")
	p := r.open
	switch {
	case c.Limits != nil:
		p.Limits, p.InputSchema, p.OutputSchema = c.Limits, c.InputSchema, c.OutputSchema
		r.lacksSchema(c)
		r.sound()
		r.recipes[c.SourceDigest] = *p
	case seen:
		p.Source, p.Limits, p.InputSchema, p.OutputSchema = known.Source, known.Limits, known.InputSchema, known.OutputSchema
		if p.Missing == "" {
			p.Missing = known.Missing
		}
	case p.Missing == "":
		p.Missing = "the program of the recipe is not in the transcript, which an earlier version wrote"
	}
}

func (r *reader) close(end End) {
	r.open.End = end
	r.Programs = append(r.Programs, *r.open)
	r.open = nil
}

// endOf is the end that an event tells, with the value in its field.
func endOf(e contract.Event, c *contract.EventContent, value json.RawMessage, field string) End {
	end := End{Known: true}
	if e.State != string(contract.ResultSucceeded) {
		end.Fault = contract.Faultf(e.Reason, "%s", c.Message).At(c.Line, c.Column)
		return end
	}
	if o := left(c, field); o != nil {
		end.Digest = o.Digest
		return end
	}
	end.Value, end.Digest = value, contract.Digest(value)
	return end
}

// call takes a change of a call. The admitted ones are numbered through the run.
func (r *reader) call(e contract.Event, c *contract.EventContent) {
	if e.Seq > r.seq {
		if e.Seq != r.seq+1 && r.open != nil && r.open.Missing == "" {
			r.open.Missing = fmt.Sprintf("call %d of the run is not in the transcript", r.seq+1)
		}
		r.seq = e.Seq
	}
	if r.open != nil {
		r.open.call(e, c)
	}
}

// left is what was left out of a field, or nil.
func left(c *contract.EventContent, field string) *contract.Omission {
	for i := range c.Omitted {
		if c.Omitted[i].Field == field {
			return &c.Omitted[i]
		}
	}
	return nil
}

// call takes a change of a call: its intent, its outcome, or its refusal.
func (p *Program) call(e contract.Event, c *contract.EventContent) {
	last := len(p.Calls) - 1
	if e.Seq == 0 || last < 0 || p.Calls[last].Seq != e.Seq {
		p.Calls = append(p.Calls, Call{Seq: e.Seq, Tool: e.Tool})
		last++
	}
	x := &p.Calls[last]
	x.State = contract.CallState(e.State)
	if c.Arguments != nil {
		x.Arguments, x.ArgumentsDigest = c.Arguments, contract.Digest(c.Arguments)
	}
	if o := left(c, "arguments"); o != nil {
		x.ArgumentsDigest = o.Digest
	}
	if x.State == contract.CallDispatched {
		x.Missing = "the transcript has no outcome of it"
		return
	}
	x.Missing = ""
	switch o := left(c, "result"); {
	case e.Reason != "":
		x.Fault = contract.Faultf(e.Reason, "%s", c.Message)
		if left(c, "message") != nil {
			x.Missing = "the message of its failure is not in the transcript, for its size"
		}
	case o != nil:
		x.Missing = fmt.Sprintf("its result is not in the transcript, for its size of %d bytes", o.Bytes)
	case c.Result == nil:
		x.Missing = "the transcript has no result of it"
	default:
		x.Result = c.Result
		x.Respelled = c.ResultDigest != "" && c.ResultDigest != contract.Digest(c.Result)
	}
}
