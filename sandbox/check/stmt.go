package check

// statement reads one statement; declarations says whether let, const, class
// and function may stand here.
func (p *parser) statement(declarations bool) {
	p.enter()
	defer p.leave()
	t := p.tok
	switch {
	case t.is("{"):
		p.block()
	case t.is(";"):
		p.advance()
	case t.kind == tName && !t.escaped:
		p.wordStatement(t, declarations)
	default:
		p.expressionStatement()
	}
}

func (p *parser) expressionStatement() {
	p.expression()
	p.semicolon()
}

func (p *parser) block() {
	p.pushScope(false)
	p.expect("{")
	for !p.tok.is("}") {
		p.statement(true)
	}
	p.expect("}")
	p.popScope()
}

// wordStatement reads a statement that begins with a word.
func (p *parser) wordStatement(t token, declarations bool) {
	switch t.text {
	case "let", "const", "class", "function":
		if !declarations {
			syntaxError(t.pos, "a declaration is not allowed here; use a block")
		}
		p.declarationStatement(t)
	case "var":
		p.advance()
		p.variables(declVar, true)
		p.semicolon()
	case "if":
		p.ifStatement()
	case "for":
		p.forStatement()
	case "while":
		p.advance()
		p.condition()
		p.loopBody()
	case "do":
		p.doStatement()
	case "return":
		p.returnStatement()
	case "break", "continue":
		p.jump()
	case "throw":
		p.advance()
		if p.tok.newline {
			syntaxError(p.prev, "throw and its expression must be on one line")
		}
		p.expressionStatement()
	case "try":
		p.tryStatement()
	case "switch":
		p.switchStatement()
	case "with":
		syntaxError(t.pos, "with is not allowed in strict code")
	case "debugger":
		p.advance()
		p.semicolon()
	case "import":
		p.importStatement()
	case "export":
		p.exportStatement()
	default:
		p.nameStatement(t, declarations)
	}
}

func (p *parser) declarationStatement(t token) {
	switch t.text {
	case "class":
		p.classLiteral(true)
	case "function":
		p.functionDeclaration(false, p.scope.outer == nil)
	default:
		p.advance()
		p.variables(declLexical, true, t.text == "const")
		p.semicolon()
	}
}

// nameStatement reads an async function, a label or an expression.
func (p *parser) nameStatement(t token, declarations bool) {
	n := p.peekToken()
	if t.text == "async" && n.word("function") && !n.newline {
		p.noteAsync(t.pos)
		if !declarations {
			syntaxError(t.pos, "a declaration is not allowed here; use a block")
		}
		p.advance()
		p.functionDeclaration(true, p.scope.outer == nil)
		return
	}
	if !n.is(":") || !p.isName(t) {
		p.expressionStatement()
		return
	}
	p.labelled()
}

// labelled reads labels and their statement; all labels of a loop are its own.
func (p *parser) labelled() {
	outer := len(p.fn.labels)
	for p.isName(p.tok) && p.peekToken().is(":") {
		for _, l := range p.fn.labels {
			if l.name == p.tok.text {
				syntaxError(p.tok.pos, "the label %s is used twice", p.tok.text)
			}
		}
		if len(p.fn.labels) >= maxDepth {
			syntaxError(p.tok.pos, "more than %d labels", maxDepth)
		}
		p.fn.labels = append(p.fn.labels, label{name: p.tok.text})
		p.advance()
		p.advance()
	}
	loop := p.tok.word("for") || p.tok.word("while") || p.tok.word("do")
	for i := range p.fn.labels[outer:] {
		p.fn.labels[outer+i].loop = loop
	}
	p.statement(false)
	p.fn.labels = p.fn.labels[:outer]
}

// variables reads the declarations after var, let or const; initialised says
// whether patterns and constants must have a value here.
func (p *parser) variables(how declaration, initialised bool, constant ...bool) {
	for {
		t := p.tok
		if how == declLexical && t.word("let") {
			syntaxError(t.pos, "let cannot be the name of a variable")
		}
		simple := p.bindingTarget(how)
		switch {
		case p.eat("="):
			p.assign(initialised)
		case initialised && (!simple || len(constant) > 0 && constant[0]):
			p.unexpected("%q is expected: %s needs a value", "=", p.src[t.pos:p.prev])
		}
		if !p.eat(",") {
			return
		}
	}
}

func (p *parser) condition() {
	p.expect("(")
	p.expression()
	p.expect(")")
}

func (p *parser) loopBody() {
	p.fn.loops++
	p.fn.breakable++
	p.statement(false)
	p.fn.loops--
	p.fn.breakable--
}

// ifStatement reads a chain of else ifs without recursion: it may be long.
func (p *parser) ifStatement() {
	for {
		p.advance() // if
		p.condition()
		p.statement(false)
		if !p.eatWord("else") {
			return
		}
		if !p.tok.word("if") {
			p.statement(false)
			return
		}
	}
}

func (p *parser) doStatement() {
	p.advance()
	p.loopBody()
	if !p.eatWord("while") {
		p.unexpected("%q is expected", "while")
	}
	p.condition()
	p.eat(";")
}

func (p *parser) returnStatement() {
	if !p.fn.returns {
		syntaxError(p.tok.pos, "return is allowed only inside a function")
	}
	p.advance()
	if p.tok.is(";") || p.tok.is("}") || p.tok.kind == tEOF || p.tok.newline {
		p.semicolon()
		return
	}
	p.expressionStatement()
}

// jump reads break or continue.
func (p *parser) jump() {
	t := p.tok
	p.advance()
	if p.tok.kind == tName && !p.tok.newline && p.isName(p.tok) {
		for _, l := range p.fn.labels {
			if l.name == p.tok.text && (l.loop || t.text == "break") {
				p.advance()
				p.semicolon()
				return
			}
		}
		syntaxError(p.tok.pos, "%s has no label %s to go to", t.text, p.tok.text)
	}
	if t.text == "break" && p.fn.breakable == 0 || t.text == "continue" && p.fn.loops == 0 {
		syntaxError(t.pos, "%s is allowed only inside a loop", t.text)
	}
	p.semicolon()
}

func (p *parser) tryStatement() {
	p.advance()
	p.block()
	found := false
	if p.eatWord("catch") {
		found = true
		p.pushScope(false)
		if p.eat("(") {
			if p.tok.kind == tName {
				t := p.bindingName()
				p.declare(t.text, declCatch, t.pos)
			} else {
				p.bindingTarget(declLexical)
			}
			p.expect(")")
		}
		p.expect("{")
		for !p.tok.is("}") {
			p.statement(true)
		}
		p.expect("}")
		p.popScope()
	}
	if p.eatWord("finally") {
		found = true
		p.block()
	}
	if !found {
		p.unexpected("%q or %q is expected", "catch", "finally")
	}
}

func (p *parser) switchStatement() {
	p.advance()
	p.condition()
	p.pushScope(false)
	p.fn.breakable++
	p.expect("{")
	fallback := false
	for !p.tok.is("}") {
		switch {
		case p.eatWord("case"):
			p.expression()
		case p.tok.word("default"):
			if fallback {
				syntaxError(p.tok.pos, "a switch has one default")
			}
			fallback = true
			p.advance()
		default:
			p.unexpected("%q or %q is expected", "case", "default")
		}
		p.expect(":")
		for !p.tok.is("}") && !p.tok.word("case") && !p.tok.word("default") {
			p.statement(true)
		}
	}
	p.expect("}")
	p.fn.breakable--
	p.popScope()
}
