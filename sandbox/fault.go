package sandbox

import (
	"context"
	"errors"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// What ends the VM from outside JavaScript. Each reaches wazero as a panic and
// comes back as an error in the chain of what the call returned.
var (
	errHeap    = errors.New("heap limit")
	errStopped = errors.New("stopped by the context")
	errFuel    = errors.New("fuel limit")
	errTooLong = errors.New("string longer than its limit")
)

// terminal ends the execution with its fault; guest code cannot catch it.
type terminal struct{ fault *contract.Fault }

func (t *terminal) Error() string { return t.fault.Error() }

const outOfFuel = "the program needs more than limits.fuel"

// OutOfFuel reports whether a Timeout is one of limits.fuel, which the same program
// meets again at the same place, and not one of a clock.
func OutOfFuel(f *contract.Fault) bool {
	return f != nil && f.Reason == contract.ReasonTimeout && strings.HasPrefix(f.Message, outOfFuel)
}

// faultOf turns an error of the VM into the one fault that it means.
func (x *execution) faultOf(err error) *contract.Fault {
	var t *terminal
	switch {
	case errors.As(err, &t):
		return t.fault
	case errors.Is(err, errHeap):
		return contract.Faultf(contract.ReasonHeapExhausted, "the program needs more memory than limits.heapBytes, %d bytes", x.limits.HeapBytes)
	case errors.Is(err, errFuel):
		return contract.Faultf(contract.ReasonTimeout, "%s, %d units", outOfFuel, x.limits.Fuel)
	case errors.Is(err, errStopped):
		return stopFault(x.parent, x.ctx)
	case x.in != nil && x.in.overran(), strings.HasPrefix(err.Error(), "wasm error: stack overflow"):
		return contract.Faultf(contract.ReasonStackExhausted, "the program recurses deeper than limits.stackBytes, %d bytes, allow", x.limits.StackBytes)
	}
	return contract.Faultf(contract.ReasonWorkerLost, "the JavaScript engine stopped unexpectedly: %s", cleanly(err))
}

// stopFault says why ctx is done, or nil if it is not. It is the execution's own
// context, which a timer ends, below parent, which the caller ends.
func stopFault(parent, ctx context.Context) *contract.Fault {
	var own, theirs *contract.Fault
	if ctx.Err() != nil {
		own, _ = contract.AsFault(context.Cause(ctx))
	}
	if parent.Err() != nil {
		cause := context.Cause(parent)
		switch f, ok := contract.AsFault(cause); {
		case ok:
			theirs = f
		case errors.Is(cause, context.DeadlineExceeded):
			theirs = contract.Faultf(contract.ReasonTimeout, "the time for the run was over")
		default:
			theirs = contract.Faultf(contract.ReasonCancelled, "the execution was cancelled")
		}
	}
	return contract.Worst(theirs, own)
}

// recoveredByWazero marks a panic that wazero turned into an error.
const recoveredByWazero = "(recovered by wazero)"

// cleanly describes an unexpected error in one line: a trap by its name, without
// the stack. The text of any other panic is not shown; it may hold anything.
func cleanly(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	switch {
	case errors.Is(err, errForged):
		return errForged.Error()
	case errors.Is(err, errExit):
		return errExit.Error()
	case strings.HasPrefix(text, "wasm error: "), !strings.Contains(err.Error(), recoveredByWazero):
		return contract.Truncate(strings.TrimSuffix(text, " "+recoveredByWazero), 200)
	}
	return "internal panic"
}
