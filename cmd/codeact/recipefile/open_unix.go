//go:build unix

package recipefile

import (
	"os"
	"syscall"
)

// reading opens a file so that a pipe, should it have become one since it was looked
// at, does not wait for a writer.
const reading = os.O_RDONLY | syscall.O_NONBLOCK
