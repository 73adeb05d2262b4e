package check

// primaryChain reads a primary expression with the members, calls and templates
// chained to it.
func (p *parser) primaryChain() *expr {
	if p.tok.word("new") {
		return p.chain(p.newExpression(), true)
	}
	e := p.primary()
	if e.kind == arrowHead {
		return e
	}
	return p.chain(e, true)
}

// chain reads what follows e: .x, [x], (x), `x` and their optional forms.
func (p *parser) chain(e *expr, calls bool) *expr {
	inOptional := false
	for {
		t := p.tok
		next := &expr{kind: other, pos: e.pos}
		switch {
		case t.is("?.") && calls:
			inOptional = true
			p.advance()
			p.optionalLink(e)
		case t.is("."):
			p.advance()
			*next = *p.dot(e)
		case t.is("["):
			p.advance()
			key := p.expression()
			p.expect("]")
			next.kind = member
			if e.kind == ident && e.name == "tools" && key.kind == str && key.name == "call" {
				next.base, next.name, next.ref = "tools", "call", e.ref
			}
		case t.is("(") && calls:
			p.called(e)
			p.toolCall(e, p.arguments())
			next.kind = call
		case t.kind == tTemplate:
			if inOptional {
				syntaxError(t.pos, "a template cannot follow an optional chain")
			}
			p.called(e)
			p.template(true)
		default:
			return e
		}
		p.noCover()
		if inOptional {
			next.kind = optional
		}
		e = next
	}
}

// dot reads the name after a dot.
func (p *parser) dot(object *expr) *expr {
	e := &expr{kind: member, pos: object.pos}
	switch p.tok.kind {
	case tName:
		e.name = p.tok.text
	case tPrivate:
		p.usePrivate(p.tok)
		e.name = "#" + p.tok.text
	default:
		p.unexpected("a property name is expected")
	}
	if object.kind == ident {
		e.base, e.ref = object.name, object.ref
		switch e.base + "." + e.name {
		case "Math.random":
			p.names.add(object.pos, "Math.random is not available: runs are deterministic")
		case "Date.now":
			p.names.add(object.pos, "Date.now is not available: runs are deterministic; pass the time as input")
		}
	}
	p.advance()
	return e
}

// optionalLink reads what follows ?. once.
func (p *parser) optionalLink(object *expr) {
	switch {
	case p.tok.is("("):
		p.called(object)
		p.arguments()
	case p.eat("["):
		p.expression()
		p.expect("]")
	case p.tok.kind == tTemplate:
		syntaxError(p.tok.pos, "a template cannot follow an optional chain")
	default:
		p.dot(object)
	}
}

// called judges a call of e by its name.
func (p *parser) called(e *expr) {
	if e.kind != ident {
		return
	}
	switch e.name {
	case "Function":
		p.names.add(e.pos, "Function is not available: code from strings cannot run")
	case "Date":
		p.names.add(e.pos, "Date() is not available: runs are deterministic; pass the time as input")
	}
}

// toolCall notes the name in tools.call("name", ...).
func (p *parser) toolCall(callee *expr, args []*expr) {
	if callee.kind != member || callee.base != "tools" || callee.name != "call" {
		return
	}
	if len(args) > 0 && args[0].kind == str {
		p.toolCalls++
		p.toolNames[args[0].name] = true
		p.toolSites[callee.ref] = Call{Tool: args[0].name}
	}
}

func (p *parser) arguments() []*expr {
	p.expect("(")
	var args []*expr
	for !p.tok.is(")") {
		if p.eat("...") {
			p.assign(true)
			args = append(args, &expr{kind: spread})
		} else {
			args = append(args, p.assign(true))
		}
		if !p.tok.is(")") {
			p.expect(",")
		}
	}
	p.expect(")")
	return args
}

// newExpression reads new, its callee and its arguments.
func (p *parser) newExpression() *expr {
	p.enter()
	defer p.leave()
	pos := p.tok.pos
	p.advance()
	if p.eat(".") {
		if !p.tok.word("target") || !p.fn.newTarget {
			syntaxError(pos, "new.target is allowed only inside a function")
		}
		p.advance()
		return &expr{kind: other, pos: pos}
	}
	var callee *expr
	switch {
	case p.tok.word("new"):
		callee = p.newExpression()
	case p.tok.word("import"):
		p.importForm()
		callee = &expr{kind: other}
	default:
		callee = p.primary()
	}
	if callee.kind == arrowHead {
		p.unexpected("")
	}
	callee = p.chain(callee, false)
	if p.tok.is("?.") {
		syntaxError(p.tok.pos, "an optional chain cannot be constructed")
	}
	args := 0
	if p.tok.is("(") {
		args = len(p.arguments())
	}
	if callee.kind == ident && callee.name == "Function" {
		p.names.add(pos, "Function is not available: code from strings cannot run")
	}
	if callee.kind == ident && callee.name == "Date" && args == 0 {
		p.names.add(pos, "new Date() without arguments is not available: runs are deterministic; pass the time as input")
	}
	return &expr{kind: other, pos: pos}
}

