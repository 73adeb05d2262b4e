package broker

import (
	"context"
	"encoding/json"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Hook hangs on every child call. Constraints, journal, tracing and metrics are
// all hooks; Config has plain fields for the first two.
//
// One call passes the moments in the order of the methods:
//
//	Admit     arguments match the schema; no id, nothing charged
//	Dispatch  charged, has an id, is about to be sent
//	Result    the outcome is known, the program has not seen it
//	Observe   told of every change: refused, dispatched, progress, settled
//
// At one moment the hooks are called one after another: the constraints, then
// Config.Hooks in their order, then the journal, then Config.Observe. The first
// error ends the moment. So an intent is written last before the request leaves,
// and an outcome when everybody has agreed to it.
//
// Admit, Dispatch and Result are bounded by the program's one deadline and by
// its cancellation even where the hook ignores ctx: it is left behind then, and
// what it still does counts for nothing. A hook that panics has failed.
//
// Hooks get copies. A hook is never called twice at once, but for an Observe that
// hangs: the other moments of its hook go on.
type Hook interface {
	// Admit may refuse the call with an error. Nothing has happened yet, so a
	// catchable Fault is for the program, every other one is terminal, and an
	// error without a Fault is BrokerUnavailable.
	Admit(ctx context.Context, m Moment) error
	// Dispatch may abandon the call with an error, as Admit may refuse it. The
	// values of the context that it returns are those of everything behind it:
	// later hooks, the backend, and Result and Observe of this call; nil keeps
	// ctx. Its deadline and cancellation are not taken over.
	Dispatch(ctx context.Context, m Moment) (context.Context, error)
	// Result is called with what the program is about to see, a result or a
	// catchable failure; a terminal failure goes straight to Observe. A terminal
	// Fault other than BrokerUnavailable refuses the result: the call is Completed
	// with its reason. Any other error is a hook that failed: nobody knows then
	// whether the outcome is known where it must be, so that a call that is not
	// ReadOnly becomes Uncertain.
	Result(ctx context.Context, m Moment) error
	// Observe is told of a change that has happened, and has no say in it. It has
	// ObserveFor each time; whoever takes longer is told nothing until it returns.
	Observe(ctx context.Context, m Moment)
}

// ObserveFor bounds one Observe. It counts even when the run is over, so that
// the end of the last call is told, too.
const ObserveFor = 250 * time.Millisecond

// Moment is what a Hook sees of a call: a copy, which it may keep.
type Moment struct {
	// Call is the call as the journal has it now. At Admit it has neither an id
	// nor a state.
	Call contract.Call
	// Arguments is the JSON text of the arguments, nil for a refused call.
	Arguments json.RawMessage
	// Result is the JSON text that the program is about to see, or saw.
	Result json.RawMessage
	// Fault is why the call was refused, or how it failed.
	Fault *contract.Fault
	// Latched says that Fault has just ended the run, and Evidence is what the call
	// left then.
	Latched  bool
	Evidence string
	// Drifted says that the tool's server no longer declares what was pinned.
	Drifted bool
	// Duration is the time until the outcome was known; 0 before that, and for a
	// refused call.
	Duration time.Duration
	// Progress is how far the tool says it is; nil when this is not about that.
	Progress *Progress
}

// Progress is how far a tool says it is. Total is 0 when it does not say.
type Progress struct{ Done, Total float64 }

// Pass is a Hook that lets everything pass; hooks that care for some moments
// only embed it.
type Pass struct{}

// Admit implements Hook.
func (Pass) Admit(context.Context, Moment) error { return nil }

// Dispatch implements Hook.
func (Pass) Dispatch(ctx context.Context, _ Moment) (context.Context, error) { return ctx, nil }

// Result implements Hook.
func (Pass) Result(context.Context, Moment) error { return nil }

// Observe implements Hook.
func (Pass) Observe(context.Context, Moment) {}
