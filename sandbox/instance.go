package sandbox

import (
	"context"
	"errors"
	"fmt"

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

// instance is one copy of the module with its own memory. It serves one
// execution and is closed; it is not safe for concurrent use.
type instance struct {
	mod     api.Module
	mem     api.Memory
	context uint64 // JSContext*
	run     uint64 // the function that the prelude returned
	funcs   map[string]api.Function
}

// place makes an instance whose memory may reach limit bytes, before anything
// has run in it.
func (e *Engine) place(ctx context.Context, limit uint64) (*instance, *linearMemory, error) {
	lm, err := newLinearMemory(limit)
	if err != nil {
		return nil, nil, err
	}
	mod, err := e.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, lm), e.module,
		wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		lm.Free()
		return nil, nil, err
	}
	return &instance{mod: mod, mem: mod.Memory(), funcs: map[string]api.Function{}}, lm, nil
}

// fresh makes an instance from the snapshot for these limits, in bytes.
func (e *Engine) fresh(ctx context.Context, heap, stack int64) (*instance, error) {
	limit := uint64(e.heapBase()) + uint64(heap)/pageSize*pageSize
	if limit < uint64(e.image.size) {
		return nil, errHeap
	}
	in, lm, err := e.place(ctx, limit)
	if err != nil {
		return nil, err
	}
	if err := e.restore(in, lm, stack); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

func (e *Engine) restore(in *instance, lm *linearMemory, stack int64) error {
	if _, ok := in.mem.Grow(uint32(e.image.size/pageSize) - imagePages); !ok {
		return errors.New("memory does not grow to the snapshot")
	}
	if err := e.image.restore(lm); err != nil {
		return err
	}
	in.context, in.run = e.context, e.run
	return in.setStack(e.heapBase(), uint32(stack))
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

// cstring copies s, which holds no NUL, into the VM. The caller frees it.
func (in *instance) cstring(ctx context.Context, s string) (uint64, error) {
	p, err := in.call(ctx, "malloc", uint64(len(s)+1))
	if err != nil {
		return 0, err
	}
	if p == 0 {
		return 0, errHeap
	}
	if !in.mem.WriteString(uint32(p), s) || !in.mem.WriteByte(uint32(p)+uint32(len(s)), 0) {
		return 0, errors.New("allocation out of range")
	}
	return p, nil
}

// newString makes a JavaScript string of s, which holds no NUL.
func (in *instance) newString(ctx context.Context, s string) (uint64, error) {
	p, err := in.cstring(ctx, s)
	if err != nil {
		return 0, err
	}
	v, err := in.call(ctx, "QJS_NewString", in.context, p)
	if err != nil {
		return 0, err
	}
	if v>>32 == tagException {
		return 0, errHeap
	}
	_, err = in.call(ctx, "free", p)
	return v, err
}

// text copies a JavaScript string out of the VM. Its size in UTF-8 is checked
// against limit before anything is copied; a longer one answers errTooLong.
// What is not a string is refused, because converting it would run guest code.
func (in *instance) text(ctx context.Context, v uint64, limit int64) (string, error) {
	if t := v >> 32; t != tagString && t != tagRope {
		return "", errors.New("a value that is not a string crossed the boundary")
	}
	p, err := in.call(ctx, "QJS_ToCString", in.context, v)
	if err != nil {
		return "", err
	}
	if p == 0 {
		return "", errHeap
	}
	packed, ok := in.mem.ReadUint64Le(uint32(p))
	if !ok {
		return "", errors.New("string out of range")
	}
	addr, size := uint32(packed>>32), uint32(packed)
	if int64(size) > limit {
		return "", errTooLong
	}
	b, ok := in.mem.Read(addr, size)
	if !ok {
		return "", errors.New("string out of range")
	}
	s := string(b)
	if _, err := in.call(ctx, "JS_FreeCString", in.context, uint64(addr)); err != nil {
		return "", err
	}
	_, err = in.call(ctx, "free", p)
	return s, err
}

// eval compiles, and unless flags say otherwise runs, a script.
func (in *instance) eval(ctx context.Context, file, src string, flags uint64) (uint64, error) {
	if src == "" {
		src = " " // qjs takes an empty buffer for the name of a file
	}
	c, err := in.cstring(ctx, src)
	if err != nil {
		return 0, err
	}
	f, err := in.cstring(ctx, file)
	if err != nil {
		return 0, err
	}
	o, err := in.call(ctx, "QJS_CreateEvalOption", c, 0, 0, f, flags)
	if err != nil {
		return 0, err
	}
	v, err := in.call(ctx, "QJS_Eval", in.context, o)
	if err != nil {
		return 0, err
	}
	for _, p := range []uint64{c, f} {
		if _, err := in.call(ctx, "free", p); err != nil {
			return 0, err
		}
	}
	return in.thrown(ctx, v)
}

// apply calls a JavaScript function with this undefined.
func (in *instance) apply(ctx context.Context, fn uint64, args ...uint64) (uint64, error) {
	p, err := in.call(ctx, "malloc", uint64(len(args)*8+8))
	if err != nil {
		return 0, err
	}
	for i, a := range args {
		if !in.mem.WriteUint64Le(uint32(p)+uint32(i)*8, a) {
			return 0, errors.New("allocation out of range")
		}
	}
	v, err := in.call(ctx, "QJS_Call", in.context, fn, jsUndefined, uint64(len(args)), p)
	if err != nil {
		return 0, err
	}
	if _, err := in.call(ctx, "free", p); err != nil {
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
