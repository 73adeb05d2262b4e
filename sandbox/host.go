package sandbox

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// hostKey carries the execution to the host functions.
type hostKey struct{}

// guestCaller is the side of an execution that guest code can reach.
type guestCaller interface {
	// toolsCall answers a call of the prelude's host function. It may panic
	// with a *terminal, which guest code cannot catch.
	toolsCall(ctx context.Context, args []uint64) uint64
	// refuel answers how many units of fuel there are until it is asked again,
	// at least one. It may panic, as toolsCall.
	refuel() uint64
}

// maxHostArgs is more than the prelude ever passes.
const maxHostArgs = 8

// hostProxy is env.jsFunctionProxy(context, this, argc, argv). With a null
// context it is the poll that the rewriting put in, and answers the new fuel.
func hostProxy(ctx context.Context, m api.Module, stack []uint64) {
	x, known := ctx.Value(hostKey{}).(guestCaller)
	if uint32(stack[0]) == 0 {
		if ctx.Err() != nil {
			panic(errStopped)
		}
		stack[0] = fuelPerPoll
		if known {
			stack[0] = x.refuel()
		}
		return
	}
	if !known { // only while the prelude looks for this function
		stack[0] = jsUndefined
		return
	}
	argc, argv := uint32(stack[2]), uint32(stack[3])
	if argc > maxHostArgs {
		panic(errForged)
	}
	args := make([]uint64, argc)
	for i := range args {
		var ok bool
		if args[i], ok = m.Memory().ReadUint64Le(argv + uint32(i)*8); !ok {
			panic(errForged)
		}
	}
	stack[0] = x.toolsCall(ctx, args)
}

var errForged = errors.New("forged host call")

// wasiImports are the signatures of the module's WASI imports: i is i32, I is
// i64; all but proc_exit answer an errno.
var wasiImports = map[string]string{
	"args_get": "ii", "args_sizes_get": "ii", "environ_get": "ii", "environ_sizes_get": "ii",
	"clock_time_get": "iIi", "fd_close": "i", "fd_fdstat_get": "ii", "fd_fdstat_set_flags": "ii",
	"fd_prestat_get": "ii", "fd_prestat_dir_name": "iii", "fd_read": "iiii", "fd_readdir": "iiiIi",
	"fd_seek": "iIii", "fd_write": "iiii", "path_create_directory": "iii", "path_filestat_get": "iiiii",
	"path_filestat_set_times": "iiiiIIi", "path_open": "iiiiiIIii", "path_remove_directory": "iii",
	"path_rename": "iiiiii", "path_unlink_file": "iii", "poll_oneoff": "iiii", "proc_exit": "i",
}

// wasiNoSys is the errno "function not supported".
const wasiNoSys = 52

// addHost gives the module its imports: the one host function, and a WASI in
// which nothing exists, the clock stands still and exit ends the execution.
func addHost(ctx context.Context, rt wazero.Runtime) error {
	b := rt.NewHostModuleBuilder("wasi_snapshot_preview1")
	for name, sig := range wasiImports {
		results := []api.ValueType{api.ValueTypeI32}
		f := func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = wasiNoSys }
		switch name {
		case "proc_exit":
			results = nil
			f = func(context.Context, api.Module, []uint64) { panic(errExit) }
		case "clock_time_get":
			f = func(_ context.Context, m api.Module, stack []uint64) {
				m.Memory().WriteUint64Le(uint32(stack[2]), 0)
				stack[0] = 0
			}
		}
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(f), valueTypes(sig), results).Export(name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return err
	}
	_, err := rt.NewHostModuleBuilder("env").NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(hostProxy), valueTypes("iIii"), valueTypes("I")).
		Export("jsFunctionProxy").Instantiate(ctx)
	return err
}

var errExit = errors.New("the VM asked to exit")

func valueTypes(sig string) []api.ValueType {
	var ts []api.ValueType
	for _, c := range sig {
		if c == 'i' {
			ts = append(ts, api.ValueTypeI32)
		} else {
			ts = append(ts, api.ValueTypeI64)
		}
	}
	return ts
}
