package check

// forStatement reads the three kinds of for.
func (p *parser) forStatement() {
	p.advance() // for
	if p.tok.word("await") {
		p.forms.add(p.tok.pos, "await is not available; tools.call answers directly")
		p.advance()
	}
	p.expect("(")
	p.pushScope(false)
	defer p.popScope()
	t := p.tok
	switch {
	case t.is(";"):
		p.forRest()
	case t.word("var"), t.word("const"), t.word("let"):
		p.advance()
		how := declLexical
		if t.text == "var" {
			how = declVar
		}
		p.forDeclaration(how, t.text == "const")
	default:
		p.forExpression(t)
	}
}

// forDeclaration reads the head after var, let or const.
func (p *parser) forDeclaration(how declaration, constant bool) {
	t := p.tok
	if how == declLexical && t.word("let") {
		syntaxError(t.pos, "let cannot be the name of a variable")
	}
	simple := p.bindingTarget(how)
	if p.tok.word("of") || p.tok.word("in") {
		p.forEach()
		return
	}
	if p.eat("=") {
		p.assign(false)
	} else if !simple || constant {
		p.unexpected("%q is expected: %s needs a value", "=", p.src[t.pos:p.prev])
	}
	if p.eat(",") {
		p.variables(how, false, constant)
	}
	p.forRest()
}

// forExpression reads the head that begins with an expression.
func (p *parser) forExpression(t token) {
	outer := p.coverInit
	p.coverInit = -1
	e := p.maybePattern(false)
	if p.tok.word("of") || p.tok.word("in") {
		if t.word("async") && e.kind == ident && !e.paren && p.tok.text == "of" {
			syntaxError(t.pos, "for (async of is not allowed")
		}
		p.coverInit = outer
		if (e.kind == array || e.kind == object) && !e.paren {
			p.toPattern(e, false, declVar)
		} else {
			p.simpleTarget(e)
		}
		p.forEach()
		return
	}
	p.noCover()
	p.coverInit = outer
	for p.eat(",") {
		p.assign(false)
	}
	p.forRest()
}

// forEach reads of or in, the value and the body.
func (p *parser) forEach() {
	if p.tok.text == "of" {
		p.advance()
		p.assign(true)
	} else {
		p.advance()
		p.expression()
	}
	p.expect(")")
	p.loopBody()
}

// forRest reads the two semicolons and the body.
func (p *parser) forRest() {
	p.expect(";")
	if !p.tok.is(";") {
		p.expression()
	}
	p.expect(";")
	if !p.tok.is(")") {
		p.expression()
	}
	p.expect(")")
	p.loopBody()
}

// importStatement reads what begins with import: a declaration, which only a
// module has, or an expression.
func (p *parser) importStatement() {
	t := p.tok
	if n := p.peekToken(); n.is("(") || n.is(".") {
		p.expressionStatement()
		return
	}
	p.forms.add(t.pos, "import is not available")
	p.skipStatement()
}

func (p *parser) exportStatement() {
	p.forms.add(p.tok.pos, "export is not available; declare function main(input)")
	p.advance()
	switch {
	case p.eatWord("default"):
		switch {
		case p.tok.word("function"), p.tok.word("async"):
			p.statement(true)
		case p.tok.word("class"):
			p.classLiteral(false)
		default:
			p.assign(true)
			p.semicolon()
		}
	case p.tok.is("{"), p.tok.is("*"):
		p.skipStatement()
	default:
		p.statement(true)
	}
}

// skipStatement moves to the end of an import or export list. The source is
// refused in any case; what follows may still hold an earlier mistake.
func (p *parser) skipStatement() {
	for p.advance(); p.tok.kind != tEOF && !p.tok.is(";") && !p.tok.newline; {
		p.advance()
	}
	p.eat(";")
}
