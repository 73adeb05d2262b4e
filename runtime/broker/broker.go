// Package broker is the one way from a program to a tool. Every child call
// passes its steps in one order, and what a call did is in the journal before
// the program learns of it.
package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Request is one admitted call as a backend gets it.
type Request struct {
	// ID is the idempotency key of the call.
	ID string
	// Tool is the name of the tool.
	Tool string
	// Arguments is the canonical JSON of arguments that match the tool's input
	// schema: what the journal's digest is of, and what constraints looked at.
	Arguments json.RawMessage
	// MaxBytes bounds the answer: a backend keeps at most one byte more.
	MaxBytes int64
	// Progress, when set, is told how far the tool is. Neither number is checked.
	Progress func(done, total float64)
}

// Answer is what a tool answered.
type Answer struct {
	// Body is the result, in the tool's own bytes: JSON text in UTF-8, unless
	// the tool misbehaves. It is cut behind Request.MaxBytes+1 bytes.
	Body []byte
	// Bytes is the size of the whole answer, and Digest is taken over all of it.
	// A backend that gave up reading leaves Digest empty.
	Bytes  int64
	Digest string
	// Receipt is what the tool gave as proof of its effect, or "".
	Receipt string
	// Media is what the tool showed beside its result, complete or not; nil when
	// there was none with the marker.
	Media *contract.Media
	// Drifted says that the tool's server no longer declares what was pinned, and
	// that the operator lets such calls pass.
	Drifted bool
}

// Backend reaches one tool. Call sends the request at most once, heeds ctx, and
// fails with a *Failure; any other error counts as one that proves nothing.
type Backend interface {
	Call(ctx context.Context, r Request) (Answer, error)
}

// Tool is one tool of the projection and the way to it.
type Tool struct {
	contract.PinnedTool
	// Backend reaches the tool.
	Backend Backend
	// Withheld, when set, is the terminal fault that every call of the tool ends
	// with before it is admitted: the tool waits for somebody.
	Withheld *contract.Fault
}

// Journal keeps the calls of a run outside the process.
type Journal interface {
	// Record stores the whole journal so far and returns when it is stored. It
	// heeds ctx.
	Record(ctx context.Context, calls []contract.Call, refused int64) error
}

// Config is what a Broker needs.
type Config struct {
	// Run gives the calls their ids.
	Run contract.RunRef
	// Labels are the run's, and Recipe is the name of the program's, or "": for
	// constraints. Neither is changed.
	Labels map[string]string
	Recipe string
	// Limits are the program's. ChildCalls that is not set allows no call.
	Limits contract.Limits
	// Tools is the projection.
	Tools []Tool
	// Journal is written to before and after every call that may change
	// something; nil keeps the journal in this process only.
	Journal Journal
	// Now tells the time. It is safe for concurrent use.
	Now func() time.Time
	// Hooks hang on every call, in this order.
	Hooks []Hook
	// Observe, when set, is told of every change of a call, as the last hook. Unlike a
	// hook it is not left behind: it must not wait for anything.
	Observe func(Event)
	// Desk is where direct calls wait for an answer; without one they are refused.
	Desk Desk
}

// Event is one change of one call. Its fields are those of the Moment that it is;
// nobody may change what they hold.
type Event struct {
	// Call is the call as the journal has it now.
	Call contract.Call
	// Duration is the time from admission to outcome, without what it waited for an
	// answer; 0 for a refused call.
	Duration time.Duration
	// Latched says that the call has just ended the run.
	Latched bool
	// Drifted says that the tool's server no longer declares what was pinned.
	Drifted bool
	// Progress is how far the tool says it is; nil when the event is not about that.
	Progress *Progress
	// Arguments are what is sent, nil for a refused call; Result is what the program
	// sees, and Fault why it sees none.
	Arguments, Result json.RawMessage
	Fault             *contract.Fault
	// Evidence is what the call left that has just ended the run.
	Evidence string
}

// Broker brings the calls of one run to its tools. It implements
// sandbox.Caller, and is safe for concurrent use, though calls pass one by one.
type Broker struct {
	cfg   Config
	tools map[string]*tool
	hooks chain
	turn  sync.Mutex // held for the whole of one call
	epoch int64      // counts the beginnings and ends of Executions; turn guards it
	// scope and its bound of results are those of the program; turn and mu guard them.
	scope       Scope
	outputBytes int64
	mu          sync.Mutex // guards journal and latch
	book        journal
	latch       *contract.Fault
	// before counts the calls that were admitted before the present scope, and own
	// says that the latch holds a bound of that scope alone.
	before int64
	own    bool
	shown  shown
	// evidence is what the call that ended the run left behind.
	evidence string
}

