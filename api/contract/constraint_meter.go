package contract

import (
	"errors"
	"regexp"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

var errPattern = errors.New("the pattern of matches() must be a literal string")

func programOptions() []cel.ProgramOption {
	return []cel.ProgramOption{
		cel.InterruptCheckFrequency(interruptEvery),
		cel.CustomDecoratorV2(decorate),
	}
}

// evalMeter is what is left of one evaluation's bounds.
type evalMeter struct{ work, bytes int }

func meterOf() *evalMeter { return &evalMeter{work: meterWork, bytes: meterBytes} }

func meterIn(frame *interpreter.ExecutionFrame) *evalMeter {
	if m, ok := frame.ResolveName(meterName); ok {
		if m, ok := m.(*evalMeter); ok {
			return m
		}
	}
	return &evalMeter{} // nothing is left when there is none
}

// spend takes n units of work, or panics as CEL's own limit does.
func (m *evalMeter) spend(n int) {
	if m.work -= n; m.work < 0 {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: "cost"})
	}
}

// weigh spends what comparing v once may take: 1 for every value in it, and 1 more
// for every 64 bytes.
func (m *evalMeter) weigh(v ref.Val) {
	m.spend(1)
	switch v := v.(type) {
	case types.String:
		m.spend(len(v) / 64)
	case types.Bytes:
		m.spend(len(v) / 64)
	case traits.Lister:
		n, _ := v.Size().(types.Int)
		for i := range n {
			m.weigh(v.Get(i))
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			m.weigh(k)
			m.weigh(v.Get(k))
		}
	}
}

// make spends n bytes, or panics likewise.
func (m *evalMeter) make(n int) {
	if m.bytes -= n; m.bytes < 0 {
		m.work = 0
		m.spend(1)
	}
}

// decorate has every step of an expression pay. A loop takes at least one of them
// in each turn.
func decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch i := i.(type) {
	case *access, *step, *construction, *comparison, *match, *growth, interpreter.InterpretableConst:
		return i, nil
	case interpreter.InterpretableAttribute:
		return &access{i}, nil
	case interpreter.InterpretableConstructor:
		return &construction{i}, nil
	case interpreter.InterpretableCall:
		return decorateCall(i)
	}
	return &step{i}, nil
}

func decorateCall(call interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	args := call.Args()
	switch call.Function() {
	case "_==_", "_!=_", "@in":
		return &comparison{call, args[0], args[1]}, nil
	case "matches":
		if pattern, ok := args[1].(interpreter.InterpretableConst); ok {
			if s, ok := pattern.Value().(types.String); ok {
				if re, size, e := compilePattern(string(s)); e == "" {
					return &match{call, args[0], re, size}, nil
				}
			}
		}
		return nil, errPattern
	case "_+_", "string", "bytes":
		return &growth{call}, nil
	}
	return &step{call}, nil
}

// step is any step that has no cost beside its own.
type step struct{ interpreter.InterpretableV2 }

// Exec implements interpreter.InterpretableV2.
func (s *step) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	meterIn(frame).spend(1)
	return s.InterpretableV2.Exec(frame)
}

// Eval implements interpreter.Interpretable.
func (s *step) Eval(vars interpreter.Activation) ref.Val { return s.Exec(interpreter.AsFrame(vars)) }

// access is a variable and what is selected in it. A long string pays each time,
// for whatever takes it next may read all of it.
type access struct {
	interpreter.InterpretableAttribute
}

// Exec implements interpreter.InterpretableV2.
func (a *access) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	m := meterIn(frame)
	m.spend(1)
	v := a.InterpretableAttribute.Exec(frame)
	switch v := v.(type) {
	case types.String:
		m.spend(len(v) / bytesPerStep)
	case types.Bytes:
		m.spend(len(v) / bytesPerStep)
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (a *access) Eval(vars interpreter.Activation) ref.Val { return a.Exec(interpreter.AsFrame(vars)) }

// construction is a list or a map.
type construction struct {
	interpreter.InterpretableConstructor
}

// Exec implements interpreter.InterpretableV2.
func (c *construction) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	m, n := meterIn(frame), len(c.InitVals())
	m.spend(2 + n)
	m.make(48 + 16*n)
	return c.InterpretableConstructor.Exec(frame)
}

// Eval implements interpreter.Interpretable.
func (c *construction) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// comparison is ==, != or in.
type comparison struct {
	interpreter.InterpretableCall
	left, right interpreter.InterpretableV2
}

// Exec implements interpreter.InterpretableV2.
func (c *comparison) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	l, r := c.left.Exec(frame), c.right.Exec(frame)
	if types.IsUnknownOrError(l) {
		return l
	}
	if types.IsUnknownOrError(r) {
		return r
	}
	m := meterIn(frame)
	if c.Function() != "@in" {
		m.weigh(l)
		m.weigh(r)
		equal := types.Equal(l, r)
		if equal, ok := equal.(types.Bool); ok && c.Function() == "_!=_" {
			return !equal
		}
		return types.LabelErrNode(c.ID(), equal)
	}
	if _, ok := r.(traits.Mapper); !ok { // a map looks its key up
		m.weigh(r)
	}
	m.weigh(l)
	if in, ok := r.(traits.Container); ok {
		return types.LabelErrNode(c.ID(), in.Contains(l))
	}
	return types.NewErrWithNodeID(c.ID(), "no such overload")
}

// Eval implements interpreter.Interpretable.
func (c *comparison) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// match is matches() with a pattern that is compiled once.
type match struct {
	interpreter.InterpretableCall
	text interpreter.InterpretableV2
	re   *regexp.Regexp
	size int
}

// Exec implements interpreter.InterpretableV2.
func (m *match) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := m.text.Exec(frame)
	if types.IsUnknownOrError(v) {
		return v
	}
	s, ok := v.(types.String)
	if !ok {
		return types.NewErrWithNodeID(m.ID(), "no such overload")
	}
	meterIn(frame).spend(1 + len(s)*m.size/4)
	return types.Bool(m.re.MatchString(string(s)))
}

// Eval implements interpreter.Interpretable.
func (m *match) Eval(vars interpreter.Activation) ref.Val { return m.Exec(interpreter.AsFrame(vars)) }

// growth is a step that makes a string. Each is at most twice as long as the ones
// that were there together, so that counting afterwards is soon enough.
type growth struct{ interpreter.InterpretableCall }

// Exec implements interpreter.InterpretableV2.
func (g *growth) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	m := meterIn(frame)
	m.spend(1)
	v := g.InterpretableCall.Exec(frame)
	switch v := v.(type) {
	case types.String:
		m.make(len(v))
		m.spend(len(v) / bytesPerStep)
	case types.Bytes:
		m.make(len(v))
		m.spend(len(v) / bytesPerStep)
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (g *growth) Eval(vars interpreter.Activation) ref.Val { return g.Exec(interpreter.AsFrame(vars)) }
