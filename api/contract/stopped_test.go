package contract

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStopped(t *testing.T) {
	own := Faultf(ReasonDeadlineExceeded, "the run took too long")
	cancelled := func(cause error) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(cause)
			return ctx
		}
	}
	late := func(cause error) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context {
			ctx, cancel := context.WithDeadlineCause(ctx, time.Unix(0, 0), cause)
			t.Cleanup(cancel)
			return ctx
		}
	}
	tests := map[string]struct {
		of   func(context.Context) context.Context
		want *Fault
	}{
		"not at all":                 {of: func(ctx context.Context) context.Context { return ctx }},
		"cancelled":                  {of: cancelled(nil), want: Faultf(ReasonCancelled, "the execution was cancelled")},
		"cancelled by an error":      {of: cancelled(errors.New("secret")), want: Faultf(ReasonCancelled, "the execution was cancelled")},
		"cancelled by a fault":       {of: cancelled(fmt.Errorf("pod: %w", own)), want: own},
		"late":                       {of: late(nil), want: Faultf(ReasonTimeout, "the time for the program was over")},
		"late, with a fault for why": {of: late(own), want: own},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, Stopped(tc.of(t.Context()), ReasonTimeout, "program")); d != "" {
				t.Error(d)
			}
		})
	}
}
