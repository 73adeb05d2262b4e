package contract

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
)

// CEL's checker computes the type of every part of an expression and bounds that
// nowhere. A map whose keys and values are both of a type that came out of the last
// step doubles it with each further one: 250 characters take hours. What nests
// deeply takes the third power of its depth. So both are refused before it looks.

// maxConstraintDepth bounds how deep lists, maps and loops may nest, or follow upon
// each other as .map().map() does.
const maxConstraintDepth = 32

// checkShape refuses a parsed expression that the checker should not see.
func checkShape(name string, parsed *cel.Ast) error {
	rep := parsed.NativeRep()
	s := exprShape{}
	s.depth(rep.Expr())
	if s.what == "" {
		return nil
	}
	at := rep.SourceInfo().GetStartLocation(s.where)
	return invalidAt(name, at.Line(), at.Column(), s.what)
}

// exprShape keeps the first thing that is wrong with an expression, and its place.
type exprShape struct {
	what  string
	where int64
}

func (s *exprShape) refuse(e ast.Expr, what string) {
	if s.what == "" {
		s.what, s.where = what, e.ID()
	}
}

// depth is how deep e nests. The parser bounds its recursion.
func (s *exprShape) depth(e ast.Expr) int {
	most := 0
	inside := func(parts ...ast.Expr) {
		for _, p := range parts {
			most = max(most, s.depth(p))
		}
	}
	switch e.Kind() {
	case ast.CallKind:
		if c := e.AsCall(); c.IsMemberFunction() {
			inside(c.Target())
		}
		inside(e.AsCall().Args()...)
		return most
	case ast.SelectKind:
		inside(e.AsSelect().Operand())
		return most
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		inside(c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result())
	case ast.ListKind:
		inside(e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			key := entry.AsMapEntry().Key()
			if key.Kind() != ast.LiteralKind {
				s.refuse(key, "the key of a map must be a literal")
			}
			inside(entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, f := range e.AsStruct().Fields() {
			inside(f.AsStructField().Value())
		}
	default:
		return 0
	}
	if most++; most > maxConstraintDepth {
		s.refuse(e, fmt.Sprintf("lists, maps and loops nest more than %d deep", maxConstraintDepth))
	}
	return most
}
