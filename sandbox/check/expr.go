package check

// kind says what an expression is, as far as something depends on it.
type kind int

const (
	other     kind = iota
	ident          // name
	member         // a.name, a[...], a.#name
	call           // f(...)
	optional       // a?.b and what is chained to it
	str            // string literal or template without substitution, name is its value
	array          // kids are elements, nil for a hole
	object         // kids are properties
	assigned       // kids are the target and the value of =
	spread         // kids[0]
	arrowHead      // (a, b) before =>, kids are the parameters
	property       // kids[0] is the value; shorthand properties may have a default in kids[1]
	method         // a method or accessor of an object literal
	logical        // a || b, a && b
	coalesce       // a ?? b
)

// expr is an expression, or a property of an object literal.
type expr struct {
	kind  kind
	pos   int
	name  string // of ident, of a member with a dot, of a str
	base  string // of a member: the name of its object, if that is an ident
	ref   int    // of an ident, and of a member of one: where the ident itself stands
	paren bool
	comma bool // an array or parameter list ends with a comma, or a spread is followed by one
	kids  []*expr
}

// expression reads assignment expressions separated by commas.
func (p *parser) expression() *expr {
	e := p.assign(true)
	for p.eat(",") {
		pos := e.pos
		p.assign(true)
		e = &expr{kind: other, pos: pos}
	}
	return e
}

// assign reads one assignment expression; in says whether the operator in is
// part of it, which it is not in the head of a for.
func (p *parser) assign(in bool) *expr {
	outer := p.coverInit
	p.coverInit = -1
	e := p.maybePattern(in)
	p.noCover()
	p.coverInit = outer
	return e
}

func (p *parser) noCover() {
	if p.coverInit >= 0 {
		syntaxError(p.coverInit, "%s", p.coverMessage)
	}
}

// maybePattern reads one assignment expression that may become a pattern:
// coverInit is left set if it must.
func (p *parser) maybePattern(in bool) *expr {
	p.enter()
	defer p.leave()
	if p.tok.word("yield") && p.fn.generator {
		return p.yield(in)
	}
	start := p.tok
	outer := p.coverInit
	p.coverInit = -1
	e := p.conditional(in)
	switch {
	case p.tok.is("=>") && !p.tok.newline && (e.kind == arrowHead || e.kind == ident && !e.paren && e.pos == start.pos):
		p.coverInit = -1
		if e.kind == ident {
			e = &expr{kind: arrowHead, pos: e.pos, kids: []*expr{e}}
		}
		e = p.arrow(e, in, false)
	case p.tok.kind == tPunct && assignOps[p.tok.text]:
		e = p.assignment(e, in)
	}
	if e.kind != array && e.kind != object && e.kind != assigned {
		p.noCover()
	}
	if p.coverInit < 0 {
		p.coverInit = outer
	}
	return e
}

var assignOps = map[string]bool{
	"=": true, "+=": true, "-=": true, "*=": true, "/=": true, "%=": true, "**=": true, "<<=": true, ">>=": true, ">>>=": true,
	"&=": true, "|=": true, "^=": true, "&&=": true, "||=": true, "??=": true,
}

func (p *parser) assignment(target *expr, in bool) *expr {
	op := p.tok.text
	if op == "=" && !target.paren && (target.kind == array || target.kind == object) {
		p.coverInit = -1
		p.toPattern(target, false, declVar)
	} else {
		p.noCover()
		p.simpleTarget(target)
	}
	p.advance()
	value := p.assign(in)
	if op != "=" {
		return &expr{kind: other, pos: target.pos}
	}
	return &expr{kind: assigned, pos: target.pos, kids: []*expr{target, value}}
}

// simpleTarget refuses what cannot be assigned to.
func (p *parser) simpleTarget(e *expr) {
	switch {
	case e.kind == member:
	case e.kind == ident && e.name != "arguments":
	case e.kind == ident:
		syntaxError(e.pos, "%s cannot be assigned to in strict code", e.name)
	default:
		syntaxError(e.pos, "this cannot be assigned to")
	}
}

func (p *parser) yield(in bool) *expr {
	pos := p.tok.pos
	p.lastYield = pos
	p.advance()
	if p.tok.newline {
		return &expr{kind: other, pos: pos}
	}
	if p.eat("*") {
		p.assign(in)
		return &expr{kind: other, pos: pos}
	}
	switch t := p.tok; {
	case t.kind == tEOF, t.is(")"), t.is("]"), t.is("}"), t.is(","), t.is(";"), t.is(":"), t.word("in"), t.word("of"):
	default:
		p.assign(in)
	}
	return &expr{kind: other, pos: pos}
}

