package replay_test

import (
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/replay"
)

// TestReadOrder has events that no runtime writes: a chain of hashes can be made of them
// by anybody.
func TestReadOrder(t *testing.T) {
	events := func() []contract.Event { return lived(t.Context(), t, `function main() { return 1 }`, nil) }
	tests := map[string]struct {
		change func([]contract.Event) []contract.Event
		want   string
	}{
		"another run":   {func(all []contract.Event) []contract.Event { all[1].Run = "n/other"; return all }, "is of another execution"},
		"another UID":   {func(all []contract.Event) []contract.Event { all[1].RunUID = "x"; return all }, "is of another execution"},
		"a later one":   {func(all []contract.Event) []contract.Event { all[1].Generation = 2; return all }, "is of another execution"},
		"a second head": {func(all []contract.Event) []contract.Event { return append(all[:1:1], all...) }, "record 2 of the transcript, execution.started, is there already"},
		"a second end":  {func(all []contract.Event) []contract.Event { return append(all, all[len(all)-1]) }, "comes after the end of the run"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := replay.Read(tc.change(events())); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

// TestProgramsWithin has a program that begins before the end of another one, and an end
// of another one: none is lost, and none holds that has no end of its own.
func TestProgramsWithin(t *testing.T) {
	const source = `function main() { return 1 }`
	event := func(kind contract.EventType, id string, c contract.EventContent) contract.Event {
		return contract.Event{Run: "n/r", RunUID: "u", Generation: 1, Type: kind, ID: id, State: string(contract.ResultSucceeded), Content: &c}
	}
	begin := func(id string) contract.Event {
		return event(contract.EventProgramStarted, id, contract.EventContent{Source: source, SourceDigest: contract.Digest([]byte(source)), Input: []byte(`null`)})
	}
	end := func(id string) contract.Event {
		return event(contract.EventProgramFinished, id, contract.EventContent{Result: []byte(`1`)})
	}
	direct := func(id string) contract.Event {
		e := event(contract.EventToolStarted, id, contract.EventContent{Arguments: []byte(`{}`)})
		e.Tool = "search"
		return e
	}
	for name, tc := range map[string]struct {
		events []contract.Event
		want   []replay.Verdict
	}{
		"one behind the other":   {[]contract.Event{begin("a"), end("a"), begin("b"), end("b")}, []replay.Verdict{replay.Holds, replay.Holds}},
		"one within the other":   {[]contract.Event{begin("a"), begin("b"), end("b")}, []replay.Verdict{replay.Unverified, replay.Holds}},
		"a call of a tool":       {[]contract.Event{begin("a"), direct("b")}, []replay.Verdict{replay.Unverified}},
		"the end of another one": {[]contract.Event{begin("a"), end("b"), end("a")}, []replay.Verdict{replay.Unverified}},
		"no end":                 {[]contract.Event{begin("a")}, []replay.Verdict{replay.Unverified}},
	} {
		t.Run(name, func(t *testing.T) {
			rec := read(t, append([]contract.Event{event(contract.EventExecutionStarted, "", contract.EventContent{})}, tc.events...))
			got, err := replay.Replayer{Sandbox: box(t)}.Run(t.Context(), rec)
			if err != nil || len(got.Programs) != len(tc.want) {
				t.Fatalf("%d programs, %v", len(got.Programs), err)
			}
			for i, p := range got.Programs {
				if p.Verdict != tc.want[i] {
					t.Errorf("program %d: %+v", i, p)
				}
			}
		})
	}
}

// TestLimitsOfNoRun does not execute a program under limits that no API server admits:
// it would have the memory, and the time, that the file says.
func TestLimitsOfNoRun(t *testing.T) {
	for _, limit := range []contract.Limits{{HeapBytes: 1 << 40}, {StackBytes: 1 << 30}, {WallClockMs: 1 << 62}, {Fuel: -1}, {OutputBytes: -1}} {
		events := lived(t.Context(), t, `function main() { return 1 }`, nil)
		events[0].Content.Limits = &limit
		rec := read(t, events)
		if f := rec.Ceiling().CheckWithin(contract.Ceilings()); f != nil {
			t.Error(f)
		}
		got := replayed(t, events)
		if got.Verdict != replay.Unverified || got.Why != "its limits in the transcript are out of the bounds of any run" {
			t.Errorf("%+v: %+v", limit, got)
		}
	}
}
