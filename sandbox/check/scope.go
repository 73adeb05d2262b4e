package check

// scope holds the names of one block, function or script.
type scope struct {
	outer   *scope
	fn      *functionScope
	lexical map[string]bool // let, const, class, functions in blocks
	catches string          // the simple parameter of a catch: var may repeat it
	start   int             // how many vars the function had when the block began
}

// functionScope holds the vars of one function or script, its parameters and
// top-level functions included. Vars are numbered, so that a block can tell
// those that were declared inside it: a copy in every block around a var would
// cost memory that a small source could multiply.
type functionScope struct {
	top    *scope
	vars   int
	last   map[string]int // the number of the last var of that name, from 1
	active map[string]int // lexical names of the open blocks
}

func (p *parser) pushScope(function bool) {
	s := &scope{outer: p.scope, lexical: map[string]bool{}}
	if function {
		s.fn = &functionScope{top: s, last: map[string]int{}, active: map[string]int{}}
	} else {
		s.fn = p.scope.fn
		s.start = s.fn.vars
	}
	p.scope = s
}

func (p *parser) popScope() {
	for name := range p.scope.lexical {
		if name != p.scope.catches {
			p.scope.fn.active[name]--
		}
	}
	p.scope = p.scope.outer
}

// How a name is declared.
type declaration int

const (
	declVar declaration = iota
	declLexical
	declFunction // as var at the top of a function or script, else lexical
	declParam
	declCatch // the simple parameter of a catch
)

// declare enters a name and refuses a second declaration where the language does.
func (p *parser) declare(name string, how declaration, pos int) {
	if name == "await" {
		p.awaitBound = true
	}
	s, f := p.scope, p.scope.fn
	if how == declFunction {
		if how = declLexical; s == f.top {
			how = declVar
		}
	}
	switch how {
	case declVar:
		if f.active[name] > 0 {
			syntaxError(pos, "%s is declared twice", name)
		}
		f.vars++
		f.last[name] = f.vars
	case declLexical:
		if s.outer == nil && (name == "undefined" || name == "NaN" || name == "Infinity") {
			syntaxError(pos, "%s cannot be declared again", name)
		}
		if s.lexical[name] || f.last[name] > s.start {
			syntaxError(pos, "%s is declared twice", name)
		}
		s.lexical[name] = true
		f.active[name]++
	case declParam:
		if f.last[name] > 0 {
			syntaxError(pos, "the parameter %s is repeated", name)
		}
		f.vars++
		f.last[name] = f.vars
	case declCatch:
		s.lexical[name] = true
		s.catches = name
	case declFunction: // is one of the above by now
	}
}

// classScope holds the private names of one class.
type classScope struct {
	outer    *classScope
	declared map[string]string // name to what it is: "get", "static set", ...
	used     []privateUse
}

type privateUse struct {
	name string
	pos  int
}

// declarePrivate enters a private name; only a getter and a setter of the same
// kind may share one.
func (c *classScope) declarePrivate(name, what string, static bool, pos int) {
	if static {
		what = "static " + what
	}
	old, ok := c.declared[name]
	pair := map[string]string{"get": "set", "set": "get", "static get": "static set", "static set": "static get"}
	if ok && (pair[what] == "" || old != pair[what]) {
		syntaxError(pos, "#%s is declared twice", name)
	}
	if ok {
		what = "both"
	}
	c.declared[name] = what
}

// leaveClass checks the uses of private names; what is not declared here may be
// declared by a class around.
func (p *parser) leaveClass() {
	c := p.class
	p.class = c.outer
	for _, u := range c.used {
		if _, ok := c.declared[u.name]; ok {
			continue
		}
		if p.class == nil {
			syntaxError(u.pos, "#%s is not declared", u.name)
		}
		p.class.used = append(p.class.used, u)
	}
}

func (p *parser) usePrivate(t token) {
	if p.class == nil {
		syntaxError(t.pos, "#%s is not declared", t.text)
	}
	p.class.used = append(p.class.used, privateUse{t.text, t.pos})
}

// function is what the parser knows of the function that it is in.
type function struct {
	outer     *function
	async     bool
	generator bool
	returns   bool // return exists
	newTarget bool // new.target exists
	method    bool // super.x exists
	derived   bool // super() exists
	field     bool // arguments does not exist
	labels    []label
	loops     int // loops around this point
	breakable int // loops and switches around this point
}

type label struct {
	name string
	loop bool
}

// arrow is a function that sees what is around it.
func (f *function) arrow(async bool) function {
	return function{async: async, returns: true, newTarget: f.newTarget, method: f.method, derived: f.derived, field: f.field}
}

func (p *parser) pushFunction(f function) {
	f.outer = p.fn
	p.fn = &f
}

func (p *parser) popFunction() { p.fn = p.fn.outer }
