package sandbox

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// fuzzLimits end every program after the same work, long before the clock.
func fuzzLimits() contract.Limits {
	return contract.Limits{
		SourceBytes: 64 << 10, InputBytes: 64 << 10, OutputBytes: 16 << 10,
		HeapBytes: 4 << 20, StackBytes: 128 << 10, WallClockMs: 600_000, Fuel: 300_000,
	}
}

// ends makes a case that does not end a failure of the process: fuzzing has no
// other way to say which case it was.
func ends(t *testing.T) {
	timer := time.AfterFunc(60*time.Second, func() { panic("the case does not end: " + t.Name()) })
	t.Cleanup(func() { timer.Stop() })
}

// vectorPrograms are the programs of all vectors that are not long.
func vectorPrograms(tb testing.TB) []Program {
	tb.Helper()
	var out []Program
	for _, v := range readVectors[vector](tb, "sandbox.json") {
		p := Program{Source: sourceOf(tb, v.Source)}
		if v.Input != nil {
			p.Input = expand(v.Input)
		}
		out = append(out, p)
	}
	for _, v := range readVectors[hostileVector](tb, "hostile.json") {
		out = append(out, Program{Source: v.Source, Input: hostileInput(v.Input)})
	}
	short := out[:0]
	for _, p := range out {
		if len(p.Source) < 4096 && len(p.Input) < 4096 {
			short = append(short, p)
		}
	}
	return short
}

// obedient answers every tool at once, in every way that a Caller may.
type obedient struct{ hostileTools }

func (o *obedient) Call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	if name == "fail" || name == "term" {
		return o.hostileTools.Call(ctx, name, args)
	}
	if o.calls++; o.calls > 100 {
		return nil, contract.Faultf(contract.ReasonCallLimitExceeded, "too many calls")
	}
	return args, nil
}

// FuzzExecute: whatever the source and the input, an execution ends with a clean
// value or fault within its limits, twice the same, and leaves nothing behind.
func FuzzExecute(f *testing.F) {
	for _, p := range vectorPrograms(f) {
		f.Add(p.Source, string(p.Input))
	}
	e := testEngine(f)
	limits, runs := fuzzLimits(), 0
	var at start
	f.Fuzz(func(t *testing.T, source, input string) {
		ends(t)
		p := Program{Source: source, Input: json.RawMessage(input), Limits: limits}
		res, err := e.Execute(t.Context(), p, &obedient{})
		judgeOutcome(t, limits, res, err)
		again, err2 := e.Execute(t.Context(), p, &obedient{})
		one, _ := contract.AsFault(err)
		two, _ := contract.AsFault(err2)
		if diff := cmp.Diff(res, again) + cmp.Diff(one, two); diff != "" {
			t.Errorf("the second time (-first +second):\n%s", diff)
		}
		if runs++; runs%500 == 0 {
			at.compare(t)
		}
	})
}

// judgeOutcome holds what an execution left to its limits.
func judgeOutcome(t *testing.T, limits contract.Limits, res Result, err error) {
	t.Helper()
	if res.Usage.HeapBytes > limits.HeapBytes || res.Usage.Fuel > limits.Fuel {
		t.Errorf("usage %+v beyond the limits %+v", res.Usage, limits)
	}
	if err == nil {
		if !utf8.Valid(res.Value) || !json.Valid(res.Value) || int64(len(res.Value)) > limits.OutputBytes {
			t.Errorf("value of %d bytes: %.200q", len(res.Value), res.Value)
		}
		return
	}
	f, ok := contract.AsFault(err)
	if !ok || f.Reason == contract.ReasonWorkerLost || !f.Reason.Known() || len(f.Message) > contract.MaxMessageBytes ||
		strings.ContainsFunc(f.Message, unicode.IsControl) || !utf8.ValidString(f.Message) || res.Value != nil {
		t.Errorf("not a clean outcome: %.300v", err)
	}
}

// start is what the process held after the first executions.
type start struct {
	known            bool
	goroutines, maps int
	heap             uint64
}

// compare fails if the process has grown since the first call.
func (s *start) compare(t *testing.T) {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	text, _ := os.ReadFile("/proc/self/maps") // not there on every system
	now := start{true, runtime.NumGoroutine(), strings.Count(string(text), "\n"), m.HeapAlloc}
	if !s.known {
		*s = now
		return
	}
	if now.goroutines > s.goroutines+10 || now.maps > s.maps+200 || now.heap > s.heap+64<<20 {
		t.Errorf("the process holds %+v, and held %+v", now, *s)
	}
}

// FuzzCrosses holds crosses to encoding/json.
func FuzzCrosses(f *testing.F) {
	for i, s := range crossing() {
		if len(s) < 200 && i%31 == 0 { // TestCrosses has them all
			f.Add([]byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := crosses(b), utf8.Valid(b) && json.Valid(b); got != want {
			t.Errorf("crosses(%q) = %v, want %v", b, got, want)
		}
	})
}
