package contract

import (
	"context"
	"errors"
)

// Stopped says why ctx is done, or nil while it is not: by the Fault that is its
// cause, if there is one. A deadline without a Fault has the reason late, and the
// message names what there was no more time for; anything else is Cancelled.
func Stopped(ctx context.Context, late Reason, what string) *Fault {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if f, ok := AsFault(cause); ok {
		return f
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return Faultf(late, "the time for the %s was over", what)
	}
	return Faultf(ReasonCancelled, "the execution was cancelled")
}
