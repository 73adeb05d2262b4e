// Package protocol is what an agent's run and its model say to each other in the
// protocol Code: the text that the model is given first, the texts that it is fed
// back, and the reading of its answers. It does nothing: every function is pure.
package protocol

import (
	"slices"
	"strings"
)

// Parse says what one answer of a model means: text is the answer, nil when there
// was none, and finishReason the endpoint's word for why it ended, "" for none.
//
// A text that as a whole is another JSON value than an object is refused. Else
// every brace is tried from left to right: a strict JSON object that starts there
// is taken as a whole, and reading goes on behind it. Exactly one of these objects
// must be a complete message; what stands around it is drift. What is no message
// is never an answer: it has Kind Error, and Why says what to tell the model.
//
// Time and memory are linear in the text, whatever it holds.
func Parse(text *string, finishReason string) Message {
	m := Message{Kind: Error, Why: WhyEmpty}
	if text != nil && !blank(*text) {
		m, _ = read(*text)
	}
	m.Cut = m.Cut || slices.Contains(cutWords, finishReason)
	m.Native = slices.Contains(nativeWords, finishReason)
	return m
}

// What endpoints call an end at a bound of tokens, and one by a tool call.
var (
	cutWords    = []string{"length", "max_tokens", "max_output_tokens"}
	nativeWords = []string{"tool_calls", "function_call", "tool_use"}
)

// read reads a text that is not blank; scanned is the work that it took.
func read(text string) (m Message, scanned int) {
	s := newScanner(text)
	m = s.read()
	return m, s.scanned
}

func (s *scanner) read() Message {
	if s.otherValue() {
		return Message{Kind: Error, Why: WhyNotAnObject}
	}
	// The least that is wrong is told: last is the last object that meant to be a
	// message, and the others say how near the text came to one.
	var found, last Message
	why := WhyNoMessage
	for at := 0; ; {
		next := strings.IndexByte(s.text[at:], '{')
		if next < 0 {
			break
		}
		at += next
		end, o := s.object(at)
		if o != whole {
			why = worse(why, o)
			at++
			continue
		}
		m := messageOf(s.text[at:end])
		switch {
		case m.Kind != Error && found.Kind != "":
			return Message{Kind: Error, Why: WhyAmbiguous}
		case m.Kind != Error:
			m.Drift = !blank(s.text[:at]) || !blank(s.text[end:])
			found = m
		case m.Why != WhyUnknownType || last.Kind == "":
			last = m
		}
		at = end
	}
	switch {
	case found.Kind != "":
		return found
	case last.Why == WhyUnknownType:
		// An object may be a piece of the program of a message that is not whole.
		last.Cut, last.Broken = why == WhyTruncated, why == WhyMalformed
		return last
	case last.Kind != "":
		return last
	}
	return Message{Kind: Error, Why: why}
}

// worse is what to tell after one more object that is not whole.
func worse(why Why, o outcome) Why {
	if o == cut || why == WhyTruncated {
		return WhyTruncated
	}
	return WhyMalformed
}

// otherValue reports whether the text is a JSON value that is no object.
func (s *scanner) otherValue() bool {
	trimmed := strings.TrimFunc(s.text, space)
	if trimmed[0] == '{' {
		return false
	}
	other := newScanner(trimmed)
	o := other.value(0)
	s.scanned += other.scanned
	return o == whole && other.pos == len(trimmed)
}
