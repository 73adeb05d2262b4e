// Package suite holds the programs that every subject runs, and the measures
// that are taken of it. It has no dependency, so that modules which cannot
// share one build list can share it.
package suite

import (
	"embed"
	"errors"
	"fmt"
	"strings"
)

// Subject is one way to run JavaScript. It is safe for concurrent use.
type Subject interface {
	// Fresh makes a runtime with Host's function in it, and closes it.
	Fresh() error
	// Run makes a runtime, runs the program in it with the input, which is JSON
	// text, closes it, and answers the JSON text of what main returned. A
	// subject without a tools.call of its own runs Wrap(source).
	Run(source, input string) (string, error)
}

// ErrUnsupported says that a subject cannot be measured so.
var ErrUnsupported = errors.New("not supported by this subject")

// Host is the tool that programs call: it answers with its arguments, both as
// JSON text.
func Host(_, args string) string { return args }

// Wrap gives a program what the sandbox has by itself: tools.call, by way of
// the global function hostCall, and run, which takes and answers JSON text.
func Wrap(source string) string {
	return source + `
const tools = { call: (name, args) => JSON.parse(hostCall(name, JSON.stringify(args))) };
function run(input) { return JSON.stringify(main(JSON.parse(input))); }
`
}

//go:embed programs/*.js
var files embed.FS

// Compute names the programs that compute. Each takes some 20 to 60 ms in the
// sandbox, so that a fresh runtime does not count.
var Compute = []string{"fib", "sieve", "json", "join", "sort", "regex", "mapset", "mapint", "classes"}

// Source is the text of a program.
func Source(name string) string {
	b, err := files.ReadFile("programs/" + name + ".js")
	if err != nil {
		panic(err) // a name in this package is wrong
	}
	return string(b)
}

// Want is the JSON text that a program returns for the input null. It is the
// first line of the program.
func Want(name string) string {
	line, _, _ := strings.Cut(Source(name), "\n")
	want, ok := strings.CutPrefix(line, "// want: ")
	if !ok {
		panic(name + ".js has no wanted value in its first line")
	}
	return want
}

// check runs a program once and compares its value.
func check(s Subject, name string) error {
	got, err := s.Run(Source(name), "null")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if want := Want(name); got != want {
		return fmt.Errorf("%s returned %s, want %s", name, got, want)
	}
	return nil
}

// call has a program call the tool that often with about that many bytes.
func call(s Subject, calls, bytes int, rows bool) error {
	got, err := s.Run(Source("call"), fmt.Sprintf(`{"calls":%d,"bytes":%d,"rows":%t}`, calls, bytes, rows))
	if err == nil && got != fmt.Sprint(calls) {
		err = fmt.Errorf("%d calls of %d bytes returned %s", calls, bytes, got)
	}
	return err
}
