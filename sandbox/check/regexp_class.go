package check

import (
	"strings"
	"unicode/utf16"
)

// escape reads what follows a backslash outside a class.
func (r *pattern) escape() {
	c := r.peek()
	switch {
	case c == 'k':
		at := r.p
		r.p++
		if !r.unicode && len(r.names) == 0 {
			return
		}
		if !r.eat("<") {
			r.bad("a name of a group is expected")
		}
		name, ok := r.groupName()
		if !ok {
			r.bad("bad name of a group")
		}
		r.refs = append(r.refs, reference{name, r.base + at})
	case c >= '1' && c <= '9':
		n, start := 0, r.p
		for isDigit(r.peek()) && n <= r.groups {
			n = n*10 + int(r.peek()-'0')
			r.p++
		}
		if r.unicode && n > r.groups {
			r.p = start
			r.bad("no such group")
		}
	default:
		r.character(false)
	}
}

// character reads an escape that may stand in a class, too. It answers the
// character, or -1 for a set of characters.
func (r *pattern) character(class bool) rune {
	start := r.p
	c := r.rune()
	switch c {
	case 'd', 'D', 's', 'S', 'w', 'W':
		return -1
	case 'p', 'P':
		if r.unicode {
			r.property()
			return -1
		}
	case 'b':
		if class {
			return '\b'
		}
	case 't', 'n', 'v', 'f', 'r':
		return rune("\t\n\v\f\r"[strings.IndexRune("tnvfr", c)])
	case 'c':
		return r.control(class)
	case 'x', 'u':
		return r.numbered(c)
	}
	if c >= '0' && c <= '9' {
		return r.octal(start)
	}
	if r.unicode && !strings.ContainsRune("^$\\.*+?()[]{}|/", c) && !(class && c == '-') {
		r.p = start
		r.bad("bad escape")
	}
	return c
}

// property reads {Name} or {Name=Value}.
func (r *pattern) property() {
	end := strings.IndexByte(r.src[r.p:], '}')
	if r.peek() != '{' || end < 2 {
		r.bad("a Unicode property is expected")
	}
	r.p += end + 1
}

func (r *pattern) control(class bool) rune {
	c := r.peek()
	if c|0x20 >= 'a' && c|0x20 <= 'z' || class && !r.unicode && (isDigit(c) || c == '_') {
		r.p++
		return rune(c % 32)
	}
	if r.unicode {
		r.bad("bad escape")
	}
	r.p-- // the backslash stands for itself, c follows
	return '\\'
}

// numbered reads what follows \x and \u.
func (r *pattern) numbered(kind rune) rune {
	s := &scanner{src: r.src, p: r.p}
	var v rune
	var ok bool
	switch {
	case kind == 'x':
		v, ok = s.hex(2)
	case r.unicode:
		v, ok = s.tryUnicodeEscape()
		if trail, isPair := s.trail(); ok && isPair && utf16.IsSurrogate(v) && s.src[r.p] != '{' {
			v = utf16.DecodeRune(v, trail)
		}
	default:
		v, ok = s.hex(4)
	}
	if ok {
		r.p = s.p
		return v
	}
	if r.unicode {
		r.bad("bad escape")
	}
	return kind
}

// trail reads \u and the second half of a surrogate pair, if that stands here.
func (s *scanner) trail() (rune, bool) {
	start := s.p
	if s.peek(0) == '\\' && s.peek(1) == 'u' {
		s.p += 2
		if v, ok := s.hex(4); ok && v >= 0xDC00 && v <= 0xDFFF {
			return v, true
		}
	}
	s.p = start
	return 0, false
}

// octal reads \0 and, outside Unicode mode, what else looks like an octal number.
func (r *pattern) octal(start int) rune {
	if r.unicode && (r.src[start] != '0' || isDigit(r.peek())) {
		r.p = start
		r.bad("bad escape")
	}
	v := rune(r.src[start] - '0')
	if v > 7 {
		return rune(r.src[start])
	}
	for n := 0; n < 2 && r.peek() >= '0' && r.peek() <= '7' && v*8 < 256; n++ {
		v = v*8 + rune(r.peek()-'0')
		r.p++
	}
	return v
}

// class reads the rest of [...].
func (r *pattern) class() {
	for !r.eat("]") {
		if r.p >= len(r.src) {
			r.bad("a class has no end")
		}
		start := r.p
		_, low := r.classAtom()
		if r.peek() != '-' || r.at(1) == ']' || r.at(1) == 0 {
			continue
		}
		r.p++
		high, _ := r.classAtom()
		if (low < 0 || high < 0) && r.unicode || low >= 0 && high >= 0 && low > high {
			r.p = start
			r.bad("the range is out of order")
		}
	}
}

// classAtom reads one element of a class and answers it as the end and as the
// beginning of a range: outside Unicode mode a character beyond the first 65,536
// is two elements.
func (r *pattern) classAtom() (end, begin rune) {
	if r.eat("\\") {
		c := r.character(true)
		return c, c
	}
	c := r.rune()
	if c > 0xFFFF && !r.unicode {
		return utf16.EncodeRune(c)
	}
	return c, c
}
