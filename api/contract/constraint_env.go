package contract

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// The environments are built when the first tool has constraints, for it takes
// some milliseconds that a pod without any need not pay.
var (
	callEnv   = sync.OnceValues(func() (*cel.Env, error) { return newConstraintEnv(false) })
	resultEnv = sync.OnceValues(func() (*cel.Env, error) { return newConstraintEnv(true) })
)

func constraintEnv(withResult bool) (*cel.Env, error) {
	if withResult {
		return resultEnv()
	}
	return callEnv()
}

var (
	runType      = types.NewObjectType("codeact.Run")
	callType     = types.NewObjectType("codeact.Call")
	previousType = types.NewObjectType("codeact.PreviousCall")
)

// newConstraintEnv is CEL's standard library and nothing beside it. The extension
// libraries have functions whose result is larger than what they were given, or
// whose cost the library does not know.
func newConstraintEnv(withResult bool) (*cel.Env, error) {
	registry := types.NewEmptyRegistry() // without the messages of protobuf
	if err := registry.RegisterType(types.BoolType, types.BytesType, types.DoubleType, types.DurationType, types.IntType, types.ListType,
		types.MapType, types.NullType, types.StringType, types.TimestampType, types.TypeType, types.UintType); err != nil {
		return nil, err
	}
	options := []cel.EnvOption{
		cel.CustomTypeAdapter(registry),
		cel.CustomTypeProvider(provider{registry}),
		cel.StdLib(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(MaxConstraintChars),
		cel.ParserRecursionLimit(100),
		cel.ParserErrorRecoveryLimit(1),
		cel.Variable("args", types.DynType),
		cel.Variable("run", runType),
		cel.Variable("call", callType),
	}
	if withResult {
		options = append(options, cel.Variable("result", types.DynType))
	}
	return cel.NewCustomEnv(options...)
}

// provider knows the types of run and call, so that a field that they do not have
// is found at compile time. It knows no other messages.
type provider struct{ *types.Registry }

var fieldsOf = map[string]map[string]*types.FieldType{
	runType.TypeName(): {
		"namespace": field(types.StringType, func(r ConstraintRun) any { return r.Namespace }),
		"name":      field(types.StringType, func(r ConstraintRun) any { return r.Name }),
		"labels":    field(types.NewMapType(types.StringType, types.StringType), func(r ConstraintRun) any { return r.Labels }),
		"recipe":    field(types.StringType, func(r ConstraintRun) any { return r.Recipe }),
	},
	callType.TypeName(): {
		"sequence": field(types.IntType, func(c callValue) any { return c.sequence }),
		"previous": field(types.NewListType(previousType), func(c callValue) any { return c.previous }),
	},
	previousType.TypeName(): {
		"tool":   field(types.StringType, func(p PreviousCall) any { return p.Tool }),
		"state":  field(types.StringType, func(p PreviousCall) any { return string(p.State) }),
		"reason": field(types.StringType, func(p PreviousCall) any { return string(p.Reason) }),
	},
}

func field[T any](t *types.Type, get func(T) any) *types.FieldType {
	return &types.FieldType{
		Type:  t,
		IsSet: func(target any) bool { _, ok := target.(T); return ok },
		GetFrom: func(target any) (any, error) {
			v, ok := target.(T)
			if !ok {
				return nil, errors.New("no such overload")
			}
			return get(v), nil
		},
	}
}

// FindStructType implements types.Provider.
func (p provider) FindStructType(name string) (*types.Type, bool) {
	if _, ok := fieldsOf[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return nil, false
}

// FindStructFieldNames implements types.Provider.
func (p provider) FindStructFieldNames(name string) ([]string, bool) {
	fields, ok := fieldsOf[name]
	names := make([]string, 0, len(fields))
	for n := range fields {
		names = append(names, n)
	}
	return names, ok
}

// FindStructFieldType implements types.Provider.
func (p provider) FindStructFieldType(name, f string) (*types.FieldType, bool) {
	t, ok := fieldsOf[name][f]
	return t, ok
}

// message is a value of one of the three types.
type message struct {
	t *types.Type
	v any
}

// ConvertToNative implements ref.Val. Nothing converts such a value.
func (m message) ConvertToNative(reflect.Type) (any, error) {
	return nil, errors.New("no such overload")
}

// ConvertToType implements ref.Val.
func (m message) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return m.t
	}
	return types.NewErr("no such overload")
}

// Equal implements ref.Val. No two messages are equal: their fields may be.
func (m message) Equal(ref.Val) ref.Val { return types.NewErr("no such overload") }

// Type implements ref.Val.
func (m message) Type() ref.Type { return m.t }

// Value implements ref.Val.
func (m message) Value() any { return m.v }

// callValue is a ConstraintCall whose list is made once, and not with every look at it.
type callValue struct {
	sequence int64
	previous ref.Val
}

func previousList(calls []PreviousCall) ref.Val {
	list := make([]ref.Val, len(calls))
	for i, c := range calls {
		list[i] = message{previousType, c}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, list)
}

// activation resolves the variables of one evaluation.
type activation struct {
	args, result any
	withResult   bool
	run, call    ref.Val
	meter        *evalMeter
}

func newActivation(v ConstraintVars, withResult bool) (*activation, error) {
	a := &activation{withResult: withResult, run: message{runType, v.Run}, call: message{callType, callValue{v.Call.Sequence, previousList(v.Call.Previous)}}}
	var err error
	if a.args, err = celValue(v.Args); err != nil {
		return nil, errors.New("the arguments are not JSON, or hold a number beyond what a double can hold")
	}
	if !withResult {
		return a, nil
	}
	if a.result, err = celValue(v.Result); err != nil {
		return nil, errors.New("the result is not JSON, or holds a number beyond what a double can hold")
	}
	return a, nil
}

// ResolveName implements cel.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	switch name {
	case "args":
		return a.args, true
	case "result":
		return a.result, a.withResult
	case "run":
		return a.run, true
	case "call":
		return a.call, true
	case meterName:
		return a.meter, true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (a *activation) Parent() cel.Activation { return nil }

// celValue reads JSON text: a whole number within 64 bits becomes an int, however
// it is spelled, another number a double.
func celValue(text json.RawMessage) (any, error) {
	if len(text) == 0 {
		return types.NullValue, nil
	}
	x, err := DecodeJSON(text)
	if err != nil {
		return nil, err
	}
	return celTree(x)
}

func celTree(x any) (_ any, err error) {
	switch x := x.(type) {
	case json.Number:
		return celNumber(string(x))
	case []any:
		for i, v := range x {
			if x[i], err = celTree(v); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k, v := range x {
			if x[k], err = celTree(v); err != nil {
				return nil, err
			}
		}
	}
	return x, nil
}

func celNumber(s string) (any, error) {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, nil
	}
	if err := checkNumber(s); err != nil {
		return nil, err
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, err
	}
	// 1.0 and 1e3 are whole. Above 2^53 a double may be another number than the one
	// that was written, and stays what it is.
	if strings.ContainsAny(s, ".eE") && f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		return int64(f), nil
	}
	return f, nil
}
