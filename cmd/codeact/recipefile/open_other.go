//go:build !unix

package recipefile

// withoutWait is nothing where no path of a folder opens a pipe.
const withoutWait = 0