type tool struct {
	Tool
	input, output *contract.Schema
	before, after *contract.Constraints // of calls and of results
}

// New returns a broker. It fails with a SchemaInvalid, ConstraintInvalid or
// NameConflict fault when the projection is not whole.
func New(cfg Config) (*Broker, error) {
	b := &Broker{cfg: cfg, tools: map[string]*tool{}, book: journal{run: cfg.Run, used: map[string]*used{}}}
	b.enter(Scope{})
	for _, t := range cfg.Tools {
		name := t.Tool.Name
		if _, twice := b.tools[name]; twice {
			return nil, contract.Faultf(contract.ReasonNameConflict, "two tools are named %q", name)
		}
		t.Tool = t.Tool.Defaulted()
		x := &tool{Tool: t}
		var err error
		if x.input, err = contract.CompileSchema(t.Tool.InputSchema); err != nil {
			return nil, fmt.Errorf("input schema of tool %s: %w", name, err)
		}
		if x.output, err = contract.CompileSchema(t.Tool.OutputSchema); err != nil {
			return nil, fmt.Errorf("output schema of tool %s: %w", name, err)
		}
		if err := x.compileConstraints(); err != nil {
			return nil, fmt.Errorf("tool %s: %w", name, err)
		}
		b.tools[name] = x
	}
	b.hang()
	return b, nil
}

// Call brings one call to its tool. Its error wraps a *contract.Fault; one of
// ClassCatchable is for the program, every other one is latched: from then on
// nothing reaches a tool, whatever the caller does.
func (b *Broker) Call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	b.turn.Lock()
	defer b.turn.Unlock()
	return b.call(ctx, name, args)
}

// call is Call for who holds the turn.
func (b *Broker) call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	t, canonical, f := b.admit(ctx, name, args)
	if f != nil {
		b.refuse(ctx, name, t, f)
		return nil, f
	}
	body, f := b.dispatch(ctx, t, canonical)
	if f != nil {
		return nil, f
	}
	return body, nil
}

// End closes the broker for good and returns what the run did. A call that is
// still on its way stays in the journal without an outcome.
func (b *Broker) End() Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := Record{
		Calls: b.book.snapshot(), Refused: b.book.refused, Admitted: b.book.admitted, Tools: b.book.tools(),
		Fault: b.latch, Evidence: b.evidence, Media: b.shown.media, MediaSeq: b.shown.seq,
	}
	b.book.closed = true
	if b.latch == nil {
		b.latch = contract.Faultf(contract.ReasonBrokerUnavailable, "the run is over")
	}
	return r
}

// Record is what a run did through its broker.
type Record struct {
	// Calls is the journal, Refused counts the refused calls, listed or not, and
	// Admitted those that were charged.
	Calls             []contract.Call
	Refused, Admitted int64
	// Tools says what the calls of each tool used, sorted by name.
	Tools []contract.ToolUsage
	// Fault is the terminal fault of the run, or nil. It holds whatever the
	// executor says.
	Fault *contract.Fault
	// Evidence is what the call behind Fault left, as contract.Left spells it; ""
	// when Fault is not a call's.
	Evidence string
	// Media is the newest complete media, with the call that it came from; nil
	// when there is none.
	Media    *contract.Media
	MediaSeq int64
}

// hold latches a terminal fault; the first one of the highest precedence stays.
// It reports whether that is f. A catchable fault is none of its business.
func (b *Broker) hold(f *contract.Fault) bool {
	if f == nil || f.Reason.Class() == contract.ClassCatchable {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.latch
	b.latch = contract.Worst(before, f)
	if b.latch != before {
		b.own = b.own && f.Reason == contract.ReasonCallLimitExceeded
	}
	return b.latch != before
}

func (b *Broker) latched() *contract.Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.latch
}

// stopped says why ctx is done, or nil.
func stopped(ctx context.Context) *contract.Fault {
	return contract.Stopped(ctx, contract.ReasonTimeout, "program")
}
