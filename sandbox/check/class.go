package check

// classLiteral reads a class; a declaration must have a name.
func (p *parser) classLiteral(declaration bool) {
	p.enter()
	defer p.leave()
	p.advance() // class
	if p.tok.kind == tName && !p.tok.word("extends") {
		t := p.bindingName()
		if declaration {
			p.declare(t.text, declLexical, t.pos)
		} else if t.text == "await" {
			p.awaitBound = true
		}
	} else if declaration {
		p.unexpected("a name is expected")
	}
	derived := p.eatWord("extends")
	if derived {
		if e := p.primaryChain(); e.kind == arrowHead {
			p.unexpected("")
		}
		p.noCover()
	}
	p.class = &classScope{outer: p.class, declared: map[string]string{}}
	p.expect("{")
	constructor := false
	for !p.tok.is("}") {
		if p.eat(";") {
			continue
		}
		pos := p.tok.pos
		if p.classElement(derived) {
			if constructor {
				syntaxError(pos, "a class has one constructor")
			}
			constructor = true
		}
	}
	p.leaveClass()
	p.expect("}")
}

// classElement reads one element and reports whether it is the constructor.
func (p *parser) classElement(derived bool) (constructor bool) {
	static := false
	if p.tok.word("static") {
		n := p.peekToken()
		if n.is("{") {
			p.advance()
			p.staticBlock()
			return false
		}
		if p.beginsKey(n, true) {
			static = true
			p.advance()
		}
	}
	m := p.memberHead()
	name := ""
	if !m.computed && !m.private {
		name = m.key.text
	}
	p.judgeKey(m, static, name)
	if !m.special() && !p.tok.is("(") {
		p.field(m, name)
		return false
	}
	if m.private {
		what := m.accessor
		if what == "" {
			what = "method"
		}
		p.class.declarePrivate(m.key.text, what, static, m.key.pos)
	}
	f := function{method: true, newTarget: true, returns: true}
	if constructor = name == "constructor" && !static; constructor {
		if m.special() {
			syntaxError(m.key.pos, "the constructor must be a plain method")
		}
		f.derived = derived
	}
	p.methodRest(m, f)
	return constructor
}

// judgeKey refuses the names that a class element may not have.
func (p *parser) judgeKey(m memberHead, static bool, name string) {
	if static && name == "prototype" {
		syntaxError(m.key.pos, "a static element cannot be named prototype")
	}
	if m.private && m.key.text == "constructor" {
		syntaxError(m.key.pos, "an element cannot be named #constructor")
	}
}

// field reads the rest of a field.
func (p *parser) field(m memberHead, name string) {
	if name == "constructor" {
		syntaxError(m.key.pos, "a field cannot be named constructor")
	}
	if m.private {
		p.class.declarePrivate(m.key.text, "field", false, m.key.pos)
	}
	if p.eat("=") {
		p.pushFunction(function{method: true, newTarget: true, field: true})
		p.pushScope(true)
		p.assign(true)
		p.popScope()
		p.popFunction()
	}
	p.semicolon()
}

func (p *parser) staticBlock() {
	p.pushFunction(function{method: true, newTarget: true, field: true})
	p.pushScope(true)
	p.expect("{")
	for !p.tok.is("}") {
		p.statement(true)
	}
	p.expect("}")
	p.popScope()
	p.popFunction()
}
