package check

// scope holds the names of one block, function or script.
type scope struct {
	outer    *scope
	function bool            // var declarations end here
	lexical  map[string]bool // let, const, class, functions in blocks
	vars     map[string]bool // var, and functions and parameters of a function; in a block, what was hoisted through it
	catches  map[string]bool // the simple parameter of a catch: var may repeat it
}

func (p *parser) pushScope(function bool) {
	p.scope = &scope{outer: p.scope, function: function, lexical: map[string]bool{}, vars: map[string]bool{}}
}

func (p *parser) popScope() { p.scope = p.scope.outer }

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
	s := p.scope
	if how == declFunction {
		if how = declLexical; s.function {
			how = declVar
		}
	}
	switch how {
	case declVar:
		for ; ; s = s.outer {
			if s.lexical[name] && !s.catches[name] {
				syntaxError(pos, "%s is declared twice", name)
			}
			s.vars[name] = true
			if s.function {
				return
			}
		}
	case declLexical:
		if s.outer == nil && (name == "undefined" || name == "NaN" || name == "Infinity") {
			syntaxError(pos, "%s cannot be declared again", name)
		}
		if s.lexical[name] || s.vars[name] {
			syntaxError(pos, "%s is declared twice", name)
		}
		s.lexical[name] = true
	case declParam:
		if s.vars[name] {
			syntaxError(pos, "the parameter %s is repeated", name)
		}
		s.vars[name] = true
	case declCatch:
		s.lexical[name] = true
		s.catches = map[string]bool{name: true}
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
