package sandbox

import (
	"encoding/binary"
	"unicode/utf8"
)

// maxJSONDepth is how deeply arrays and objects may nest in text that crosses
// the boundary, as in encoding/json.
const maxJSONDepth = 10_000

// crosses reports whether b is JSON text in UTF-8 that can be handed to the VM
// and be believed from it: what encoding/json calls valid (RFC 8259), which takes
// ten times as long for long strings.
func crosses(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	s := jsonScanner{b: b}
	s.space()
	if !s.value() {
		return false
	}
	s.space()
	return s.p == len(b)
}

// jsonScanner walks over JSON text. It keeps the open arrays and objects itself:
// the text is a stranger's.
type jsonScanner struct {
	b    []byte
	p    int
	open []byte // ']' or '}' for each
}

func (s *jsonScanner) peek() byte {
	if s.p < len(s.b) {
		return s.b[s.p]
	}
	return 0
}

// take moves past c if it is next.
func (s *jsonScanner) take(c byte) bool {
	if s.peek() != c || s.p == len(s.b) {
		return false
	}
	s.p++
	return true
}

func (s *jsonScanner) space() {
	for s.p < len(s.b) {
		switch s.b[s.p] {
		case ' ', '\t', '\n', '\r':
			s.p++
		default:
			return
		}
	}
}

// value moves past one value, with all that is in it.
func (s *jsonScanner) value() bool {
	for {
		opened, ok := s.begin()
		if !ok {
			return false
		}
		for !opened {
			if len(s.open) == 0 {
				return true
			}
			s.space()
			end := s.open[len(s.open)-1]
			if s.take(',') {
				s.space()
				if end == '}' && !s.key() {
					return false
				}
				break
			}
			if !s.take(end) {
				return false
			}
			s.open = s.open[:len(s.open)-1]
		}
	}
}

// begin moves past a scalar or an empty container, or up to the first value of
// a container, which is opened then.
func (s *jsonScanner) begin() (opened, ok bool) {
	switch c := s.peek(); c {
	case '[', '{':
		if len(s.open) == maxJSONDepth {
			return false, false
		}
		s.p++
		s.space()
		end := c + 2 // ] and } in ASCII
		if s.take(end) {
			return false, true
		}
		s.open = append(s.open, end)
		return true, end == ']' || s.key()
	case '"':
		return false, s.str()
	case 't':
		return false, s.word("true")
	case 'f':
		return false, s.word("false")
	case 'n':
		return false, s.word("null")
	}
	return false, s.number()
}

// key moves past the name of a member and up to its value.
func (s *jsonScanner) key() bool {
	if !s.str() {
		return false
	}
	s.space()
	if !s.take(':') {
		return false
	}
	s.space()
	return true
}

func (s *jsonScanner) word(w string) bool {
	if len(s.b)-s.p < len(w) || string(s.b[s.p:s.p+len(w)]) != w {
		return false
	}
	s.p += len(w)
	return true
}

func (s *jsonScanner) digits() bool {
	from := s.p
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.p++
	}
	return s.p > from
}

func (s *jsonScanner) number() bool {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		return s.digits()
	}
	return true
}

// str moves past a string, eight plain bytes at a time.
func (s *jsonScanner) str() bool {
	if !s.take('"') {
		return false
	}
	for {
		for s.p+8 <= len(s.b) && plain(binary.LittleEndian.Uint64(s.b[s.p:])) {
			s.p += 8
		}
		switch c := s.peek(); {
		case c == '"':
			s.p++
			return true
		case c < ' ': // the end of the text, too
			return false
		case c == '\\':
			if !s.escape() {
				return false
			}
		default:
			s.p++
		}
	}
}

// plain reports whether none of the eight bytes needs attention in a string:
// none is below space, a quote or a backslash.
func plain(w uint64) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^ones*'"', w^ones*'\\'
	return ((w-ones*' ')&^w|(quote-ones)&^quote|(backslash-ones)&^backslash)&highs == 0
}

func (s *jsonScanner) escape() bool {
	s.p++
	c := s.peek()
	s.p++
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			c := s.peek()
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return false
			}
			s.p++
		}
		return true
	}
	return false
}
