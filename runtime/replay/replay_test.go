package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/stub"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/runtime/replay"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// engine is one for all tests: every execution is fresh anyway.
var engine = sync.OnceValues(func() (*sandbox.Engine, error) {
	return sandbox.New(context.Background(), sandbox.Options{Ceiling: contract.Ceilings()})
})

func box(t *testing.T) *sandbox.Engine {
	t.Helper()
	e, err := engine()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

const tools = `{
 "get":{"returns":{"b":[3,1,2],"a":{"z":1,"y":null}},"effect":"ReadOnly"}, "echo":{"echo":true,"effect":"ReadOnly"},
 "fail":{"fails":{"message":"no such record"}}, "lose":{"uncertain":true,"receipt":"r-1"}, "slow":{"sleepMs":60000,"effect":"ReadOnly"},
 "strict":{"echo":true,"inputSchema":{"type":"object","required":["a"]}}, "wide":{"returns":[ 1,  2 ],"effect":"ReadOnly"}}`

// lived are the events of a run of one program.
func lived(ctx context.Context, t *testing.T, source string, edit func(*contract.Bundle)) []contract.Event {
	t.Helper()
	stubs, err := stub.Parse([]byte(tools))
	if err != nil {
		t.Fatal(err)
	}
	b := contract.Bundle{
		Run: contract.RunRef{Namespace: "n", Name: "r", UID: "u", Generation: 1}, Limits: contract.DefaultLimits(),
		Source: source, SourceDigest: contract.Digest([]byte(source)), Input: json.RawMessage(`{"n":2}`),
	}
	if edit != nil {
		edit(&b)
	}
	e := loop.NewEvents(io.Discard, time.Now)
	e.Record(contract.TranscriptOrigin{RunUID: "u", Generation: 1})
	loop.Run(ctx, loop.Config{Sandbox: box(t), Bundle: b, Tools: stub.New(stubs).List, Now: time.Now, Events: e})
	packed, _ := e.Transcript()
	var events []contract.Event
	_, err = contract.ReadTranscript(bytes.NewReader(packed), nil, func(_ []byte, x contract.Event) error {
		events = append(events, x)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func read(t *testing.T, events []contract.Event) replay.Record {
	t.Helper()
	r, err := replay.Read(events)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func replayed(t *testing.T, events []contract.Event) replay.Result {
	t.Helper()
	got, err := replay.Replayer{Sandbox: box(t)}.Run(t.Context(), read(t, events))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Programs) != 1 {
		t.Fatalf("%d programs", len(got.Programs))
	}
	return got.Programs[0]
}

// TestHolds replays programs of every end. What depends on nothing but the program,
// its input and what its calls returned comes again, to the byte.
func TestHolds(t *testing.T) {
	limits := func(name string, v int64) func(*contract.Bundle) {
		return func(b *contract.Bundle) { _ = b.Limits.Set(name, v) }
	}
	tests := map[string]struct {
		source     string
		edit       func(*contract.Bundle)
		wantReason contract.Reason
		wantCalls  int
		wantWhy    string // of an end that cannot come again
	}{
		"dates of values": {source: `function main(i) { return [new Date(0).toISOString(), new Date(2026, i.n, 31, 25).toString(), Date.UTC(2026, 1, 29), new Date("2026-03-01T00:00:00+02:00").getTime()] }`},
		"the order of keys": {source: `function main() { const o = tools.call("get", {}); o["10"] = 1; o["9"] = 2; delete o.b; o.b = 3;
			const r = []; for (const k in o) r.push(k); return [r, Object.entries(o), JSON.stringify(o)] }`, wantCalls: 1},
		"sort": {source: `function main() { const a = tools.call("get", {}).b.concat([30, 4, 1, 2]); const s = a.map((v, i) => ({v: v % 2, i}));
			s.sort((x, y) => x.v - y.v); return [a.slice().sort(), a.sort((x, y) => y - x), s] }`, wantCalls: 1},
		"a sort that contradicts itself": {source: `function main() { let n = 0; return [[5, 3, 9, 1, 7, 2].sort(() => (n++ % 3) - 1), n] }`},
		"numbers":                        {source: `function main() { return [0.1 + 0.2, 1e21, -0, 5e-324, 2 ** 53 + 1, Math.sin(1e6), (25).toString(36), (1.005).toFixed(2)] }`},
		"maps and letters":               {source: `function main() { return [[...new Map([["b", 1], ["a", 2]])], "İß\u{1F600}".toUpperCase(), "\ud800", "ä".localeCompare("b"), "a1b22".replace(/\d+/g, x => "<" + x + ">")] }`},
		"arguments in another order":     {source: `function main() { return tools.call("echo", {b: 1, a: {d: 2, c: "<&>\u2028"}}) }`, wantCalls: 1},
		"a failure that is caught":       {source: `function main() { try { tools.call("fail", {}) } catch (e) { return [e.code, e.message] } }`, wantCalls: 1},
		"a refusal that is caught":       {source: `function main() { try { tools.call("strict", {}) } catch (e) { return [e.code, e.message] } }`, wantCalls: 1},
		"refused without end":            {source: `function main() { let n = 0; for (let i = 0; i < 100; i++) try { tools.call("strict", {i}) } catch (e) { n++ } return n }`, wantCalls: 64, wantWhy: "the run was refused more than 64 calls"},
		"a throw":                        {source: "function main() {\n  const x = tools.call(\"get\", {});\n  throw new RangeError(\"not \" + x.b.length)\n}", wantCalls: 1, wantReason: contract.ReasonJavaScriptError},
		"no JSON":                        {source: `function main() { return () => 1 }`, wantReason: contract.ReasonJavaScriptError},
		"a syntax error":                 {source: `function main() { return 1 + }`, wantReason: contract.ReasonSyntaxError},
		"prohibited":                     {source: `function main() { return eval("1") }`, wantReason: contract.ReasonProhibited},
		"the heap":                       {source: `function main() { const a = []; for (;;) a.push("x".repeat(1000) + a.length) }`, edit: limits("heapBytes", 2<<20), wantReason: contract.ReasonHeapExhausted},
		"the stack":                      {source: `function f(n) { return 1 + f(n + 1) } function main() { return f(0) }`, edit: limits("stackBytes", 64<<10), wantReason: contract.ReasonStackExhausted},
		"fuel":                           {source: `function main() { tools.call("get", {}); for (;;) {} }`, edit: limits("fuel", 1_000_000), wantCalls: 1, wantReason: contract.ReasonTimeout},
		"too large an output":            {source: `function main() { return "x".repeat(1000) }`, edit: limits("outputBytes", 500), wantReason: contract.ReasonOutputTooLarge},
		"too large an input":             {source: `function main() { return 1 }`, edit: limits("inputBytes", 3), wantReason: contract.ReasonInputTooLarge},
		"too large a result":             {source: `function main() { return tools.call("get", {}) }`, edit: limits("outputBytes", 130), wantCalls: 1},
		"no more calls":                  {source: `function main() { for (;;) tools.call("get", {}) }`, edit: limits("childCalls", 2), wantCalls: 3, wantReason: contract.ReasonCallLimitExceeded},
		"no such tool":                   {source: `function main() { try { tools.call("ghost", {}) } catch (e) { return 1 } }`, wantCalls: 1, wantReason: contract.ReasonToolNotAllowed},
		"too long a name":                {source: `function main() { tools.call("x".repeat(5000), {}) }`, wantReason: contract.ReasonToolNotAllowed},
		"an effect in doubt":             {source: `function main() { tools.call("lose", {}) }`, wantCalls: 1, wantReason: contract.ReasonEffectUncertain},
		"the schema of the input": {source: `function main() { return 1 }`, wantReason: contract.ReasonInvalidInput, edit: func(b *contract.Bundle) {
			b.InputSchema = json.RawMessage(`{"type":"object","required":["m","k"],"properties":{"n":{"type":"string"}}}`)
		}},
		"the schema of the output": {source: `function main() { return tools.call("get", {}) }`, wantCalls: 1, wantReason: contract.ReasonInvalidOutput, edit: func(b *contract.Bundle) {
			b.OutputSchema = json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`)
		}},
		"a clock":           {source: `function main() { tools.call("get", {}); for (;;) {} }`, edit: limits("wallClockMs", 200), wantCalls: 1, wantReason: contract.ReasonTimeout, wantWhy: "it was ended by Timeout, which no replay reproduces"},
		"a clock in a call": {source: `function main() { tools.call("get", {}); tools.call("slow", {}) }`, edit: limits("wallClockMs", 200), wantCalls: 2, wantReason: contract.ReasonTimeout, wantWhy: "call 2 of slow: the program was ended by Timeout"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := replayed(t, lived(t.Context(), t, tc.source, tc.edit))
			want := replay.Holds
			if tc.wantWhy != "" {
				want = replay.Unverified
			}
			if got.Verdict != want || got.Reason != tc.wantReason || got.Calls != tc.wantCalls || !strings.HasPrefix(got.Why, tc.wantWhy) || tc.wantWhy == "" && got.Why != "" {
				t.Errorf("%+v %+v", got, got.Divergence)
			}
		})
	}
}

// TestCancelled: what somebody has ended is no program's doing.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	got := replayed(t, lived(ctx, t, `function main() { tools.call("get", {}); tools.call("slow", {}) }`, nil))
	if got.Verdict != replay.Unverified || got.Calls != 2 {
		t.Errorf("%+v", got)
	}
}

// TestRecordLacks has records that lack something, which is said.
func TestRecordLacks(t *testing.T) {
	const twice = `function main() { tools.call("get", {}); return tools.call("wide", {}) }`
	tests := map[string]struct {
		source string
		edit   func(*contract.Bundle)
		change func([]contract.Event) []contract.Event
		want   replay.Verdict
		why    string
	}{
		"a result": {change: func(all []contract.Event) []contract.Event { all[2].Content = all[2].Content.Bare(); return all },
			want: replay.Unverified, why: "call 1 of get: its result is not in the transcript, for its size of 34 bytes"},
		"an outcome": {change: func(all []contract.Event) []contract.Event { return append(all[:4:4], all[5:]...) },
			want: replay.Unverified, why: "call 2 of wide: the transcript has no outcome of it"},
		"a call": {change: func(all []contract.Event) []contract.Event { return append(all[:1:1], all[3:]...) },
			want: replay.Unverified, why: "call 1 of the run is not in the transcript"},
		"the end":     {change: func(all []contract.Event) []contract.Event { return all[:5] }, want: replay.Unverified, why: "the transcript ends before the program does"},
		"the program": {change: func(all []contract.Event) []contract.Event { all[0].Content = all[0].Content.Bare(); return all }, want: replay.Unverified, why: "its program is not in the transcript, for its size"},
		"its bytes": {change: func(all []contract.Event) []contract.Event {
			all[0].Content.SourceDigest = contract.Digest(nil)
			return all
		},
			want: replay.Unverified, why: "its program in the transcript is not the one of its digest"},
		"the text of its output": {change: func(all []contract.Event) []contract.Event { all[5].Content = all[5].Content.Bare(); return all }, want: replay.Holds},
		"its limits":             {change: func(all []contract.Event) []contract.Event { all[0].Content.Limits = nil; return all }, want: replay.Holds},
		"the limit it met": {
			source: `function main() { return "x".repeat(1000) }`, edit: func(b *contract.Bundle) { b.Limits.OutputBytes = 500 },
			change: func(all []contract.Event) []contract.Event { all[0].Content.Limits = nil; return all },
			want:   replay.Unverified, why: "it ended with OutputTooLarge, and the transcript, which an earlier version wrote, has no limits",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			source := tc.source
			if source == "" {
				source = twice
			}
			got := replayed(t, tc.change(lived(t.Context(), t, source, tc.edit)))
			if got.Verdict != tc.want || !strings.HasPrefix(got.Why, tc.why) || tc.why == "" && got.Why != "" {
				t.Errorf("%+v %+v", got, got.Divergence)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	if _, err := replay.Read([]contract.Event{{Type: contract.EventExecutionStarted}}); !errors.Is(err, replay.ErrNoContents) {
		t.Errorf("error %v", err)
	}
	for _, events := range [][]contract.Event{nil, {{Type: contract.EventStepStarted}}} {
		if _, err := replay.Read(events); err == nil {
			t.Error("no error")
		}
	}
}

// TestWith executes another program with what one was given.
func TestWith(t *testing.T) {
	const first = `function main(i) { const a = tools.call("echo", {n: i.n}); const b = tools.call("get", {}); return [a.n, b.b.length] }`
	tests := map[string]struct {
		source     string
		schema     string
		wantSame   bool
		wantCalls  []replay.Change
		wantAfter  string
		wantWhy    string
		wantFields string
	}{
		"the same":        {source: first + " // a comment", wantSame: true, wantCalls: []replay.Change{replay.Same, replay.Same}, wantAfter: "the output [2,3]"},
		"another order":   {source: `function main(i) { const b = tools.call("get", {}); return [tools.call("echo", {n: i.n}).n, b.b.length] }`, wantCalls: []replay.Change{replay.Moved, replay.Same}, wantAfter: "the output [2,3]"},
		"a call less":     {source: `function main(i) { return [i.n, tools.call("get", {}).b.length] }`, wantCalls: []replay.Change{replay.Moved, replay.Gone}, wantAfter: "the output [2,3]"},
		"another output":  {source: strings.Replace(first, "a.n,", "a.n + 1,", 1), wantCalls: []replay.Change{replay.Same, replay.Same}, wantAfter: "the output [3,3]", wantFields: "$[0] 2 3"},
		"other arguments": {source: strings.Replace(first, "n: i.n", "n: i.n + 1", 1), wantCalls: []replay.Change{replay.Changed, replay.Unreached}, wantWhy: "call 1 of echo is not in the record"},
		"a new call":      {source: strings.Replace(first, "return", `tools.call("fail", {}); return`, 1), wantCalls: []replay.Change{replay.Same, replay.Same, replay.New}, wantWhy: "call 3 of fail is not in the record"},
		"not declared":    {source: strings.Replace(first, "return", `tools.call("lose", {}); return`, 1), wantCalls: []replay.Change{replay.Same, replay.Same, replay.New}, wantAfter: `ToolNotAllowed: tool "lose" is not one that the recipe declares`},
		"another schema":  {source: first, schema: `{"type":"string"}`, wantCalls: []replay.Change{replay.Gone, replay.Gone}, wantAfter: "InvalidInput: the input does not match its schema"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := read(t, lived(t.Context(), t, first, nil)).Programs[0]
			x := replay.Other{Recipe: "other", Tools: []string{"echo", "get", "fail"}, Source: tc.source, Limits: contract.DefaultLimits()}
			if tc.schema != "" {
				x.InputSchema = json.RawMessage(tc.schema)
			}
			got := replay.Replayer{Sandbox: box(t)}.With(t.Context(), p, x)
			var calls []replay.Change
			for _, c := range got.Calls {
				calls = append(calls, c.Change)
			}
			if diff := cmp.Diff(tc.wantCalls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if got.Same != tc.wantSame || got.Unverified || !strings.HasPrefix(got.After, tc.wantAfter) || tc.wantAfter == "" && got.After != "" || !strings.HasPrefix(got.Why, tc.wantWhy) {
				t.Errorf("%+v", got)
			}
			if tc.wantFields != "" && got.At+" "+got.RecordedPart+" "+got.ReplayedPart != tc.wantFields {
				t.Errorf("it differs at %s: %s, %s", got.At, got.RecordedPart, got.ReplayedPart)
			}
		})
	}
}
