//go:build linux && !sandbox_gomem

package sandbox

import "time"

// overshoot is how long after its deadline a hostile program may end.
const overshoot = 250 * time.Millisecond
