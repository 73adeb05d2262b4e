//go:build !linux || sandbox_gomem

package sandbox

import "time"

// overshoot is how long after its deadline a hostile program may end. Memory on
// the Go heap grows by copying, which nothing can interrupt.
const overshoot = time.Second
