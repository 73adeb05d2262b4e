package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// traceEnv makes the test binary print the trace instead of testing: it is how
// TestDeterminism gets it from a fresh process. Its value is a cache directory.
const traceEnv = "CODEACT_SANDBOX_TRACE"

// tracedFuel ends what would run for ever, after the same work everywhere.
const tracedFuel = 3_000_000

// tracer is a Caller that writes down what it is asked.
type tracer struct {
	Caller
	seen *strings.Builder
}

func (r tracer) Call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	fmt.Fprintf(r.seen, " %s(%.200s)", name, args)
	return r.Caller.Call(ctx, name, args)
}

// traces runs every program of the vectors, tame and hostile, and answers one
// line for each: all that an execution leaves, but no time.
func traces(tb testing.TB, e *Engine) []string {
	tb.Helper()
	var lines []string
	trace := func(id string, p Program, c Caller) {
		p.Limits.Fuel, p.Limits.WallClockMs = tracedFuel, 600_000
		var calls strings.Builder
		res, err := e.Execute(tb.Context(), p, tracer{c, &calls})
		lines = append(lines, fmt.Sprintf("%s: %.500s %v %+v%s", id, res.Value, err, res.Usage, &calls))
	}
	for _, v := range readVectors[vector](tb, "sandbox.json") {
		if slow(v) {
			continue
		}
		p := v.program(tb)
		trace(v.ID, p, &stubs{tools: v.Tools, limits: p.Limits})
	}
	for _, v := range readVectors[hostileVector](tb, "hostile.json") {
		if !strings.Contains(v.Source, `"slow"`) {
			trace(v.ID, Program{Source: v.Source, Input: hostileInput(v.Input), Limits: hostileLimits()}, &hostileTools{})
		}
	}
	return lines
}

// slow reports whether a tool of the case waits for the wall clock.
func slow(v vector) bool {
	for _, s := range v.Tools {
		if s.SleepMs > 0 {
			return true
		}
	}
	return false
}

// TestDeterminism: the same programs, inputs and results of calls leave the same
// results, failures, calls, heap and fuel: again in this process, and in fresh
// ones with one processor and with two.
func TestDeterminism(t *testing.T) {
	if dir := os.Getenv(traceEnv); dir != "" {
		e, err := New(t.Context(), Options{CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(strings.Join(traces(t, e), "\n"))
		return
	}
	dir := t.TempDir()
	if err := Precompile(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	want := traces(t, testEngine(t))
	if diff := cmp.Diff(want, traces(t, testEngine(t))); diff != "" {
		t.Errorf("the second time in one process (-first +second):\n%s", diff)
	}
	for _, procs := range []string{"1", "2"} {
		t.Run("GOMAXPROCS="+procs, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDeterminism$")
			cmd.Env = append(os.Environ(), traceEnv+"="+dir, "GOMAXPROCS="+procs)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			got, _, _ := bytes.Cut(out, []byte("\nPASS"))
			if diff := cmp.Diff(want, strings.Split(string(got), "\n")); diff != "" {
				t.Errorf("in a fresh process (-this +fresh):\n%s", diff)
			}
		})
	}
}

// TestFuelLimit: limits.fuel ends a program after exactly that much work, and the
// program cannot catch it.
func TestFuelLimit(t *testing.T) {
	e := testEngine(t)
	const source = `function main(n){let s=0;try{for(let i=0;i<n;i++)s+=i}catch(e){return "caught"}finally{s=-1}return s}`
	run := func(fuel int64) (Result, error) {
		return e.Execute(t.Context(), Program{Source: source, Input: json.RawMessage("20000"), Limits: contract.Limits{Fuel: fuel}}, nil)
	}
	free, err := run(0)
	if err != nil {
		t.Fatal(err)
	}
	needs := free.Usage.Fuel
	if needs < 20_000 || needs > 20_000_000 {
		t.Fatalf("20,000 iterations used %d units", needs)
	}
	if res, err := run(needs); err != nil || res.Usage.Fuel != needs {
		t.Errorf("with exactly %d units: used %d, error %v", needs, res.Usage.Fuel, err)
	}
	for _, short := range []int64{1, 1000, fuelPerPoll, needs / 2, needs - 1} {
		res, err := run(short)
		f, ok := contract.AsFault(err)
		if !ok || f.Reason != contract.ReasonTimeout || !strings.Contains(f.Message, "limits.fuel") || res.Usage.Fuel != short {
			t.Errorf("with %d units: used %d, value %s, error %v, want Timeout after exactly that", short, res.Usage.Fuel, res.Value, err)
		}
	}
}
