package check

// arrayLiteral reads [...], which may become a pattern.
func (p *parser) arrayLiteral() *expr {
	e := &expr{kind: array, pos: p.tok.pos}
	p.expect("[")
	for !p.tok.is("]") {
		if p.eat(",") {
			e.kids = append(e.kids, nil)
			continue
		}
		pos := p.tok.pos
		if p.eat("...") {
			s := &expr{kind: spread, pos: pos, kids: []*expr{p.maybePattern(true)}}
			s.comma = p.tok.is(",")
			e.kids = append(e.kids, s)
		} else {
			e.kids = append(e.kids, p.maybePattern(true))
		}
		if !p.tok.is("]") {
			p.expect(",")
		}
	}
	p.expect("]")
	return e
}

// objectLiteral reads {...}, which may become a pattern.
func (p *parser) objectLiteral() *expr {
	e := &expr{kind: object, pos: p.tok.pos}
	p.expect("{")
	proto := false
	for !p.tok.is("}") {
		pos := p.tok.pos
		if p.eat("...") {
			s := &expr{kind: spread, pos: pos, kids: []*expr{p.maybePattern(true)}}
			s.comma = p.tok.is(",")
			e.kids = append(e.kids, s)
		} else {
			prop := p.property()
			if prop.kind == property && prop.name == "__proto__" {
				if proto {
					p.onlyPattern(pos, "__proto__ is set twice")
				}
				proto = true
			}
			e.kids = append(e.kids, prop)
		}
		if !p.tok.is("}") {
			p.expect(",")
		}
	}
	p.expect("}")
	return e
}

// property reads one property of an object literal.
func (p *parser) property() *expr {
	t := p.tok
	e := &expr{kind: property, pos: t.pos}
	m := p.memberHead()
	if m.private {
		syntaxError(t.pos, "a private name belongs into a class")
	}
	if m.special() || p.tok.is("(") {
		e.kind = method
		p.methodRest(m, function{method: true, newTarget: true, returns: true})
		return e
	}
	if t.kind == tName && (p.tok.is(",") || p.tok.is("}") || p.tok.is("=")) {
		return p.shorthand(t, e)
	}
	p.expect(":")
	if !m.computed {
		e.name = m.key.text
	}
	e.kids = []*expr{p.maybePattern(true)}
	return e
}

// onlyPattern notes that the literal at hand must become a pattern.
func (p *parser) onlyPattern(pos int, message string) {
	if p.coverInit < 0 {
		p.coverInit, p.coverMessage = pos, message
	}
}

// shorthand reads the rest of {name} or {name = default}.
func (p *parser) shorthand(t token, e *expr) *expr {
	if !p.isName(t) {
		syntaxError(t.pos, "unexpected %q, a name is expected", t.text)
	}
	p.variable(t)
	e.kids = []*expr{{kind: ident, pos: t.pos, name: t.text}}
	if p.tok.is("=") {
		at := p.tok.pos
		p.advance()
		e.kids = append(e.kids, p.assign(true))
		p.onlyPattern(at, `unexpected "=" in an object literal`)
	}
	return e
}

// toPattern turns an expression into what is bound or assigned. For a binding
// every name is declared.
func (p *parser) toPattern(e *expr, binding bool, how declaration) {
	p.enter()
	defer p.leave()
	if e.paren && (binding || e.kind != ident && e.kind != member) {
		syntaxError(e.pos, "parentheses are not allowed in a pattern")
	}
	switch {
	case e.kind == ident && e.name == "arguments":
		syntaxError(e.pos, "arguments cannot be bound in strict code")
	case e.kind == ident && binding:
		p.declare(e.name, how, e.pos)
	case e.kind == ident, e.kind == member && !binding:
	case e.kind == assigned:
		p.toPattern(e.kids[0], binding, how)
	case e.kind == array:
		for _, k := range e.kids {
			p.element(k, binding, how)
		}
	case e.kind == object:
		for _, k := range e.kids {
			if k.kind == spread && k.kids[0].kind != ident && k.kids[0].kind != member {
				syntaxError(k.pos, "the rest of an object pattern must be a name")
			}
			p.element(k, binding, how)
		}
	default:
		syntaxError(e.pos, "this is not a pattern")
	}
}

// element turns one element of an array or object literal into a pattern.
func (p *parser) element(k *expr, binding bool, how declaration) {
	switch {
	case k == nil:
	case k.kind == spread:
		if k.comma {
			syntaxError(k.pos, "nothing may follow the rest of a pattern")
		}
		if k.kids[0].kind == assigned {
			syntaxError(k.pos, "the rest of a pattern has no default")
		}
		p.toPattern(k.kids[0], binding, how)
	case k.kind == property:
		p.toPattern(k.kids[0], binding, how)
	case k.kind == method:
		syntaxError(k.pos, "a method is not a pattern")
	default:
		p.toPattern(k, binding, how)
	}
}

// bindingTarget reads a name or a pattern of a declaration.
func (p *parser) bindingTarget(how declaration) (simple bool) {
	p.enter()
	defer p.leave()
	switch {
	case p.tok.is("["):
		p.bindingArray(how)
	case p.tok.is("{"):
		p.bindingObject(how)
	default:
		t := p.bindingName()
		p.declare(t.text, how, t.pos)
		return true
	}
	return false
}

// bindingElement reads a target with an optional default.
func (p *parser) bindingElement(how declaration) (simple bool) {
	simple = p.bindingTarget(how)
	if p.eat("=") {
		p.assign(true)
		return false
	}
	return simple
}

func (p *parser) bindingArray(how declaration) {
	p.expect("[")
	for !p.tok.is("]") {
		if p.eat(",") {
			continue
		}
		if p.eat("...") {
			p.bindingTarget(how)
			break
		}
		p.bindingElement(how)
		if !p.tok.is("]") {
			p.expect(",")
		}
	}
	p.expect("]")
}

func (p *parser) bindingObject(how declaration) {
	p.expect("{")
	for !p.tok.is("}") {
		if p.eat("...") {
			t := p.bindingName()
			p.declare(t.text, how, t.pos)
			break
		}
		t := p.tok
		computed := p.propertyName()
		switch {
		case p.eat(":"):
			p.bindingElement(how)
		case t.kind != tName || computed || !p.isName(t):
			p.unexpected("%q is expected", ":")
		default:
			p.boundShorthand(t, how)
		}
		if !p.tok.is("}") {
			p.expect(",")
		}
	}
	p.expect("}")
}

func (p *parser) boundShorthand(t token, how declaration) {
	p.variable(t)
	if t.text == "arguments" {
		syntaxError(t.pos, "arguments cannot be declared in strict code")
	}
	p.declare(t.text, how, t.pos)
	if p.eat("=") {
		p.assign(true)
	}
}

// propertyName reads the key of a property and reports whether it is computed.
func (p *parser) propertyName() (computed bool) {
	switch p.tok.kind {
	case tName, tString, tNumber:
		p.advance()
		return false
	default:
	}
	if !p.eat("[") {
		p.unexpected("a property name is expected")
	}
	p.assign(true)
	p.expect("]")
	return true
}
