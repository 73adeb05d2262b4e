package report

import (
	"context"
	"math/rand/v2"
	"time"
)

const maxWait = 2 * time.Second

// backoff waits between two attempts: longer each time, never in step with
// other pods.
type backoff struct {
	next time.Duration
	max  time.Duration // maxWait if it is 0
}

// wait reports whether to try again; it answers false as soon as ctx is done.
func (b *backoff) wait(ctx context.Context) bool {
	d := b.next/2 + rand.N(b.next/2+1)
	longest := b.max
	if longest == 0 {
		longest = maxWait
	}
	b.next = min(b.next*2, longest)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
