package protocol

import (
	"strings"
	"unicode/utf8"
)

// outcome says how the reading of a JSON text ended.
type outcome int8

const (
	// whole is text that is as it must be, up to the scanner's position.
	whole outcome = iota
	// broken is text that no continuation could make right.
	broken
	// cut is text that ends too early and has no mistake up to there.
	cut
)

// scanner reads strict JSON (RFC 8259, in UTF-8) out of a text that is not JSON
// as a whole. It keeps the open arrays and objects itself, so that nesting costs
// four bytes a level, and it remembers what it learned of every object inside
// another one, so that no text is gone over more than twice: see RATIONALE.md.
type scanner struct {
	text string
	pos  int
	// open are the containers that are not closed: the offset of the brace of an
	// object, the complement of the offset of the bracket of an array.
	open []int32
	// ends says of a brace where the object ends, or noObject, or 0 for not known.
	ends []int32
	// scanned counts the bytes gone over, so that a test can hold the bound.
	scanned int
}

const noObject = -1

func newScanner(text string) *scanner { return &scanner{text: text} }

// object reads the object that starts at the brace at. Where it is whole, end is
// the offset behind it.
func (s *scanner) object(at int) (end int, o outcome) {
	if s.ends == nil {
		s.ends = make([]int32, len(s.text))
	}
	switch e := s.ends[at]; {
	case e == noObject:
		return 0, broken // It ended together with one around it, and how is known.
	case e > 0:
		return int(e), whole
	}
	if o = s.value(at); o != whole {
		for _, p := range s.open {
			if p >= 0 {
				s.ends[p] = noObject
			}
		}
	}
	return s.pos, o
}

// value reads the value that starts at at, up to the scanner's position.
func (s *scanner) value(at int) outcome {
	s.pos, s.open = at, s.open[:0]
	defer func() { s.scanned += s.pos - at }()
	for {
		opened, o := s.begin()
		if o != whole {
			return o
		}
		for !opened {
			if len(s.open) == 0 {
				return whole
			}
			if opened, o = s.next(); o != whole {
				return o
			}
		}
	}
}

// begin moves past a scalar or an empty container, or up to the first value of a
// container, which is opened then.
func (s *scanner) begin() (opened bool, o outcome) {
	if s.pos == len(s.text) {
		return false, cut
	}
	switch c := s.text[s.pos]; c {
	case '{', '[':
		p := int32(s.pos)
		if c == '[' {
			p = ^p
		}
		s.open = append(s.open, p)
		s.pos++
		s.space()
		if s.at(c + 2) { // ] and } in ASCII
			s.close()
			return false, whole
		}
		if c == '[' {
			return true, whole
		}
		return true, s.key()
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

// next moves behind the end of a container, or up to its next value, and then
// opened is true.
func (s *scanner) next() (opened bool, o outcome) {
	s.space()
	array := s.open[len(s.open)-1] < 0
	switch {
	case s.pos == len(s.text):
		return false, cut
	case s.at(','):
		s.pos++
		s.space()
		if array {
			return true, whole
		}
		return true, s.key()
	case array && s.at(']'), !array && s.at('}'):
		s.close()
		return false, whole
	}
	return false, broken
}

// close moves behind the last container and remembers where it ends.
func (s *scanner) close() {
	s.pos++
	p := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	if p >= 0 && s.ends != nil {
		s.ends[p] = int32(s.pos)
	}
}

// key moves past the name of a member and up to its value.
func (s *scanner) key() outcome {
	if o := s.str(); o != whole {
		return o
	}
	s.space()
	if o := s.take(':'); o != whole {
		return o
	}
	s.space()
	return whole
}

func (s *scanner) at(c byte) bool { return s.pos < len(s.text) && s.text[s.pos] == c }

// take moves past c, which must be next.
func (s *scanner) take(c byte) outcome {
	switch {
	case s.pos == len(s.text):
		return cut
	case s.text[s.pos] != c:
		return broken
	}
	s.pos++
	return whole
}

func (s *scanner) space() {
	for s.at(' ') || s.at('\n') || s.at('\t') || s.at('\r') {
		s.pos++
	}
}

func (s *scanner) word(w string) outcome {
	for i := range len(w) {
		if o := s.take(w[i]); o != whole {
			return o
		}
	}
	return whole
}

// digits moves past one digit or more.
func (s *scanner) digits() outcome {
	from := s.pos
	for s.pos < len(s.text) && s.text[s.pos] >= '0' && s.text[s.pos] <= '9' {
		s.pos++
	}
	switch {
	case s.pos > from:
		return whole
	case s.pos == len(s.text):
		return cut
	}
	return broken
}

func (s *scanner) number() outcome {
	if s.at('-') {
		s.pos++
	}
	if s.at('0') {
		s.pos++
	} else if o := s.digits(); o != whole {
		return o
	}
	if s.at('.') {
		s.pos++
		if o := s.digits(); o != whole {
			return o
		}
	}
	if s.at('e') || s.at('E') {
		s.pos++
		if s.at('+') || s.at('-') {
			s.pos++
		}
		return s.digits()
	}
	return whole
}

func (s *scanner) str() outcome {
	if o := s.take('"'); o != whole {
		return o
	}
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; {
		case c == '"':
			s.pos++
			return whole
		case c < ' ':
			return broken
		case c == '\\':
			s.pos++
			if o := s.escape(); o != whole {
				return o
			}
		case c < utf8.RuneSelf:
			s.pos++
		default:
			r, n := utf8.DecodeRuneInString(s.text[s.pos:])
			if r == utf8.RuneError && n == 1 {
				if !utf8.FullRuneInString(s.text[s.pos:]) {
					return cut
				}
				return broken
			}
			s.pos += n
		}
	}
	return cut
}

// escape moves past what follows a backslash.
func (s *scanner) escape() outcome {
	if s.pos == len(s.text) {
		return cut
	}
	c := s.text[s.pos]
	if strings.IndexByte(`"\/bfnrt`, c) >= 0 {
		s.pos++
		return whole
	}
	if c != 'u' {
		return broken
	}
	s.pos++
	for range 4 {
		if s.pos == len(s.text) {
			return cut
		}
		if c := s.text[s.pos]; (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return broken
		}
		s.pos++
	}
	return whole
}