func (p *parser) conditional(in bool) *expr {
	e := p.binary(in, 0)
	if e.kind == arrowHead || !p.tok.is("?") {
		return e
	}
	p.noCover()
	p.advance()
	p.assign(true)
	p.expect(":")
	p.assign(in)
	return &expr{kind: other, pos: e.pos}
}

// precedence of the binary operators; ?? stands beside ||.
var precedence = map[string]int{
	"??": 1, "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "===": 6, "!==": 6,
	"<": 7, ">": 7, "<=": 7, ">=": 7, "instanceof": 7, "in": 7, "<<": 8, ">>": 8, ">>>": 8,
	"+": 9, "-": 9, "*": 10, "/": 10, "%": 10, "**": 11,
}

func (p *parser) operator(in bool) (string, int) {
	t := p.tok
	if t.kind == tPunct || t.kind == tName && !t.escaped && (t.text == "instanceof" || t.text == "in" && in) {
		return t.text, precedence[t.text]
	}
	return "", 0
}

// binary reads operands whose operators bind tighter than low.
func (p *parser) binary(in bool, low int) *expr {
	e := p.leftOperand(in, low)
	for e.kind != arrowHead {
		op, prec := p.operator(in)
		if prec == 0 || prec <= low {
			return e
		}
		p.noCover()
		p.advance()
		below := prec
		if op == "**" {
			below-- // right-associative
		}
		p.enter() // only ** nests this way, but a uniform count is simpler
		right := p.binary(in, below)
		p.leave()
		next := &expr{kind: other, pos: e.pos}
		switch op {
		case "||", "&&":
			next.kind = logical
		case "??":
			next.kind = coalesce
		}
		for _, x := range []*expr{e, right} {
			if next.kind == coalesce && x.kind == logical && !x.paren || op == "||" && x.kind == coalesce && !x.paren {
				syntaxError(x.pos, "?? needs parentheses beside || and &&")
			}
		}
		e = next
	}
	return e
}

// leftOperand reads the first operand: #x in object, or a unary expression.
func (p *parser) leftOperand(in bool, low int) *expr {
	if p.tok.kind != tPrivate {
		return p.unary()
	}
	t := p.tok
	p.advance()
	if !p.tok.word("in") || !in || low >= precedence["in"] {
		p.unexpected("a private name stands alone only before in")
	}
	p.usePrivate(t)
	return &expr{kind: other, pos: t.pos}
}

func (p *parser) unary() *expr {
	t := p.tok
	switch {
	case t.is("++") || t.is("--"):
		e := p.operand()
		p.simpleTarget(e)
		return &expr{kind: other, pos: t.pos}
	case t.is("+") || t.is("-") || t.is("!") || t.is("~") || t.word("typeof") || t.word("void") || t.word("delete"):
		e := p.operand()
		if t.text == "delete" && e.kind == ident {
			syntaxError(t.pos, "a variable cannot be deleted in strict code")
		}
		if t.text == "delete" && e.kind == member && e.name != "" && e.name[0] == '#' {
			syntaxError(t.pos, "a private name cannot be deleted")
		}
		return p.noPower(t.pos)
	case p.isAwait():
		p.forms.add(t.pos, "await is not available; tools.call answers directly")
		p.operand()
		return p.noPower(t.pos)
	}
	return p.postfixed(p.primaryChain())
}

// operand moves past a unary operator and reads what it applies to.
func (p *parser) operand() *expr {
	p.enter()
	defer p.leave()
	p.advance()
	e := p.unary()
	p.noCover()
	return e
}

func (p *parser) noPower(pos int) *expr {
	if p.tok.is("**") {
		syntaxError(pos, "a unary operator before ** needs parentheses")
	}
	return &expr{kind: other, pos: pos}
}

func (p *parser) postfixed(e *expr) *expr {
	if (p.tok.is("++") || p.tok.is("--")) && !p.tok.newline {
		p.noCover()
		p.simpleTarget(e)
		p.advance()
		return &expr{kind: other, pos: e.pos}
	}
	return e
}

// isAwait reports whether the current token begins an await expression: always
// in an async function; elsewhere await is a name, but a name that an operand
// follows on its line can only be meant as one.
func (p *parser) isAwait() bool {
	if !p.tok.word("await") {
		return false
	}
	if p.fn.async {
		return true
	}
	n := p.peekToken()
	if n.newline {
		return false
	}
	switch n.kind {
	case tName:
		return n.escaped || n.text != "in" && n.text != "instanceof" && n.text != "of"
	case tNumber, tString, tPrivate:
		return true
	default:
		return n.is("{") || n.is("!") || n.is("~")
	}
}
