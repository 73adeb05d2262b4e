package sandbox

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// failure is an exception as the prelude describes it.
type failure struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	Stack   string `json:"stack"`
}

// describeFailure makes the fault of an exception. Nothing in the text can
// change the reason.
func describeFailure(text []byte, reason contract.Reason) *contract.Fault {
	var f failure
	if err := json.Unmarshal(text, &f); err != nil {
		return contract.Faultf(contract.ReasonWorkerLost, "an exception could not be read")
	}
	message := f.Message
	switch {
	case f.Name != "" && message != "" && f.Name != string(reason): // SyntaxError is both
		message = f.Name + ": " + message
	case message == "":
		message = f.Name
	}
	message = oneLine(message)
	places := placesOf(f.Stack)
	if len(places) == 0 {
		return contract.Faultf(reason, "%s", message)
	}
	at := places[0]
	known := at.exact || !vague.MatchString(f.Message)
	fault := contract.Faultf(reason, "%s", message).At(at.line, 0)
	if !known {
		message = contract.Truncate(message, contract.MaxMessageBytes-100)
		fault = contract.Faultf(reason, "%s (in %s, at or after line %d)", message, at.function, at.line)
	}
	if len(places) > 1 {
		fault.Stack = frames(places, known)
	}
	return fault
}

// oneLine makes a program's text one line that can be shown: a fault's message
// goes into conditions, events and terminals.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
}

// vague matches what the interpreter itself throws for operations whose place it
// does not record: the line in the stack is that of an operation before.
var vague = regexp.MustCompile(`^(cannot (read|set) property|Cannot convert |cannot convert |cannot define |invalid '|value is not iterable|` +
	`parent class must be|operand 'prototype'|object is not extensible|no setter for|could not delete|BigInt negative|division by zero)` +
	`|( is not defined| is not initialized|' is read-only)$`)

// place is a line of the program in an error's stack.
type place struct {
	function string
	line     int
	exact    bool // the program called a built-in function there, which threw
}

var frame = regexp.MustCompile(`^ +at (.{1,64}) \(` + regexp.QuoteMeta(sourceName) + `:(\d{1,6}):\d{1,6}\)$`)

// placesOf finds the frames of the program, the innermost first. The stack is
// text that the program may have written itself; it can only mislead about a
// line.
func placesOf(stack string) []place {
	var out []place
	for i, text := range strings.Split(stack, "\n") {
		m := frame.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		line, err := strconv.Atoi(m[2])
		if err != nil {
			continue
		}
		name := m[1]
		switch {
		case name == "<eval>":
			name = "the top level"
		case !identifier.MatchString(name):
			name = "a function"
		}
		out = append(out, place{function: name, line: line, exact: i > 0})
		if len(out) == contract.MaxStackFrames {
			break
		}
	}
	return out
}

// identifier is what is shown as a function's name: the program chooses it.
var identifier = regexp.MustCompile(`^[\p{L}\p{N}_$#.]+( [\p{L}\p{N}_$#.]+)?$`)

// frames writes places as contract.Fault has them. Those below the innermost are
// calls, whose lines are right.
func frames(places []place, known bool) []string {
	var out []string
	for i, p := range places {
		where := sourceName
		if i > 0 || known {
			where += ":" + strconv.Itoa(p.line)
		}
		out = append(out, contract.Truncate(p.function, contract.MaxFrameBytes-len(where)-3)+" ("+where+")")
	}
	return out
}
