package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/sandbox/check"
)

// Program is one program and what it may use.
type Program struct {
	// Source is the text of the program, UTF-8 without NUL.
	Source string
	// Input is the argument of main as JSON text; empty means null.
	Input json.RawMessage
	// Limits are the merged limits. A field that is not set takes its default
	// from contract.DefaultLimits; ChildCalls is the Caller's business.
	Limits contract.Limits
}

// Caller is what tools.call reaches. It is called on the execution's goroutine,
// one call at a time, under a context that carries the execution's deadline and
// that Call must heed. The answer is JSON text.
//
// An error that is a *contract.Fault of ClassCatchable is thrown into the
// program as an Error with that message, whose code is the Reason, or what
// GuestCode says if the error implements Coder. Every other error ends the
// execution and becomes its fault; the program cannot catch it.
type Caller interface {
	Call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error)
}

// Coder is implemented by a catchable error that gives the program a narrower
// code than its Reason, such as one that the tool itself declares.
type Coder interface {
	error
	GuestCode() string
}

// Result is what an execution leaves.
type Result struct {
	// Value is the JSON text that main returned; nil after a fault.
	Value json.RawMessage
	// Usage is filled after a fault, too.
	Usage Usage
}

// Usage says what an execution used.
type Usage struct {
	// HeapBytes is the most memory that the heap had, in bytes, comparable to
	// limits.heapBytes. It counts whole pages of 64 KiB and never falls.
	HeapBytes int64 `json:"heapBytes"`
	// Fuel counts the loop heads and function entries that the engine went
	// through, a measure of the work that no machine's speed changes: the same
	// program, input and results of calls use the same, within one build.
	Fuel int64 `json:"fuel"`
	// Calls is how often the Caller was entered.
	Calls int64 `json:"calls"`
}

// execution is one run of one program.
type execution struct {
	engine      *Engine
	in          *instance
	limits      contract.Limits
	caller      Caller
	parent, ctx context.Context // the caller's, and the one with the deadline
	live        bool            // main is running
	calls       int64
	granted     int64 // fuel handed to the VM
}

// Execute runs one program in one fresh runtime: sizes, static check, grammar,
// definitions with inert tools, then main. The error, if any, is always a
// *contract.Fault, with Line and Column where they are known. Execute never
// panics and leaves nothing behind.
func (e *Engine) Execute(ctx context.Context, p Program, c Caller) (Result, error) {
	if !e.begin() {
		return Result{}, contract.Faultf(contract.ReasonWorkerLost, "the sandbox is closed")
	}
	defer e.running.Done()
	x := &execution{engine: e, limits: withDefaults(p.Limits), caller: c, parent: ctx}
	if f := x.limits.CheckWithin(e.ceiling(x.limits)); f != nil {
		return Result{}, f
	}
	if len(p.Input) == 0 {
		p.Input = json.RawMessage("null")
	}
	var cancel context.CancelFunc
	x.ctx, cancel = context.WithTimeoutCause(ctx, x.limits.WallClock(),
		contract.Faultf(contract.ReasonTimeout, "the program ran longer than limits.wallClockMs, %d ms", x.limits.WallClockMs))
	defer cancel()

	value, fault := x.guarded(p)
	res := Result{Usage: Usage{Calls: x.calls}}
	if x.in != nil {
		res.Usage.HeapBytes = int64(x.in.mem.Size()) - int64(e.heapBase())
		res.Usage.Fuel = x.granted - x.in.fuel()
		e.giveBack(x.in, fault == nil)
	}
	if fault = contract.Worst(fault, stopFault(x.parent, x.ctx)); fault != nil {
		return res, fault
	}
	res.Value = value
	return res, nil
}

// ceiling is l with the engine's own two ceilings.
func (e *Engine) ceiling(l contract.Limits) contract.Limits {
	l.HeapBytes, l.StackBytes = e.heapCeiling, e.stackCeiling
	return l
}

func withDefaults(l contract.Limits) contract.Limits {
	d := contract.DefaultLimits()
	for _, p := range []struct {
		v *int64
		d int64
	}{
		{&l.SourceBytes, d.SourceBytes}, {&l.InputBytes, d.InputBytes}, {&l.OutputBytes, d.OutputBytes},
		{&l.HeapBytes, d.HeapBytes}, {&l.StackBytes, d.StackBytes}, {&l.WallClockMs, d.WallClockMs},
	} {
		if *p.v <= 0 {
			*p.v = p.d
		}
	}
	// What is larger is no bound: these keep the arithmetic within its types.
	l.OutputBytes = min(l.OutputBytes, math.MaxInt32-1)
	l.WallClockMs = min(l.WallClockMs, math.MaxInt64/int64(time.Millisecond))
	return l
}

