package contract

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
)

// causes are how CEL's errors begin. What follows may quote a value.
var causes = []string{
	"no such key", "no such overload", "no such attribute", "no such field", "index out of bounds", "division by zero",
	"modulus by zero", "integer overflow", "unsigned integer overflow", "timestamp overflow", "duration overflow",
	"range error", "overflow", "type conversion error",
}

// cause says why an expression could not be evaluated, and where, without quoting
// a value.
func (x *constraint) cause(err error) string {
	if errors.Is(err, interpreter.InterruptError{}) {
		return "the time of the call is over"
	}
	if c, ok := errors.AsType[interpreter.EvalCancelledError](err); ok && c.Cause == interpreter.CostLimitExceeded {
		return "it costs too much for these arguments"
	}
	what, text := "an operation failed", err.Error()
	for _, c := range causes {
		if strings.Contains(text, c) && (strings.HasPrefix(text, c) || what == "an operation failed") {
			what = c
		}
	}
	e, ok := errors.AsType[*types.Err](err)
	if !ok || e.NodeID() == 0 {
		return what
	}
	at := x.ast.NativeRep().SourceInfo().GetStartLocation(e.NodeID())
	if at.Line() < 1 {
		return what
	}
	return fmt.Sprintf("%s at %d:%d", what, at.Line(), at.Column()+1)
}
