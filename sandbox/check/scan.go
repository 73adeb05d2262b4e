package check

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	tEOF tokenKind = iota
	tName
	tPrivate
	tPunct
	tNumber
	tString
	tTemplate // one piece of a template
	tRegExp
)

// token is one lexical element of the source.
type token struct {
	kind    tokenKind
	pos     int    // of its first byte
	end     int    // after its last byte
	text    string // name or string with escapes decoded, punctuator, cooked template piece
	newline bool   // a line terminator stands before it
	escaped bool   // a name with an escape: never a keyword
	tail    bool   // the last piece of a template
	invalid bool   // a template piece with an escape that only a tag may have
}

// scanner cuts the source into tokens. It does not know whether a slash starts
// a regular expression or a brace continues a template: the parser asks for
// those again, from where they start.
type scanner struct {
	src string
	p   int
	// lineStart is true until the first token of a line: only there --> opens a comment.
	lineStart bool
}

func (s *scanner) peek(n int) byte {
	if s.p+n < len(s.src) {
		return s.src[s.p+n]
	}
	return 0
}

func (s *scanner) rune() (rune, int) {
	if s.p < len(s.src) && s.src[s.p] < utf8.RuneSelf {
		return rune(s.src[s.p]), 1
	}
	return utf8.DecodeRuneInString(s.src[s.p:])
}

func isLineEnd(r rune) bool { return r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' }

func isSpace(r rune) bool {
	return r == ' ' || r == '\t' || r == '\v' || r == '\f' || r == '\uFEFF' || r >= 0x80 && unicode.Is(unicode.Zs, r)
}

func isNameStart(r rune) bool {
	return r == '$' || r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
		r >= 0x80 && unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start)
}

func isNamePart(r rune) bool {
	return isNameStart(r) || r >= '0' && r <= '9' || r == '\u200c' || r == '\u200d' ||
		r >= 0x80 && unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)
}

// skipSpace moves to the next token and reports whether a line ended on the way.
func (s *scanner) skipSpace() (newline bool) {
	for s.p < len(s.src) {
		r, n := s.rune()
		switch {
		case isLineEnd(r):
			newline, s.lineStart = true, true
			s.p += n
		case isSpace(r):
			s.p += n
		case r == '/' && s.peek(1) == '/', r == '<' && strings.HasPrefix(s.src[s.p:], "<!--"),
			r == '-' && s.lineStart && strings.HasPrefix(s.src[s.p:], "-->"):
			s.skipLine()
		case r == '/' && s.peek(1) == '*':
			if s.skipBlock() {
				newline, s.lineStart = true, true
			}
		default:
			return newline
		}
	}
	return newline
}

func (s *scanner) skipLine() {
	for s.p < len(s.src) {
		r, n := s.rune()
		if isLineEnd(r) {
			return
		}
		s.p += n
	}
}

func (s *scanner) skipBlock() (newline bool) {
	i := strings.Index(s.src[s.p+2:], "*/")
	if i < 0 {
		syntaxError(s.p, "the comment has no end")
	}
	body := s.src[s.p+2 : s.p+2+i]
	s.p += i + 4
	return strings.ContainsAny(body, "\n\r\u2028\u2029")
}

// next reads one token; a slash is read as a punctuator.
func (s *scanner) next() token {
	t := token{newline: s.skipSpace()}
	t.pos = s.p
	s.lineStart = false
	if s.p >= len(s.src) {
		t.end = s.p
		return t
	}
	r, _ := s.rune()
	switch {
	case isNameStart(r) || r == '\\':
		t.kind = tName
		t.text, t.escaped = s.name()
	case r == '#':
		s.p++
		t.kind = tPrivate
		t.text, t.escaped = s.name()
	case r >= '0' && r <= '9' || r == '.' && isDigit(s.peek(1)):
		t.kind = tNumber
		s.number()
	case r == '"' || r == '\'':
		t.kind = tString
		t.text = s.quoted(byte(r))
	case r == '`':
		t.kind = tTemplate
		s.p++
		s.templatePiece(&t)
	default:
		t.kind = tPunct
		t.text = s.punctuator()
	}
	t.end = s.p
	return t
}

// name reads an identifier name and decodes its escapes.
func (s *scanner) name() (string, bool) {
	start, escaped := s.p, false
	for s.p < len(s.src) && asciiName[s.src[s.p]] && (s.p > start || !isDigit(s.src[s.p])) {
		s.p++
	}
	if s.p > start && (s.p == len(s.src) || s.src[s.p] < utf8.RuneSelf && s.src[s.p] != '\\') {
		return s.src[start:s.p], false
	}
	s.p = start
	var b strings.Builder
	for first := true; s.p < len(s.src); first = false {
		at := s.p
		r, n := s.rune()
		if r == '\\' {
			s.p++
			if s.peek(0) != 'u' {
				syntaxError(at, "unexpected character \\")
			}
			s.p++
			r = s.unicodeEscape(at)
			escaped = true
			if first && !isNameStart(r) || !isNamePart(r) {
				syntaxError(at, "the escape is no part of a name")
			}
		} else {
			if first && !isNameStart(r) || !first && !isNamePart(r) {
				break
			}
			s.p += n
		}
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		syntaxError(start, "a name is expected")
	}
	return b.String(), escaped
}

// asciiName marks the bytes of a plain name.
var asciiName = func() (t [256]bool) {
	for c := range utf8.RuneSelf {
		t[c] = isNamePart(rune(c))
	}
	return t
}()

// unicodeEscape reads what follows \u.
func (s *scanner) unicodeEscape(at int) rune {
	v, ok := s.tryUnicodeEscape()
	if !ok {
		syntaxError(at, "bad Unicode escape")
	}
	return v
}

func (s *scanner) tryUnicodeEscape() (rune, bool) {
	if s.peek(0) != '{' {
		return s.hex(4)
	}
	s.p++
	v, digits := rune(0), 0
	for ; hexValue(s.peek(0)) >= 0; s.p++ {
		if v = v*16 + rune(hexValue(s.peek(0))); v > unicode.MaxRune {
			return 0, false
		}
		digits++
	}
	if digits == 0 || s.peek(0) != '}' {
		return 0, false
	}
	s.p++
	return v, true
}

func (s *scanner) hex(n int) (rune, bool) {
	v := rune(0)
	for range n {
		d := hexValue(s.peek(0))
		if d < 0 {
			return 0, false
		}
		v = v*16 + rune(d)
		s.p++
	}
	return v, true
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// punctuators, longest first.
var punctuators = []string{
	">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=",
	"=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", ">>", "**",
	"{", "}", "(", ")", "[", "]", ".", ";", ",", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "!", "~", "?", ":", "=", "@",
}

// punctuatorsBy lists them by their first byte.
var punctuatorsBy = func() (by [utf8.RuneSelf][]string) {
	for _, p := range punctuators {
		by[p[0]] = append(by[p[0]], p)
	}
	return by
}()

func (s *scanner) punctuator() string {
	for _, p := range punctuatorsBy[s.peek(0)%utf8.RuneSelf] {
		if strings.HasPrefix(s.src[s.p:], p) {
			if p == "?." && isDigit(s.peek(2)) { // a?.5:b
				p = "?"
			}
			s.p += len(p)
			return p
		}
	}
	r, _ := s.rune()
	syntaxError(s.p, "unexpected character %q", r)
	return ""
}