// guarded runs the program and turns a panic of ours into a fault.
func (x *execution) guarded(p Program) (value json.RawMessage, fault *contract.Fault) {
	defer func() {
		if r := recover(); r != nil {
			err, ok := r.(error)
			if !ok {
				err = errors.New("internal panic")
			}
			value, fault = nil, x.faultOf(err)
		}
	}()
	hasMain, f := x.admit(p)
	if f == nil {
		f = stopFault(x.parent, x.ctx)
	}
	if f != nil {
		return nil, f
	}
	s, err := x.run(p, hasMain)
	if err != nil {
		return nil, x.faultOf(err)
	}
	if !crosses(s) {
		return nil, contract.Faultf(contract.ReasonJavaScriptError, "main returned JSON that is nested too deeply")
	}
	return s, nil
}

// admit checks everything that needs no VM, in the order of the contract.
func (x *execution) admit(p Program) (hasMain bool, fault *contract.Fault) {
	if n := int64(len(p.Source)); n > x.limits.SourceBytes {
		return false, contract.Faultf(contract.ReasonSourceTooLarge, "the source has %d bytes, more than limits.sourceBytes, %d", n, x.limits.SourceBytes)
	}
	if n := int64(len(p.Input)); n > x.limits.InputBytes {
		return false, contract.Faultf(contract.ReasonInputTooLarge, "the input has %d bytes, more than limits.inputBytes, %d", n, x.limits.InputBytes)
	}
	if !crosses(p.Input) {
		return false, contract.Faultf(contract.ReasonInvalidInput, "the input is not JSON text in UTF-8")
	}
	info, err := check.Source(p.Source, x.limits.SourceBytes)
	if err != nil {
		if f, ok := contract.AsFault(err); ok {
			return false, f
		}
		return false, contract.Faultf(contract.ReasonSyntaxError, "%s", cleanly(err))
	}
	return info.HasMain, nil
}

// run takes the program through the VM and answers the JSON text of its result.
func (x *execution) run(p Program, hasMain bool) (json.RawMessage, error) {
	var err error
	if x.in, err = x.engine.fresh(x.ctx, x.limits.HeapBytes, x.limits.StackBytes); err != nil {
		return nil, err
	}
	if err := x.in.set(exportFuel, x.refuel()); err != nil {
		return nil, err
	}
	ctx := context.WithValue(x.ctx, hostKey{}, guestCaller(x))
	code, err := x.in.eval(ctx, x.in.file, p.Source, evalStrict|evalCompileOnly)
	if thrown, ok := errors.AsType[*errThrown](err); ok {
		_, err = x.answer(ctx, opDescribe, thrown.value, 0, contract.ReasonSyntaxError)
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	if _, err = x.answer(ctx, opDefine, code, 0, contract.ReasonJavaScriptError); err != nil {
		return nil, err
	}
	if !hasMain {
		return nil, &terminal{contract.Faultf(contract.ReasonJavaScriptError, "the source declares no plain function main(input) at its top level")}
	}
	input, err := x.in.newString(ctx, p.Input)
	if err != nil {
		return nil, err
	}
	x.live = true
	s, err := x.answer(ctx, opMain, input, uint64(x.limits.OutputBytes), contract.ReasonJavaScriptError)
	x.live = false
	return s, err
}

// refuel implements guestCaller. Without limits.fuel there is always more.
func (x *execution) refuel() uint64 {
	n := int64(fuelPerPoll)
	if most := x.limits.Fuel; most > 0 {
		n = min(n, most-x.granted)
	}
	if n <= 0 {
		panic(errFuel)
	}
	x.granted += n
	return uint64(n)
}

// What the prelude's function is asked to do.
const (
	opDefine   = 0
	opMain     = 1
	opDescribe = 2
)

// maxFailureBytes bounds the description of an exception, in UTF-8 bytes; the
// prelude cuts each of its parts, an escape has up to six bytes a character.
const maxFailureBytes = 64 << 10

// answer asks the prelude for one operation. Its answer is checked here: it
// comes from a VM that guest code has run in.
func (x *execution) answer(ctx context.Context, op, a, b uint64, reason contract.Reason) ([]byte, error) {
	v, err := x.in.apply(ctx, x.in.run, op, a, b)
	if err != nil {
		return nil, err
	}
	s, err := x.in.text(ctx, v, max(x.limits.OutputBytes+1, maxFailureBytes))
	tooLarge := &terminal{contract.Faultf(contract.ReasonOutputTooLarge, "the result has more than limits.outputBytes, %d bytes", x.limits.OutputBytes)}
	switch {
	case errors.Is(err, errTooLong), string(s) == "#":
		return nil, tooLarge
	case err != nil:
		return nil, err
	case len(s) > 0 && s[0] == '!':
		return nil, &terminal{describeFailure(s[1:], reason)}
	case len(s) == 0 || s[0] != '=':
		return nil, errForged
	case int64(len(s)-1) > x.limits.OutputBytes:
		return nil, tooLarge
	}
	return s[1:], nil
}
