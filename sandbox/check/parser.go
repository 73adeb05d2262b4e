package check

import (
	"fmt"
	"unicode/utf8"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// maxDepth bounds the nesting of expressions, statements and patterns: a source
// of brackets must not use up the stack of the process that checks it. It is a
// little lower than what QuickJS compiles with the default stackBytes, so that
// both give the same verdict; people's programs stay far below.
const maxDepth = 1000

// problem is a reason to refuse the source, at a byte offset.
type problem struct {
	reason  contract.Reason
	pos     int
	message string
}

// syntaxError leaves the parser; Source catches it.
func syntaxError(pos int, format string, args ...any) {
	panic(problem{contract.ReasonSyntaxError, pos, fmt.Sprintf(format, args...)})
}

// parser reads one strict-mode script. It judges while it reads and keeps no
// tree but the expression at hand, which may turn out to be a pattern.
type parser struct {
	scanner
	tok   token
	prev  int // end of the token before tok
	depth int

	scope *scope
	fn    *function
	class *classScope

	// coverInit is where {a = 1}, or another thing that only a pattern may have,
	// stands in a literal that must become a pattern; -1 if there is none.
	coverInit    int
	coverMessage string

	restParam bool // the parameters read last end with a rest
	lastYield int  // where the last yield expression stands, or -1

	// forms are uses of syntax that is not offered, names are uses of names.
	forms, names problemList

	awaits     []int // uses of await as a name
	awaitBound bool  // the program itself declares await

	toolNames map[string]bool
	toolUses  int          // references to tools
	toolCalls int          // those of the form tools.call("name")
	toolSites map[int]Call // references to tools by their offset
	mainPlain bool
}

// problemList keeps the first of several problems.
type problemList struct{ first *problem }

func (l *problemList) add(pos int, format string, args ...any) {
	if l.first == nil || pos < l.first.pos {
		l.first = &problem{contract.ReasonProhibited, pos, fmt.Sprintf(format, args...)}
	}
}

func (p *parser) advance() {
	p.prev = p.tok.end
	p.tok = p.next()
}

// state is what a lookahead gives back.
type state struct {
	p         int
	lineStart bool
	tok       token
	prev      int
}

func (p *parser) save() state { return state{p.p, p.lineStart, p.tok, p.prev} }
func (p *parser) restore(st state) {
	p.p, p.lineStart, p.tok, p.prev = st.p, st.lineStart, st.tok, st.prev
}

// peekToken looks at the token after the current one.
func (p *parser) peekToken() token {
	st := p.save()
	defer p.restore(st)
	p.advance()
	return p.tok
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		syntaxError(p.tok.pos, "nested more than %d deep", maxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

func (t token) is(s string) bool { return t.kind == tPunct && t.text == s }

// word reports whether t is this keyword, contextual ones included.
func (t token) word(s string) bool { return t.kind == tName && !t.escaped && t.text == s }

func (p *parser) eat(s string) bool {
	if p.tok.is(s) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) eatWord(s string) bool {
	if p.tok.word(s) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) expect(s string) {
	if !p.eat(s) {
		p.unexpected("%q is expected", s)
	}
}

// unexpected refuses the current token.
func (p *parser) unexpected(wantFormat string, args ...any) {
	var got string
	switch t := p.tok; t.kind {
	case tEOF:
		got = "unexpected end of the source"
	case tName, tPunct:
		got = fmt.Sprintf("unexpected %q", t.text)
	case tPrivate:
		got = fmt.Sprintf("unexpected %q", "#"+t.text)
	case tNumber:
		got = "unexpected number"
	case tString:
		got = "unexpected string"
	case tTemplate:
		got = "unexpected template"
	default:
		got = "unexpected regular expression"
	}
	if wantFormat != "" {
		got += ", " + fmt.Sprintf(wantFormat, args...)
	}
	syntaxError(p.tok.pos, "%s", got)
}

// semicolon ends a statement, if need be by automatic insertion.
func (p *parser) semicolon() {
	if p.eat(";") || p.tok.is("}") || p.tok.kind == tEOF || p.tok.newline {
		return
	}
	p.unexpected("%q is expected", ";")
}

// reserved are the names that strict code does not allow as identifiers; await
// is one only in a module.
var reserved = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range []string{
		"break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete", "do", "else", "enum",
		"export", "extends", "false", "finally", "for", "function", "if", "import", "in", "instanceof", "new", "null",
		"return", "super", "switch", "this", "throw", "true", "try", "typeof", "var", "void", "while", "with",
		"implements", "interface", "let", "package", "private", "protected", "public", "static", "yield",
	} {
		m[w] = true
	}
	return m
}()

// isName reports whether t can be an identifier here.
func (p *parser) isName(t token) bool {
	return t.kind == tName && !reserved[t.text] && (t.text != "await" || !p.fn.async)
}

// identifier reads an identifier, which names a variable.
func (p *parser) identifier() token {
	t := p.tok
	if !p.isName(t) {
		p.unexpected("a name is expected")
	}
	p.variable(t)
	p.advance()
	return t
}

// variable judges the use of a name as a variable.
func (p *parser) variable(t token) {
	switch t.text {
	case "eval", "Promise", "WebAssembly", "console", "globalThis":
		p.names.add(t.pos, "%s is not available", t.text)
	case "await":
		p.awaits = append(p.awaits, t.pos)
	case "tools":
		p.toolUses++
		p.toolSites[t.pos] = Call{Dynamic: true}
	case "arguments":
		if p.fn.field {
			syntaxError(t.pos, "arguments is not allowed in a class field")
		}
	}
}

// bindingName reads the name that a declaration binds.
func (p *parser) bindingName() token {
	t := p.identifier()
	if t.text == "arguments" {
		syntaxError(t.pos, "arguments cannot be declared in strict code")
	}
	if t.text == "tools" {
		p.toolUses++ // what it shadows cannot be followed
		p.toolSites[t.pos] = Call{Dynamic: true}
	}
	return t
}

// position turns a byte offset into line and column, both from 1; columns count
// characters.
func position(src string, pos int) (line, column int) {
	line, start := 1, 0
	pos = min(pos, len(src))
	for i := range pos {
		if src[i] == '\n' {
			line++
			start = i + 1
		}
	}
	return line, utf8.RuneCountInString(src[start:pos]) + 1
}