// template reads a template whose first piece is the current token and answers
// its text if it has no substitution.
func (p *parser) template(tagged bool) (string, bool) {
	first := p.tok
	for piece := first; ; piece = p.tok {
		if piece.invalid && !tagged {
			syntaxError(piece.pos, "bad escape in a template")
		}
		if piece.tail {
			break
		}
		p.advance()
		p.expression()
		if !p.tok.is("}") {
			p.unexpected("%q is expected", "}")
		}
		t := token{kind: tTemplate, pos: p.tok.pos}
		p.p = p.tok.pos + 1
		p.templatePiece(&t)
		p.tok = t
	}
	p.advance()
	return first.text, first.tail
}

func (p *parser) primary() *expr {
	t := p.tok
	e := &expr{kind: other, pos: t.pos}
	switch t.kind {
	case tNumber:
		p.advance()
	case tString:
		e.kind, e.name = str, t.text
		p.advance()
	case tTemplate:
		if text, plain := p.template(false); plain {
			e.kind, e.name = str, text
		}
	case tName:
		return p.named()
	case tPunct:
		switch t.text {
		case "(":
			return p.parenthesized()
		case "[":
			return p.arrayLiteral()
		case "{":
			return p.objectLiteral()
		case "/", "/=":
			p.tok = p.regExp(t.pos)
			p.advance()
		default:
			p.unexpected("")
		}
	default:
		p.unexpected("")
	}
	return e
}

// named reads a primary expression that begins with a word.
func (p *parser) named() *expr {
	t := p.tok
	e := &expr{kind: other, pos: t.pos}
	if t.escaped {
		return p.reference()
	}
	switch t.text {
	case "this", "null", "true", "false":
		p.advance()
	case "function":
		p.functionExpression(false)
	case "class":
		p.classLiteral(false)
	case "super":
		return p.super()
	case "import":
		p.importForm()
	case "async":
		if e := p.asyncForm(); e != nil {
			return e
		}
		return p.reference()
	default:
		return p.reference()
	}
	return e
}

func (p *parser) reference() *expr {
	t := p.identifier()
	return &expr{kind: ident, pos: t.pos, ref: t.pos, name: t.text}
}

func (p *parser) super() *expr {
	pos := p.tok.pos
	p.advance()
	switch {
	case p.tok.is("(") && p.fn.derived:
		p.arguments()
		return &expr{kind: call, pos: pos}
	case p.tok.is(".") && p.fn.method:
		p.advance()
		if p.tok.kind != tName {
			p.unexpected("a property name is expected")
		}
		p.advance()
		return &expr{kind: member, pos: pos}
	case p.tok.is("[") && p.fn.method:
		p.advance()
		p.expression()
		p.expect("]")
		return &expr{kind: member, pos: pos}
	}
	syntaxError(pos, "super is not allowed here")
	return nil
}

// importForm reads import(...) and import.meta, which are not offered.
func (p *parser) importForm() {
	p.forms.add(p.tok.pos, "import is not available")
	p.advance()
	if p.eat(".") {
		p.advance()
		return
	}
	p.arguments()
}

// coverList reads (...), which may be parameters, arguments or an expression.
// coverInit is left set if it must be parameters.
func (p *parser) coverList() *expr {
	head := &expr{kind: arrowHead, pos: p.tok.pos}
	p.expect("(")
	p.coverInit = -1
	for !p.tok.is(")") {
		pos := p.tok.pos
		if p.eat("...") {
			s := &expr{kind: spread, pos: pos, kids: []*expr{p.maybePattern(true)}}
			s.comma = p.tok.is(",")
			head.kids = append(head.kids, s)
		} else {
			head.kids = append(head.kids, p.maybePattern(true))
		}
		if !p.tok.is(")") {
			p.expect(",")
			head.comma = p.tok.is(")")
		}
	}
	p.expect(")")
	return head
}

// parenthesized reads (...), which may be the parameters of an arrow function.
func (p *parser) parenthesized() *expr {
	outer := p.coverInit
	head := p.coverList()
	if p.tok.is("=>") && !p.tok.newline {
		return head
	}
	n := len(head.kids)
	for _, k := range head.kids {
		if k.kind == spread {
			syntaxError(k.pos, "unexpected %q", "...")
		}
	}
	if n == 0 || head.comma {
		p.unexpected("%q is expected", "=>")
	}
	p.noCover()
	p.coverInit = outer
	e := head.kids[0]
	if n > 1 {
		e = &expr{kind: other}
	}
	e.pos, e.paren = head.pos, true
	return e
}
