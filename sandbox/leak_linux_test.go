package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// held is what the process holds of the system.
type held struct{ maps, files, goroutines, residentKiB int }

func holds(t *testing.T) held {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	h := held{maps: strings.Count(string(maps), "\n"), files: len(files), goroutines: runtime.NumGoroutine()}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			if err := json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimSpace(value), " kB")), &h.residentKiB); err != nil {
				t.Fatal(err)
			}
		}
	}
	return h
}

// TestNothingIsLeft: executions of every kind of end leave no mapping, file,
// goroutine or memory behind.
func TestNothingIsLeft(t *testing.T) {
	e := testEngine(t)
	round := func(n int) {
		for range n {
			for _, p := range []Program{
				{Source: `function main(){return tools.call("t",{})}`},
				{Source: `for(;;);`, Limits: contract.Limits{WallClockMs: 1}},
				{Source: `function f(){return f()+1} function main(){return f()}`, Limits: contract.Limits{StackBytes: 64 << 10}},
				{Source: `function main(){return "x".repeat(1e6).length}`},
				{Source: `function main(){const a=[];for(;;)a.push(new Uint8Array(1<<20))}`, Limits: contract.Limits{HeapBytes: 4 << 20}},
				{Source: `function main(`},
			} {
				_, err := e.Execute(t.Context(), p, failsWith(errors.New("terminal")))
				if f, ok := contract.AsFault(err); err != nil && (!ok || f.Reason == contract.ReasonWorkerLost) {
					t.Fatal(err)
				}
			}
		}
	}
	n := 60
	if testing.Short() {
		n = 10
	}
	round(5)
	before := holds(t)
	round(n)
	after := holds(t)
	if after.maps > before.maps+8 || after.files > before.files || after.goroutines > before.goroutines || after.residentKiB > before.residentKiB+16<<10 {
		t.Errorf("held %+v before and %+v after %d rounds", before, after, n)
	}
}

// TestNativeStack: a runaway recursion with the largest stack costs the process
// a bounded amount of Go memory.
func TestNativeStack(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a quiet heap")
	}
	e := testEngine(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	_, err := e.Execute(ctx, Program{Source: `function f(){return f()+1} function main(){return f()}`, Limits: contract.Limits{StackBytes: 1 << 20}}, nil)
	runtime.ReadMemStats(&b)
	if f, ok := contract.AsFault(err); !ok || f.Reason != contract.ReasonStackExhausted {
		t.Fatalf("error %v, want StackExhausted", err)
	}
	if got := int64(b.TotalAlloc - a.TotalAlloc); got > 128<<20 {
		t.Errorf("%d bytes of Go memory for 1 MiB of stack", got)
	}
}
