package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// QuickJS values are 64 bits on wasm32, the tag in the upper half.
const (
	tagString    = 0xFFFFFFF9 // -7
	tagRope      = 0xFFFFFFFA // -6
	tagException = 6
	jsUndefined  = uint64(3) << 32
)

// Flags of JS_Eval.
const (
	evalStrict      = 1 << 3
	evalCompileOnly = 1 << 5
)

// sourceName is the file name that error stacks carry.
const sourceName = "main.js"

// errThrown says that JavaScript threw; the value stays in the VM.
type errThrown struct{ value uint64 }

func (*errThrown) Error() string { return "JavaScript exception" }

// fixed are values that are the same in every copy of the image.
type fixed struct {
	context uint64 // JSContext*
	run     uint64 // the function that the prelude returned
	// Memory that QuickJS knows nothing of: for short C strings, for the
	// arguments of apply, and the name of the program's file.
	scratch, args, file uint32
}

// instance is one copy of the module with its own memory. It serves one
// execution at a time and is not safe for concurrent use.
type instance struct {
	fixed
	mod    api.Module
	mem    api.Memory
	linear *linearMemory
	funcs  map[string]api.Function
}

// place makes an instance before anything has run in it.
func (e *Engine) place(ctx context.Context) (*instance, error) {
	lm, err := newLinearMemory(uint64(e.heapBase()) + uint64(e.heapCeiling))
	if err != nil {
		return nil, err
	}
	mod, err := e.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, lm), e.module,
		wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		lm.Free()
		return nil, err
	}
	return &instance{mod: mod, mem: mod.Memory(), linear: lm, funcs: map[string]api.Function{}}, nil
}

// fresh gives an instance in the state of the snapshot for these limits, in bytes.
func (e *Engine) fresh(ctx context.Context, heap, stack int64) (*instance, error) {
	limit := uint64(e.heapBase()) + uint64(heap)/pageSize*pageSize
	if limit < uint64(e.image.size) {
		return nil, errHeap
	}
	in := e.takeIdle()
	if in == nil {
		var err error
		if in, err = e.place(ctx); err != nil {
			return nil, err
		}
		if err := e.restore(in); err != nil {
			in.close()
			return nil, err
		}
	}
	in.linear.limit = limit
	if err := in.setStack(e.heapBase(), uint32(stack)); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

func (e *Engine) restore(in *instance) error {
	if _, ok := in.mem.Grow(uint32(e.image.size/pageSize) - imagePages); !ok {
		return errors.New("memory does not grow to the snapshot")
	}
	in.fixed = e.fixed
	return e.image.restore(in.linear)
}

// deep are the functions that can recurse: each keeps the native stack that it
// once needed, up to 51 MB, so that none of them serves two executions.
var deep = []string{"QJS_Call", "QJS_Eval", "QJS_ToCString", "JS_GetException"}

// giveBack takes an instance whose execution has ended. If nothing ended it from
// outside and its memory has not grown, its state is the memory's content and
// the four variables of the module: with these as they were it is as good as a new
// one, which is several times as dear.
func (e *Engine) giveBack(in *instance, sound bool) {
	if !sound || in.mem.Size() != uint32(e.image.size) || in.overran() || e.image.reset(in.linear) != nil {
		in.close()
		return
	}
	for _, name := range deep {
		delete(in.funcs, name)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || len(e.idle) >= runtime.GOMAXPROCS(0) {
		in.close()
		return
	}
	e.idle = append(e.idle, in)
}

func (e *Engine) takeIdle() *instance {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.idle) == 0 {
		return nil
	}
	in := e.idle[len(e.idle)-1]
	e.idle = e.idle[:len(e.idle)-1]
	return in
}

// redZone is left free at the lower end of the stack: a function that calls no
// other one may use 128 bytes below the stack pointer without moving it.
const redZone = 256

// setStack puts the C stack below top and allows it size bytes.
func (in *instance) setStack(top, size uint32) error {
	if err := in.set(exportSP, uint64(top)); err != nil {
		return err
	}
	return in.set(exportLow, uint64(top-size+redZone))
}

// set changes a global variable of the module.
func (in *instance) set(name string, v uint64) error {
	g, ok := in.mod.ExportedGlobal(name).(api.MutableGlobal)
	if !ok {
		return fmt.Errorf("no mutable global %s", name)
	}
	g.Set(v)
	return nil
}

// fuel is how many units are left until the next poll.
func (in *instance) fuel() int64 { return int64(int32(in.mod.ExportedGlobal(exportFuel).Get())) }

// overran reports whether the C stack hit its bound.
func (in *instance) overran() bool { return in.mod.ExportedGlobal(exportOver).Get() != 0 }

// close gives the memory back. The VM is not asked to free anything.
func (in *instance) close() { _ = in.mod.Close(context.Background()) }

// call runs an exported function and returns its result, if it has one.
func (in *instance) call(ctx context.Context, name string, args ...uint64) (uint64, error) {
	f := in.funcs[name]
	if f == nil {
		if f = in.mod.ExportedFunction(name); f == nil {
			return 0, fmt.Errorf("no function %s", name)
		}
		in.funcs[name] = f
	}
	rs, err := f.Call(ctx, args...)
	if err != nil || len(rs) == 0 {
		return 0, err
	}
	return rs[0], nil
}

// eval compiles, and unless flags say otherwise runs, a script. The name of its
// file is a C string.
func (in *instance) eval(ctx context.Context, file uint32, src string, flags uint64) (uint64, error) {
	if src == "" {
		src = " " // qjs takes an empty buffer for the name of a file
	}
	c, err := in.cstring(ctx, []byte(src))
	if err != nil {
		return 0, err
	}
	o, err := in.call(ctx, "QJS_CreateEvalOption", uint64(c), 0, 0, uint64(file), flags)
	if err != nil {
		return 0, err
	}
	v, err := in.call(ctx, "QJS_Eval", in.context, o)
	if err != nil {
		return 0, err
	}
	if err := in.free(ctx, c); err != nil {
		return 0, err
	}
	return in.thrown(ctx, v)
}

// maxArgs is the most arguments of apply.
const maxArgs = 4

// apply calls a JavaScript function with this undefined. It does not nest: the
// arguments have one place.
func (in *instance) apply(ctx context.Context, fn uint64, args ...uint64) (uint64, error) {
	for i, a := range args {
		if i == maxArgs || !in.mem.WriteUint64Le(in.args+uint32(i)*8, a) {
			return 0, errors.New("allocation out of range")
		}
	}
	v, err := in.call(ctx, "QJS_Call", in.context, fn, jsUndefined, uint64(len(args)), uint64(in.args))
	if err != nil {
		return 0, err
	}
	return in.thrown(ctx, v)
}

// thrown turns an exception into an error that holds the thrown value.
func (in *instance) thrown(ctx context.Context, v uint64) (uint64, error) {
	if v>>32 != tagException {
		return v, nil
	}
	x, err := in.call(ctx, "JS_GetException", in.context)
	if err != nil {
		return 0, err
	}
	return 0, &errThrown{x}
}
