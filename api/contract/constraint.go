package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// Fixed bounds of the constraints of one tool.
const (
	// MaxConstraints bounds each of the two lists of a tool.
	MaxConstraints = 16
	// MaxConstraintChars bounds one expression, in characters.
	MaxConstraintChars = 2048
)

// ConstraintVars is what an expression may look at.
type ConstraintVars struct {
	// Args is the JSON text of the call's arguments; empty is null.
	Args json.RawMessage
	// Result is the JSON text of the tool's answer; only result constraints see it.
	Result json.RawMessage
	Run    ConstraintRun
	Call   ConstraintCall
}

// ConstraintRun is the run that makes the call.
type ConstraintRun struct {
	Namespace, Name string
	Labels          map[string]string
	// Recipe is empty when the program is the run's own.
	Recipe string
}

// ConstraintCall is the call's place in the run.
type ConstraintCall struct {
	// Sequence is the call's, from 1.
	Sequence int64
	// Previous are the calls before it, the first one first.
	Previous []PreviousCall
}

// PreviousCall is a call that was made before.
type PreviousCall struct {
	Tool   string
	State  CallState
	Reason Reason
}

// Constraints are the compiled conditions of a tool, either of its calls or of
// its results. A nil *Constraints allows everything. It is safe for concurrent
// use.
type Constraints struct {
	list   []constraint
	result bool
}

type constraint struct {
	Constraint
	name    string
	program cel.Program
	ast     *cel.Ast
}

// CompileConstraints compiles a list of conditions, of results if withResult and
// of calls otherwise; an empty list gives nil. The error is a ConstraintInvalid
// fault that names the expression by its index, the place in it as line:column,
// both from 1, and what is wrong: what does not compile, is no bool, or may cost
// more than MaxConstraintCost for the largest arguments and results there are.
func CompileConstraints(list []Constraint, withResult bool) (*Constraints, error) {
	if len(list) == 0 {
		return nil, nil
	}
	field := "constraints"
	if withResult {
		field = "resultConstraints"
	}
	if len(list) > MaxConstraints {
		return nil, Faultf(ReasonConstraintInvalid, "%s: there are %d, more than %d", field, len(list), MaxConstraints)
	}
	env, err := constraintEnv(withResult)
	if err != nil {
		return nil, fmt.Errorf("the environment of constraints: %w", err)
	}
	c := &Constraints{result: withResult}
	for i, one := range list {
		name := fmt.Sprintf("%s[%d]", field, i)
		x, err := compileConstraint(env, name, one, withResult)
		if err != nil {
			return nil, err
		}
		c.list = append(c.list, x)
	}
	return c, nil
}

func compileConstraint(env *cel.Env, name string, one Constraint, withResult bool) (constraint, error) {
	x := constraint{Constraint: one, name: name}
	parsed, issues := env.Parse(one.Expression)
	if issues.Err() != nil {
		return x, invalidBy(name, issues, withResult)
	}
	if err := checkShape(name, parsed); err != nil {
		return x, err
	}
	ast, issues := env.Check(parsed)
	if issues.Err() != nil {
		return x, invalidBy(name, issues, withResult)
	}
	if t := ast.OutputType(); !t.IsExactType(types.BoolType) {
		return x, invalidAt(name, 1, 0, fmt.Sprintf("the expression is of type %s, it must be bool: compare its value with one", t))
	}
	if err := checkPatterns(name, ast); err != nil {
		return x, err
	}
	cost, err := env.EstimateCost(ast, sizes{})
	if err != nil {
		return x, invalidAt(name, 1, 0, "its cost cannot be estimated: "+firstLine(err))
	}
	if cost.Max > MaxConstraintCost {
		return x, invalidAt(name, 1, 0, fmt.Sprintf("the expression may cost %s for the largest arguments, more than %d: "+
			"do not loop over one list inside the loop over another, and match large strings with shorter patterns", costText(cost.Max), MaxConstraintCost))
	}
	x.ast = ast
	x.program, err = env.Program(ast, programOptions()...)
	if err != nil {
		return x, invalidAt(name, 1, 0, firstLine(err))
	}
	return x, nil
}

// hinted adds to the compiler's word about an unknown name which names there are.
func hinted(message string, withResult bool) string {
	message, unknown := strings.CutSuffix(message, " (in container '')")
	switch {
	case !unknown:
		return message
	case withResult:
		return message + ": there are args, result, run and call, and the functions of CEL's standard library"
	case strings.HasSuffix(message, " 'result'"):
		return message + ": only resultConstraints see it"
	}
	return message + ": there are args, run and call, and the functions of CEL's standard library"
}

// invalidBy words the first of CEL's own complaints.
func invalidBy(name string, issues *cel.Issues, withResult bool) error {
	e := issues.Errors()[0]
	// The first line says what is wrong; what follows draws it.
	message, _, _ := strings.Cut(e.Message, "\n")
	return invalidAt(name, e.Location.Line(), e.Location.Column(), hinted(message, withResult))
}

// invalidAt words a fault at a line from 1 and a column from 0, as the compiler
// counts them.
func invalidAt(name string, line, column int, message string) error {
	line, column = max(line, 1), max(column, 0) // a bound of the parser has no place
	return Faultf(ReasonConstraintInvalid, "%s at %d:%d: %s", name, line, column+1, message).At(line, column+1)
}

// Check evaluates every condition in order. The error is a fault, with the Reason
// ConstraintViolated for a call and ChildResultInvalid for a result: it carries
// the message of the first condition that is false. One that cannot be evaluated,
// costs too much or is interrupted by ctx refuses, too; what the error says of it
// quotes nothing of the arguments or the result. When ctx is done, its own error
// is the better one to report.
func (c *Constraints) Check(ctx context.Context, v ConstraintVars) error {
	if c == nil {
		return nil
	}
	vars, err := newActivation(v, c.result)
	if err != nil {
		return c.faultf("the constraints cannot be evaluated: %v", err)
	}
	for i := range c.list {
		if err := c.check(ctx, &c.list[i], vars); err != nil {
			return err
		}
	}
	return nil
}

func (c *Constraints) check(ctx context.Context, x *constraint, vars *activation) error {
	vars.meter = meterOf()
	if err := ctx.Err(); err != nil {
		return c.faultf("%s cannot be evaluated: the time of the call is over", x.name)
	}
	out, _, err := x.program.ContextEval(ctx, vars)
	switch {
	case err != nil:
		return c.unevaluated(x, x.cause(err))
	case out == types.True:
		return nil
	case out != types.False: // the type is checked: this is for the day when it is not
		return c.unevaluated(x, "its value is no bool")
	case x.Message != "":
		return c.faultf("%s", x.Message)
	default:
		return c.faultf("%s does not hold: %s", x.name, x.Expression)
	}
}

// unevaluated refuses because of a condition whose value is not known. The message
// of its author says what was meant, why says what went wrong.
func (c *Constraints) unevaluated(x *constraint, why string) error {
	if x.Message != "" {
		return c.faultf("%s (%s cannot be evaluated, so it does not hold: %s)", x.Message, x.name, why)
	}
	return c.faultf("%s cannot be evaluated, so it does not hold: %s", x.name, why)
}

func (c *Constraints) faultf(format string, args ...any) error {
	if c.result {
		return Faultf(ReasonChildResultInvalid, format, args...)
	}
	return Faultf(ReasonConstraintViolated, format, args...)
}
