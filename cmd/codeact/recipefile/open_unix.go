//go:build unix

package recipefile

import "syscall"

// withoutWait opens a pipe without waiting for somebody at its other end.
const withoutWait = syscall.O_NONBLOCK
