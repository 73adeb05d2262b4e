package check

// memberHead is what stands before the parameters or the value of a property
// or class element.
type memberHead struct {
	key       token // a name or string, if not computed
	computed  bool
	private   bool
	async     bool
	generator bool
	accessor  string // "get", "set" or ""
}

// special reports whether only a method can follow.
func (m memberHead) special() bool { return m.async || m.generator || m.accessor != "" }

// memberHead reads async, *, get, set and the key.
func (p *parser) memberHead() memberHead {
	var m memberHead
	if p.tok.word("async") {
		if n := p.peekToken(); !n.newline && p.beginsKey(n, true) {
			p.forms.add(p.tok.pos, "async functions are not available; tools.call answers directly")
			m.async = true
			p.advance()
		}
	}
	if p.eat("*") {
		m.generator = true
	}
	if !m.special() && (p.tok.word("get") || p.tok.word("set")) && p.beginsKey(p.peekToken(), false) {
		m.accessor = p.tok.text
		p.advance()
	}
	m.key = p.tok
	if p.tok.kind == tPrivate {
		m.private = true
		p.advance()
		return m
	}
	m.computed = p.propertyName()
	return m
}

// beginsKey reports whether t can begin the key of a property.
func (p *parser) beginsKey(t token, star bool) bool {
	switch t.kind {
	case tName, tString, tNumber, tPrivate:
		return true
	default:
		return t.is("[") || star && t.is("*")
	}
}

// methodRest reads the parameters and the body of a method or accessor.
func (p *parser) methodRest(m memberHead, f function) {
	f.async, f.generator = m.async, m.generator
	p.pushFunction(f)
	p.pushScope(true)
	pos := p.tok.pos
	n, simple := p.parameters()
	if m.accessor == "get" && n != 0 {
		syntaxError(pos, "a getter has no parameters")
	}
	if m.accessor == "set" && (n != 1 || p.restParam) {
		syntaxError(pos, "a setter has one parameter")
	}
	p.functionBody(simple)
	p.popScope()
	p.popFunction()
}

// parameters reads (...) and answers how many there are and whether all are
// plain names; restParam says whether the last one is a rest.
func (p *parser) parameters() (n int, simple bool) {
	pos := p.tok.pos
	p.expect("(")
	simple = true
	rest := false
	for !p.tok.is(")") {
		n++
		if p.eat("...") {
			rest, simple = true, false
			p.bindingTarget(declParam)
			break
		}
		simple = p.bindingElement(declParam) && simple
		if !p.tok.is(")") {
			p.expect(",")
		}
	}
	p.expect(")")
	if p.lastYield >= pos {
		syntaxError(p.lastYield, "yield is not allowed in parameters")
	}
	p.restParam = rest
	return n, simple
}

// functionBody reads {...} with its directives.
func (p *parser) functionBody(simpleParams bool) {
	p.expect("{")
	p.directives(simpleParams)
	for !p.tok.is("}") {
		p.statement(true)
	}
	p.expect("}")
}

// directives reads the strings at the start of a script or function.
func (p *parser) directives(simpleParams bool) {
	for p.tok.kind == tString {
		t := p.tok
		n := p.peekToken()
		if !(n.is(";") || n.is("}") || n.kind == tEOF || n.newline && !continues(n)) {
			return
		}
		if raw := p.src[t.pos+1 : t.end-1]; raw == "use strict" && !simpleParams {
			syntaxError(t.pos, `"use strict" is not allowed with these parameters`)
		}
		p.advance()
		p.semicolon()
	}
}

// continues reports whether a token on the next line continues an expression.
func continues(t token) bool {
	switch t.kind {
	case tPunct:
		return !t.is("{") && !t.is("}") && !t.is(";") && !t.is("++") && !t.is("--") && !t.is("!") && !t.is("~")
	case tName:
		return t.word("in") || t.word("instanceof")
	default:
		return t.kind == tTemplate
	}
}

// functionRest reads what follows the name of a function.
func (p *parser) functionRest(async, generator bool) {
	p.pushFunction(function{async: async, generator: generator, returns: true, newTarget: true})
	p.pushScope(true)
	_, simple := p.parameters()
	p.functionBody(simple)
	p.popScope()
	p.popFunction()
}

// functionExpression reads a function that is part of an expression.
func (p *parser) functionExpression(async bool) {
	p.advance() // function
	generator := p.eat("*")
	if !p.tok.is("(") {
		// The name belongs to the function itself: await and yield follow its kind.
		p.pushFunction(function{async: async, generator: generator})
		t := p.bindingName()
		p.popFunction()
		if t.text == "await" {
			p.awaitBound = true
		}
	}
	p.functionRest(async, generator)
}

// functionDeclaration reads a function statement; top says whether it stands at
// the top level of the script.
func (p *parser) functionDeclaration(async, top bool) {
	p.advance() // function
	generator := p.eat("*")
	t := p.bindingName()
	p.declare(t.text, declFunction, t.pos)
	if top && t.text == "main" {
		p.mainPlain = !async && !generator
	}
	p.functionRest(async, generator)
}

// asyncForm reads async function, async x => and async (...) =>, or a call of
// something named async; it answers nil if async is a plain name. It stands
// wherever an operand may stand: all of its arrows are refused in any case.
func (p *parser) asyncForm() *expr {
	t, n := p.tok, p.peekToken()
	switch {
	case n.newline:
		return nil
	case n.word("function"):
		p.noteAsync(t.pos)
		p.advance()
		p.functionExpression(true)
		return &expr{kind: other, pos: t.pos}
	case n.kind == tName && !reserved[n.text] && (n.text != "of" || p.arrowFollows()):
		p.noteAsync(t.pos)
		p.advance()
		name := p.identifier()
		if !p.tok.is("=>") {
			p.unexpected("%q is expected", "=>")
		}
		return p.arrow(&expr{kind: arrowHead, pos: t.pos, kids: []*expr{{kind: ident, pos: name.pos, name: name.text}}}, true, true)
	case n.is("("):
		p.variable(t)
		p.advance()
		head := p.coverList()
		if p.tok.is("=>") && !p.tok.newline {
			p.noteAsync(t.pos)
			p.coverInit = -1
			return p.arrow(head, true, true)
		}
		p.noCover()
		return &expr{kind: call, pos: t.pos}
	}
	return nil
}

// arrowFollows reports whether the token after the next one is =>.
func (p *parser) arrowFollows() bool {
	st := p.save()
	defer p.restore(st)
	p.advance()
	p.advance()
	return p.tok.is("=>")
}

func (p *parser) noteAsync(pos int) {
	p.forms.add(pos, "async functions are not available; tools.call answers directly")
}

// arrow reads => and the body; head holds the parameters.
func (p *parser) arrow(head *expr, in, async bool) *expr {
	if p.lastYield >= head.pos {
		syntaxError(p.lastYield, "yield is not allowed in parameters")
	}
	p.pushFunction(p.fn.arrow(async))
	p.pushScope(true)
	simple := true
	for _, k := range head.kids {
		simple = simple && k.kind == ident
		p.element(k, true, declParam)
	}
	p.expect("=>")
	if p.tok.is("{") {
		p.functionBody(simple)
	} else {
		p.assign(in)
	}
	p.popScope()
	p.popFunction()
	return &expr{kind: other, pos: head.pos}
}
