// Package loop takes a run through its programs. A run of a recipe or of code
// has exactly one; that of an agent has those that its model writes.
package loop

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// Sandbox executes programs; *sandbox.Engine is one.
type Sandbox interface {
	Execute(ctx context.Context, p sandbox.Program, c sandbox.Caller) (sandbox.Result, error)
}

// Config is what one run needs.
type Config struct {
	Sandbox Sandbox
	// Bundle is the run. Its tools are not looked at: Tools are the same, with
	// the way to each.
	Bundle contract.Bundle
	Tools  []broker.Tool
	// Journal is written through; nil keeps the journal in the Outcome only.
	Journal broker.Journal
	// Now tells the time. It is safe for concurrent use.
	Now func() time.Time
	// Hooks hang on every child call.
	Hooks []broker.Hook
	// Events, when set, is told what happens.
	Events *Events
	// Model is who writes the programs, for a bundle with an agent.
	Model Model
	// Spans, when set, are told where the parts of an agent's run begin and end.
	Spans Spans
	// Desk is where direct calls wait for an answer; without one they are refused.
	Desk Desk
	// Steps, when set, is told the steps of an agent so far before each program and
	// behind each step, one call at a time: for a journal that is written through.
	// The last one may still be on its way. The slice is not changed any more.
	Steps func([]contract.Step)
}

// Outcome is how a run ended.
type Outcome struct {
	// Value is the JSON text that the program returned; nil with a Fault.
	Value json.RawMessage
	Fault *contract.Fault
	// Steps are an agent's.
	Steps []contract.Step
	// Calls is the journal, and Refused counts the refused calls, listed or not.
	Calls   []contract.Call
	Refused int64
	Usage   contract.Usage
	// Evidence is what the child call that ended the run left behind, as JSON text,
	// or the last useful result of an agent that came to no end; "" when there is
	// neither.
	Evidence string
	// Media is what the tools left for the run's result, complete, and MediaSeq is
	// the call that it came from; nil when there is none. It may be there with a
	// Fault, too.
	Media    *contract.Media
	MediaSeq int64
}

// Run executes the bundle's program, or has the model of its agent write programs
// and executes these, until it ends or ctx does. A cause of ctx that is a
// *contract.Fault becomes the run's.
func Run(ctx context.Context, c Config) Outcome {
	if c.Spans == nil {
		c.Spans = noSpans{}
	}
	r := &run{Config: c, start: c.Now()}
	c.Events.started(c.Bundle)
	do := r.do
	if c.Bundle.Agent != nil {
		do = r.agent
	}
	o := do(ctx)
	o.Fault = unsettled(o.Fault, o.Calls)
	o.Usage.WallMs = c.Now().Sub(r.start).Milliseconds()
	c.Events.finished(c.Bundle, o)
	return o
}

// Fail is the outcome of a run that cannot begin, told like that of any other.
func Fail(c Config, f *contract.Fault) Outcome {
	o := Outcome{Fault: f}
	c.Events.started(c.Bundle)
	c.Events.finished(c.Bundle, o)
	return o
}

type run struct {
	Config
	start time.Time
	at    atomic.Int64 // the step of an agent
	// waited is how long calls have waited for somebody's answer. They wait one by one.
	waited time.Duration
}

func (r *run) do(ctx context.Context) Outcome {
	output, f := r.prepare()
	if f != nil {
		return Outcome{Fault: f}
	}
	b, f := r.newBroker()
	if f != nil {
		return Outcome{Fault: f}
	}
	res, err := r.Sandbox.Execute(ctx, sandbox.Program{Source: r.Bundle.Source, Input: r.Bundle.Input, Limits: r.Bundle.Limits}, b)
	rec := b.End()
	o := Outcome{
		Calls: rec.Calls, Refused: rec.Refused, Evidence: rec.Evidence, Media: rec.Media, MediaSeq: rec.MediaSeq,
		Usage: contract.Usage{HeapBytes: res.Usage.HeapBytes, Fuel: res.Usage.Fuel, ChildCalls: rec.Admitted, Tools: rec.Tools},
	}
	if err != nil {
		f = faultOf(err)
	}
	// What the broker holds is true whatever the executor says.
	if o.Fault = contract.Worst(rec.Fault, f); o.Fault != nil {
		return o
	}
	if o.Fault = checked(output, res.Value); o.Fault == nil {
		o.Value = res.Value
	}
	return o
}

func (r *run) newBroker() (*broker.Broker, *contract.Fault) {
	var recipe string
	if r.Bundle.Recipe != nil {
		recipe = r.Bundle.Recipe.Name
	}
	b, err := broker.New(broker.Config{
		Run: r.Bundle.Run, Labels: r.Bundle.Labels, Recipe: recipe, Limits: r.Bundle.Limits, Tools: r.Tools, Journal: r.Journal, Now: r.Now,
		Hooks: r.Hooks, Desk: r.desk(), Observe: func(e broker.Event) { r.Events.call(r.Bundle, r.at.Load(), e) },
	})
	if err != nil {
		return nil, faultOf(err)
	}
	return b, nil
}

// tell tells the steps so far.
func (r *run) tell(steps []contract.Step) {
	if r.Steps != nil {
		r.Steps(slices.Clone(steps))
	}
}

// faultOf finds the fault of an error; one without is ours.
func faultOf(err error) *contract.Fault {
	if f, ok := contract.AsFault(err); ok {
		return f
	}
	return contract.Faultf(contract.ReasonWorkerLost, "the execution could not be carried out")
}

// Report writes the outcome into e as its end, at the time end. The media is not
// part of it: whoever stores that fills e.Media.
func (o Outcome) Report(e *contract.Execution, end time.Time) {
	usage := o.Usage
	e.Calls, e.RefusedCalls, e.Steps, e.Usage = o.Calls, o.Refused, o.Steps, &usage
	e.CompletionTime = end.UTC().Format(time.RFC3339)
	if o.Fault != nil {
		e.Fail(o.Fault)
		e.Error.Evidence = o.Evidence
		return
	}
	if err := e.Succeed(o.Value); err != nil {
		e.Fail(contract.Faultf(contract.ReasonWorkerLost, "the program's result is not JSON"))
	}
}
