package sandbox

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Options configures the process-wide engine.
type Options struct {
	// CacheDir holds the compiled form of the module, so that a process starts
	// in a quarter of the time. It may be read-only. Empty means that the
	// compiled form lives in memory only. A directory that is missing, damaged
	// or of another version makes the start slower, never wrong.
	CacheDir string
	// Ceiling holds the largest heapBytes and stackBytes that Execute accepts;
	// zero means 64 MiB of heap and 1 MiB of stack. The stack may not be above
	// 8 MiB, the heap not above 1 GiB.
	Ceiling contract.Limits
}

const (
	defaultHeapCeiling  = 64 << 20
	defaultStackCeiling = 1 << 20
	maxHeapCeiling      = 1 << 30
	// maxStackCeiling keeps the native stack of a runaway recursion, about 42
	// times as large, below what wazero grants.
	maxStackCeiling = 8 << 20
)

// Engine runs programs. One engine serves a whole process and every limit up to
// its ceiling; it is safe for concurrent use.
type Engine struct {
	heapCeiling, stackCeiling int64

	runtime wazero.Runtime
	module  wazero.CompiledModule
	cache   wazero.CompilationCache

	image *image
	fixed fixed

	mu      sync.Mutex // guards idle, closed, and running against a start after Close
	idle    []*instance
	closed  bool
	running sync.WaitGroup
}

//go:embed prelude/*.js
var preludeFiles embed.FS

// preludeSource joins the parts of the prelude, which are one function, in the
// order of their names.
var preludeSource = sync.OnceValues(func() (string, error) {
	names, err := fs.Glob(preludeFiles, "prelude/*.js") // sorted
	var b strings.Builder
	for _, name := range names {
		part, e := preludeFiles.ReadFile(name)
		b.Write(part)
		err = errors.Join(err, e)
	}
	return b.String(), err
})

// New compiles the module, or finds it in the cache, and takes the snapshot
// that every execution starts from. The context bounds this preparation only.
func New(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{heapCeiling: o.Ceiling.HeapBytes, stackCeiling: o.Ceiling.StackBytes}
	if e.heapCeiling == 0 {
		e.heapCeiling = defaultHeapCeiling
	}
	if e.stackCeiling == 0 {
		e.stackCeiling = defaultStackCeiling
	}
	if e.heapCeiling < 0 || e.heapCeiling > maxHeapCeiling || e.stackCeiling < 0 || e.stackCeiling > maxStackCeiling {
		return nil, fmt.Errorf("sandbox: ceiling of %d B heap and %d B stack, want at most %d and %d",
			e.heapCeiling, e.stackCeiling, maxHeapCeiling, maxStackCeiling)
	}
	m, err := moduleFrom(o.CacheDir)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	data, err := staticData(m)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if err := e.compile(ctx, m, o.CacheDir); err != nil {
		return nil, fmt.Errorf("sandbox: compile: %w", err)
	}
	if err := e.snapshot(ctx, data); err != nil {
		_ = e.release(ctx) // the first error counts
		return nil, fmt.Errorf("sandbox: snapshot: %w", err)
	}
	return e, nil
}

// Close waits for running executions and gives everything back. From its start
// on, Execute answers WorkerLost.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	was := e.closed
	e.closed = true
	e.mu.Unlock()
	e.running.Wait()
	if was {
		return nil
	}
	for in := e.takeIdle(); in != nil; in = e.takeIdle() {
		in.close()
	}
	return e.release(ctx)
}

// begin admits one execution, which calls running.Done at its end. Executions
// may nest, so this is no lock that Close could stand between.
func (e *Engine) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.running.Add(1)
	}
	return !e.closed
}

func (e *Engine) release(ctx context.Context) error {
	if e.image != nil {
		e.image.close()
	}
	err := e.runtime.Close(ctx)
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(ctx))
	}
	return err
}

// heapBase is where the stack ends and the heap begins. The stack has room for
// the ceiling; a lower limit only moves its lowest legal address.
func (e *Engine) heapBase() uint32 {
	return imagePages*pageSize + uint32((e.stackCeiling+pageSize-1)/pageSize*pageSize)
}

// snapshot starts QuickJS once, runs the prelude and keeps the memory. Nothing
// outside the memory changes: the stack pointer is back where it was.
func (e *Engine) snapshot(ctx context.Context, data []extent) error {
	in, err := e.place(ctx)
	if err != nil {
		return err
	}
	defer in.close()
	writeExtents(in.linear.b, data)
	if err := in.boot(ctx, e.heapBase(), uint32(e.stackCeiling)); err != nil {
		return fmt.Errorf("%s", cleanly(err))
	}
	e.image = newImage(in.linear, int(in.mem.Size()))
	e.fixed = in.fixed
	return nil
}

// firstGC is how much the heap holds, in bytes, when garbage is first collected;
// later it is when the heap has grown by half. Small programs end before.
const firstGC = 1 << 20

// boot starts QuickJS in a new instance and runs the prelude.
func (in *instance) boot(ctx context.Context, top, stack uint32) error {
	if _, ok := in.mem.Grow(top/pageSize - imagePages); !ok {
		return errors.New("memory does not grow")
	}
	if err := in.setStack(top, stack); err != nil {
		return err
	}
	qjs, err := in.call(ctx, "New_QJS", 0, 0, 0, firstGC)
	if err != nil {
		return err
	}
	if in.context, err = in.call(ctx, "QJS_GetContext", qjs); err != nil {
		return err
	}
	host, err := in.call(ctx, "QJS_CreateFunctionProxy", in.context, 0, 0, 0)
	if err != nil {
		return err
	}
	if err := in.reserve(ctx); err != nil {
		return err
	}
	source, err := preludeSource()
	if err != nil {
		return err
	}
	file, err := in.cstring(ctx, []byte("prelude.js")) // in the scratch, which the longer source does not need
	if err != nil {
		return err
	}
	prelude, err := in.eval(ctx, file, source, 0)
	if err != nil {
		return err
	}
	in.run, err = in.apply(ctx, prelude, host)
	return err
}

// reserve allocates the memory that the host uses in every copy.
func (in *instance) reserve(ctx context.Context) error {
	for _, x := range []struct {
		at   *uint32
		size uint64
	}{{&in.scratch, scratchBytes}, {&in.args, maxArgs * 8}, {&in.file, uint64(len(sourceName)) + 1}} {
		p, err := in.call(ctx, "malloc", x.size)
		if err != nil {
			return err
		}
		*x.at = uint32(p)
	}
	if !in.mem.WriteString(in.file, sourceName+"\x00") {
		return errors.New("allocation out of range")
	}
	return nil
}
