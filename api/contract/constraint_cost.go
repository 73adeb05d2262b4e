package contract

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// An expression is an administrator's, but what it looks at is a program's. Two
// bounds hold an evaluation: the estimate of CEL's checker when it is compiled, and
// a meter when it runs. CEL has a limit of its own for that, which is no bound: it
// counts a comparison as one step, although a list that holds another one twice,
// forty levels deep, is a trillion; and it searches a stack that grows with every
// turn of a loop, so that half a million turns take minutes.

const (
	// MaxConstraintCost bounds the estimate of one expression, in the units of CEL's
	// checker. It lets an expression look at everything that there is once: a loop
	// over one list inside the loop over another is far beyond it.
	MaxConstraintCost = 50_000_000
	// meterWork bounds one evaluation. A unit is one step of the expression or one
	// value that is compared, about 50 ns.
	meterWork = 20_000_000
	// meterBytes bounds the bytes of the strings and lists that one evaluation makes.
	meterBytes = 32 << 20
	// interruptEvery is how many turns of loops pass between two looks at the context.
	interruptEvery = 64
	// meterName is the variable of the meter. No expression can spell it.
	meterName = "@meter"
)

// sizes tells the estimate how large values may be.
type sizes struct{}

// EstimateSize implements checker.CostEstimator. What is inside of a list has the
// size that it has on average when the list is as long as it can be: all of it
// together is no larger than the text.
func (sizes) EstimateSize(n checker.AstNode) *checker.SizeEstimate {
	switch n.Type().Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.TimestampKind, types.DurationKind, types.NullTypeKind:
		return nil
	default:
	}
	most := uint64(MaxArgumentBytes / 2) // an item and its comma
	path := n.Path()
	switch {
	case slices.ContainsFunc(path, func(s string) bool { return strings.HasPrefix(s, "@") }):
		most = 2
	case len(path) == 0:
	case path[0] == "result":
		most = uint64(Ceilings().OutputBytes / 2)
	case path[0] == "run":
		most = 253
	case path[0] == "call":
		most = uint64(*Ceilings().ChildCalls)
	}
	return &checker.SizeEstimate{Min: 0, Max: most}
}

// EstimateCallCost implements checker.CostEstimator: CEL's own estimates hold.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

func costText(c uint64) string {
	if c == math.MaxUint64 {
		return "any amount"
	}
	return strconv.FormatUint(c, 10)
}

// checkPatterns holds that every regular expression is a literal, compiles and
// is small: what it costs to match is known then.
func checkPatterns(name string, a *cel.Ast) (err error) {
	info := a.NativeRep().SourceInfo()
	ast.PostOrderVisit(a.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if err != nil || e.Kind() != ast.CallKind || e.AsCall().FunctionName() != "matches" {
			return
		}
		args := e.AsCall().Args()
		arg := args[len(args)-1]
		at := info.GetStartLocation(arg.ID())
		pattern, ok := types.String(""), false
		if arg.Kind() == ast.LiteralKind {
			pattern, ok = arg.AsLiteral().(types.String)
		}
		if !ok {
			err = invalidAt(name, at.Line(), at.Column(), "the pattern of matches() must be a literal string")
			return
		}
		if _, _, e := compilePattern(string(pattern)); e != "" {
			err = invalidAt(name, at.Line(), at.Column(), e)
		}
	}))
	return err
}
