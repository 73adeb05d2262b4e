//go:build !unix

package recipefile

import "os"

// reading opens a file. Where there are no named pipes in folders, nothing waits.
const reading = os.O_RDONLY
