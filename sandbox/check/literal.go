package check

import (
	"strings"
	"unicode/utf8"
)

// number reads a numeric literal, as strict code has it.
func (s *scanner) number() {
	start := s.p
	switch c := s.peek(1) | 0x20; {
	case s.peek(0) == '0' && (c == 'x' || c == 'o' || c == 'b'):
		s.p += 2
		base := map[byte]int{'x': 16, 'o': 8, 'b': 2}[c]
		s.digits(base, start)
		if s.peek(0) == 'n' {
			s.p++
		}
	case s.peek(0) == '0' && (isDigit(s.peek(1)) || s.peek(1) == '_'):
		syntaxError(start, "numbers with a leading zero are not allowed in strict code")
	default:
		s.decimal(start)
	}
	if r, _ := s.rune(); s.p < len(s.src) && (isNameStart(r) || r == '\\' || r >= '0' && r <= '9') {
		syntaxError(s.p, "unexpected character %q after a number", r)
	}
}

func (s *scanner) decimal(start int) {
	if s.peek(0) != '.' {
		s.digits(10, start)
		if s.peek(0) == 'n' {
			s.p++
			return
		}
	}
	if s.peek(0) == '.' {
		s.p++
		if isDigit(s.peek(0)) {
			s.digits(10, start)
		}
	}
	if s.peek(0)|0x20 == 'e' {
		s.p++
		if c := s.peek(0); c == '+' || c == '-' {
			s.p++
		}
		s.digits(10, start)
	}
}

// digits reads at least one digit, with single underscores between digits.
func (s *scanner) digits(base, start int) {
	n, last := 0, byte('_')
	for ; s.p < len(s.src); s.p++ {
		c := s.src[s.p]
		if c == '_' {
			if last == '_' {
				break
			}
		} else if d := hexValue(c); d < 0 || d >= base {
			break
		}
		last = c
		n++
	}
	if n == 0 || last == '_' {
		syntaxError(start, "bad number")
	}
}

// quoted reads a string literal and decodes it.
func (s *scanner) quoted(q byte) string {
	start := s.p
	s.p++
	var b strings.Builder
	for {
		if s.p >= len(s.src) {
			syntaxError(start, "the string has no end")
		}
		switch c := s.src[s.p]; c {
		case q:
			s.p++
			return b.String()
		case '\n', '\r':
			syntaxError(start, "the string has no end on its line")
		case '\\':
			at := s.p
			if !s.escape(&b) {
				syntaxError(at, "bad escape in a string")
			}
		default:
			b.WriteByte(c)
			s.p++
		}
	}
}

// escape reads a backslash and what belongs to it. It answers false, having
// read only what can be part of it, when strict code does not allow it.
func (s *scanner) escape(b *strings.Builder) bool {
	s.p++
	r, n := s.rune()
	if n == 0 {
		return false
	}
	s.p += n
	switch r {
	case 'x':
		v, ok := s.hex(2)
		b.WriteRune(v)
		return ok
	case 'u':
		v, ok := s.tryUnicodeEscape()
		b.WriteRune(v)
		return ok
	case '0':
		b.WriteByte(0)
		return !isDigit(s.peek(0))
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return false
	case '\r':
		if s.peek(0) == '\n' {
			s.p++
		}
	case '\n', '\u2028', '\u2029':
	default:
		if i := strings.IndexRune("nrtbvf", r); i >= 0 {
			r = rune("\n\r\t\b\v\f"[i])
		}
		b.WriteRune(r)
	}
	return true
}

// templatePiece reads up to ${ or the closing backquote into t.
func (s *scanner) templatePiece(t *token) {
	var b strings.Builder
	for {
		if s.p >= len(s.src) {
			syntaxError(t.pos, "the template has no end")
		}
		switch c := s.src[s.p]; {
		case c == '`':
			s.p++
			t.tail, t.text, t.end = true, b.String(), s.p
			return
		case c == '$' && s.peek(1) == '{':
			s.p += 2
			t.text, t.end = b.String(), s.p
			return
		case c == '\\':
			if !s.escape(&b) {
				t.invalid = true
			}
		default:
			b.WriteByte(c)
			s.p++
		}
	}
}

// regExp reads a regular expression whose first slash is at pos.
func (s *scanner) regExp(pos int) token {
	s.p = pos + 1
	class := false
	for {
		r, n := s.rune()
		if n == 0 || isLineEnd(r) {
			syntaxError(pos, "the regular expression has no end")
		}
		s.p += n
		switch {
		case r == '\\':
			r, n := s.rune()
			if n == 0 || isLineEnd(r) {
				syntaxError(pos, "the regular expression has no end")
			}
			s.p += n
		case r == '[':
			class = true
		case r == ']':
			class = false
		case r == '/' && !class:
			end := s.p - 1
			judgePattern(s.src[pos+1:end], pos+1, s.flags())
			return token{kind: tRegExp, pos: pos, end: s.p}
		}
	}
}

func (s *scanner) flags() string {
	seen := ""
	for s.p < len(s.src) {
		r, n := s.rune()
		if r != '\\' && !isNamePart(r) {
			return seen
		}
		if r >= utf8.RuneSelf || !strings.ContainsRune("dgimsuvy", r) || strings.ContainsRune(seen, r) || r == 'u' && strings.Contains(seen, "v") || r == 'v' && strings.Contains(seen, "u") {
			syntaxError(s.p, "bad flags of a regular expression")
		}
		seen += string(r)
		s.p += n
	}
	return seen
}
