//go:build unix

package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// unboundedEngine runs the module as qjs ships it, without any rewriting: no
// fuel, no check of the stack, no allocation sizes. Everything around it is the
// same, which leaves what the bounds cost. It is for measuring only: nothing
// stops a loop, and deep recursion runs over the static data.
func unboundedEngine(tb testing.TB) *Engine {
	tb.Helper()
	secs, err := splitSections(qjsWasm)
	if err != nil {
		tb.Fatal(err)
	}
	at := map[byte]*section{}
	for i := range secs {
		at[secs[i].id] = &secs[i]
	}
	if err := addGlobals(at[secGlobal], at[secExport]); err != nil {
		tb.Fatal(err)
	}
	data, err := readData(at[secData].body)
	if err != nil {
		tb.Fatal(err)
	}
	kept := secs[:0]
	for _, s := range secs {
		if s.id != secData && s.id != secCount {
			kept = append(kept, s)
		}
	}
	e := &Engine{heapCeiling: defaultHeapCeiling, stackCeiling: defaultStackCeiling}
	if err := e.compile(tb.Context(), joinSections(kept), ""); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close(context.Background()) }) // only measured
	if err := e.snapshot(tb.Context(), data); err != nil {
		tb.Fatal(err)
	}
	return e
}

// benchPrograms is where the programs of `make bench` are, which every subject
// of it runs.
const benchPrograms = "../test/bench/suite/programs"

// benchProgram answers a program's source and the value it returns.
func benchProgram(tb testing.TB, name string) (source, want string) {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(benchPrograms, name+".js"))
	if err != nil {
		tb.Fatal(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	want, ok := strings.CutPrefix(line, "// want: ")
	if !ok {
		tb.Fatalf("%s.js has no wanted value in its first line", name)
	}
	return string(b), want
}

// BenchmarkUnbounded is one subject of `make bench`: the compute programs with
// all bounds off. The programs recurse no deeper than the module's own 64 KiB
// of stack allow.
func BenchmarkUnbounded(b *testing.B) {
	e := unboundedEngine(b)
	for _, name := range []string{"fib", "sieve", "json", "join", "sort", "regex", "mapset", "mapint", "classes"} {
		source, want := benchProgram(b, name)
		b.Run("compute/"+name, func(b *testing.B) {
			defer benchCPU(b)()
			for range b.N {
				r, err := e.Execute(b.Context(), Program{Source: source, Limits: contract.Limits{WallClockMs: 600_000}}, nil)
				if err != nil || string(r.Value) != want {
					b.Fatalf("%s, %v, want %s", r.Value, err, want)
				}
			}
		})
	}
}

// BenchmarkBounded is the one measure of `make bench` that the public API does
// not offer: a fresh runtime, made and closed, that runs nothing. It is a new
// one each time; executions may get one that was restored.
func BenchmarkBounded(b *testing.B) {
	e := testEngine(b)
	b.Run("fresh", func(b *testing.B) {
		defer benchCPU(b)()
		d := contract.DefaultLimits()
		for range b.N {
			in, err := e.fresh(b.Context(), d.HeapBytes, d.StackBytes)
			if err != nil {
				b.Fatal(err)
			}
			in.close()
		}
	})
}

// benchCPU reports the processor time of all threads, until the returned
// function is called.
func benchCPU(b *testing.B) func() {
	used := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}
