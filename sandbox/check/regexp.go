package check

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// pattern judges the pattern of one regular expression, as the language has it
// outside of and in Unicode mode. Names of Unicode properties are left to the
// engine.
type pattern struct {
	src     string
	base    int // offset of src in the source
	p       int
	unicode bool // flag u
	depth   int

	groups int             // capturing groups in all
	names  map[string]bool // of groups, in all
	refs   []reference
	seen   map[string]bool // names of the groups passed so far

	fold bool // flag i
	body body // what the group that is being read holds
}

type reference struct {
	name string
	pos  int
}

// judgePattern refuses a pattern that cannot be compiled. It begins at base in
// the source.
func judgePattern(src string, base int, flags string) {
	r := &pattern{src: src, base: base, names: map[string]bool{}, seen: map[string]bool{}}
	r.unicode = strings.Contains(flags, "u")
	r.fold = strings.Contains(flags, "i")
	if strings.Contains(flags, "v") {
		r.bad("the flag v is not available") // the engine matches wrongly with it
	}
	r.countGroups()
	r.alternatives()
	if r.p < len(r.src) {
		r.bad("unmatched )")
	}
	for _, ref := range r.refs {
		if !r.names[ref.name] {
			syntaxError(ref.pos, "bad regular expression: no group is named %s", ref.name)
		}
	}
}

func (r *pattern) bad(what string) { syntaxError(r.base+r.p, "bad regular expression: %s", what) }

func (r *pattern) peek() byte { return r.at(0) }

func (r *pattern) at(n int) byte {
	if r.p+n < len(r.src) {
		return r.src[r.p+n]
	}
	return 0
}

func (r *pattern) has(s string) bool { return strings.HasPrefix(r.src[r.p:], s) }

func (r *pattern) eat(s string) bool {
	if r.has(s) {
		r.p += len(s)
		return true
	}
	return false
}

func (r *pattern) rune() rune {
	c, n := utf8.DecodeRuneInString(r.src[r.p:])
	r.p += n
	return c
}

// countGroups looks ahead for the groups: what a backslash means depends on them.
func (r *pattern) countGroups() {
	class := false
	for r.p < len(r.src) {
		switch r.rune() {
		case '\\':
			r.rune()
		case '[':
			class = true
		case ']':
			class = false
		case '(':
			if class {
				continue
			}
			if r.peek() != '?' {
				r.groups++
			} else if r.has("?<") && r.at(2) != '=' && r.at(2) != '!' {
				r.groups++
				r.p += 2
				if name, ok := r.groupName(); ok {
					r.names[name] = true
				}
			}
		}
	}
	r.p = 0
}

// alternatives reads up to the closing parenthesis or the end.
func (r *pattern) alternatives() {
	if r.depth++; r.depth > maxDepth {
		r.bad("nested too deep")
	}
	for r.p < len(r.src) && r.peek() != ')' {
		if r.eat("|") {
			r.body.split = true
		} else {
			r.term()
		}
	}
	r.depth--
}

// term reads one assertion, or one atom with its quantifier.
func (r *pattern) term() {
	repeatable, start, inner := true, r.p, body{}
	switch c := r.peek(); c {
	case '^', '$':
		r.p++
		repeatable = false
	case '(':
		repeatable, inner = r.group()
	case '*', '+', '?':
		r.bad("nothing to repeat")
	case '{':
		if r.unicode || r.braces(false) {
			r.bad("nothing to repeat")
		}
		r.p++
	case '}', ']':
		if r.unicode {
			r.bad("a lone bracket")
		}
		r.p++
	case '[':
		r.p++
		r.class()
	case '\\':
		if n := r.at(1); n == 'b' || n == 'B' {
			r.p += 2
			repeatable = false
		} else {
			r.p++
			r.refuseCased()
			r.escape()
		}
	default:
		r.rune()
	}
	end := r.p
	r.quantifier(repeatable)
	r.repeated(start, inner, r.src[end:r.p])
}

func (r *pattern) quantifier(repeatable bool) {
	start := r.p
	switch c := r.peek(); {
	case c == '*' || c == '+' || c == '?':
		r.p++
	case c == '{' && r.braces(true):
	case c == '{' && r.unicode:
		r.bad("incomplete quantifier")
	default:
		return
	}
	if !repeatable {
		r.p = start
		r.bad("nothing to repeat")
	}
	r.eat("?")
}

// braces reports whether {n}, {n,} or {n,m} stands here, and reads it if asked.
func (r *pattern) braces(read bool) bool {
	start := r.p
	end := strings.IndexByte(r.src[r.p:], '}')
	if end < 0 {
		return false
	}
	low, high, ranged := strings.Cut(r.src[r.p+1:r.p+end], ",")
	if !allDigits(low) || low == "" || !allDigits(high) {
		return false
	}
	if read {
		n, _ := strconv.ParseUint(low, 10, 64) // out of range is the largest number
		if m, _ := strconv.ParseUint(high, 10, 64); ranged && high != "" && m < n {
			r.bad("the numbers of the quantifier are out of order")
		}
		r.p = start + end + 1
	}
	return true
}

func allDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

// group reads (...) and reports whether a quantifier may follow, and what the
// group holds.
func (r *pattern) group() (repeatable bool, inner body) {
	open, outer := r.p, r.body
	r.p++
	repeatable = true
	r.body = body{capturing: r.peek() != '?'}
	switch {
	case r.eat("?:"):
	case r.eat("?="), r.eat("?!"):
		repeatable = !r.unicode
	case r.eat("?<="), r.eat("?<!"):
		repeatable = false
	case r.eat("?<"):
		name, ok := r.groupName()
		if !ok {
			r.bad("bad name of a group")
		}
		if r.seen[name] {
			r.bad("the group " + name + " is defined twice")
		}
		r.seen[name] = true
		r.body.capturing = true
	case r.peek() == '?':
		r.bad("unknown kind of group") // QuickJS has no modifiers, such as (?i:
	}
	r.alternatives()
	if !r.eat(")") {
		r.p = open
		r.bad("a group has no end")
	}
	inner, r.body = r.body, outer
	return repeatable, inner
}

// groupName reads name> .
func (r *pattern) groupName() (string, bool) {
	end := strings.IndexByte(r.src[r.p:], '>')
	if end <= 0 {
		return "", false
	}
	s := &scanner{src: r.src[:r.p+end], p: r.p}
	var b strings.Builder
	for first := true; s.p < len(s.src); first = false {
		c, n := s.rune()
		s.p += n
		if c == '\\' {
			if s.peek(0) != 'u' {
				return "", false
			}
			s.p++
			var ok bool
			if c, ok = s.tryUnicodeEscape(); !ok {
				return "", false
			}
		}
		if first && !isNameStart(c) || !isNamePart(c) {
			return "", false
		}
		b.WriteRune(c)
	}
	r.p += end + 1
	return b.String(), true
}
