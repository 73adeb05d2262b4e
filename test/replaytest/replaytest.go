// Package replaytest holds every run of a test to its replay: what was recorded
// must come again, and anything else must be noticed, in its place.
package replaytest

import (
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/runtime/replay"
)

// Read is the record of a run, from a transcript that holds in itself.
func Read(t *testing.T, transcript io.Reader) replay.Record {
	t.Helper()
	var events []contract.Event
	_, err := contract.ReadTranscript(transcript, nil, func(_ []byte, x contract.Event) error {
		events = append(events, x)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := replay.Read(events)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Check replays a run. Every program in it holds, but for those that a clock or
// somebody has ended, and those that hold do not any more once anything is changed.
func Check(t *testing.T, box loop.Sandbox, rec replay.Record) {
	t.Helper()
	r := replay.Replayer{Sandbox: box}
	got, err := r.Run(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range got.Programs {
		want := replay.Holds
		if stopped(rec.Programs[i]) {
			want = replay.Unverified
		}
		if p.Verdict != want {
			t.Errorf("program %d is %s, want %s: %s %+v", i+1, p.Verdict, want, p.Why, p.Divergence)
		}
		if p.Verdict == replay.Holds && p.Recorded > 0 {
			changes{t, r, rec.Programs[i]}.all()
		}
	}
}

// stopped reports whether a program did not end by its own doing.
func stopped(p replay.Program) bool {
	f := p.End.Fault
	if f == nil {
		return false
	}
	switch f.Reason {
	case contract.ReasonTimeout:
		return p.Limits == nil || p.Limits.Fuel == 0
	case contract.ReasonCancelled, contract.ReasonDeadlineExceeded, contract.ReasonWorkerLost:
		return true
	default:
		return false
	}
}

// changes are those of one program whose replay holds.
type changes struct {
	t *testing.T
	r replay.Replayer
	p replay.Program
}

// ghost is a tool that no test has.
const ghost = "ghost_of_a_call"

var mainHead = regexp.MustCompile(`function main\([^)]*\)\s*\{`)

func (c changes) all() {
	c.t.Helper()
	for i, call := range c.p.Calls {
		at := i + 1
		if call.Arguments != nil {
			c.want("other arguments", at, []replay.Kind{replay.KindArguments}, func(p *replay.Program) {
				p.Calls[i].Arguments = json.RawMessage(`{"another":[1]}`)
				p.Calls[i].ArgumentsDigest = contract.Digest(p.Calls[i].Arguments)
			})
		}
		c.want("a call that is dropped", at, []replay.Kind{replay.KindTool, replay.KindArguments, replay.KindExtra}, func(p *replay.Program) {
			p.Calls = slices.Delete(p.Calls, i, i+1)
		})
		c.want("a call that is added", at, []replay.Kind{replay.KindTool}, func(p *replay.Program) {
			p.Calls = slices.Insert(p.Calls, i, replay.Call{Tool: ghost, State: contract.CallCompleted, Result: json.RawMessage("1")})
		})
		if call.Result != nil {
			c.result(i)
		}
	}
	if !latched(c.p) {
		c.want("a call at the end", len(c.p.Calls)+1, []replay.Kind{replay.KindMissing}, func(p *replay.Program) {
			p.Calls = append(p.Calls, replay.Call{Tool: ghost, State: contract.CallCompleted, Result: json.RawMessage("1")})
		})
	}
	if mainHead.MatchString(c.p.Source) {
		c.want("another source", 1, []replay.Kind{replay.KindTool}, func(p *replay.Program) {
			p.Source = mainHead.ReplaceAllString(p.Source, `$0 tools.call("`+ghost+`", {});`)
		})
	}
}

// latched reports whether the last call has ended the program.
func latched(p replay.Program) bool {
	last := p.Calls[len(p.Calls)-1]
	return last.Fault != nil && last.Fault.Reason.Class() != contract.ClassCatchable
}

// replayed is the replay of the program after a change.
func (c changes) replayed(change func(*replay.Program)) replay.Result {
	c.t.Helper()
	p := c.p
	p.Calls = slices.Clone(p.Calls)
	change(&p)
	got, err := c.r.Run(c.t.Context(), replay.Record{Programs: []replay.Program{p}, End: p.End})
	if err != nil {
		c.t.Fatal(err)
	}
	return got.Programs[0]
}

// want says that a change diverges at a call. A program that repeats a call is the
// same without one of them until its last.
func (c changes) want(what string, at int, kinds []replay.Kind, change func(*replay.Program)) {
	c.t.Helper()
	got := c.replayed(change)
	d := got.Divergence
	if got.Verdict == replay.Holds && c.repeated(at) {
		return // nobody can tell one of these calls from another
	}
	if got.Verdict != replay.Diverges || !slices.Contains(kinds, d.Kind) {
		c.t.Errorf("%s at call %d: %s %+v %s", what, at, got.Verdict, d, got.Why)
		return
	}
	for d.Call > at && c.same(at) {
		at++
	}
	if d.Call != at {
		c.t.Errorf("%s diverges at call %d, want %d: %+v", what, d.Call, at, d)
	}
}

// repeated reports whether all calls from a place on are the same.
func (c changes) repeated(at int) bool {
	for ; at < len(c.p.Calls); at++ {
		if !c.same(at) {
			return false
		}
	}
	return latched(c.p)
}

// same reports whether the call at a place is the same as the one behind it.
func (c changes) same(at int) bool {
	if at >= len(c.p.Calls) {
		return false
	}
	a, b := c.p.Calls[at-1], c.p.Calls[at]
	return a.Tool == b.Tool && (a.ArgumentsDigest == b.ArgumentsDigest || a.ArgumentsDigest == "" || b.ArgumentsDigest == "")
}

// result changes what a call has returned: if the program makes anything of it, it
// diverges behind that call.
func (c changes) result(i int) {
	c.t.Helper()
	got := c.replayed(func(p *replay.Program) { p.Calls[i].Result = json.RawMessage(`{"another":[1]}`) })
	d := got.Divergence
	if got.Verdict == replay.Unverified || d != nil && d.Call != 0 && d.Call <= i+1 {
		c.t.Errorf("another result of call %d: %s %+v %s", i+1, got.Verdict, d, got.Why)
	}
}
