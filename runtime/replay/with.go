package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Other is a program in the place of a recorded one.
type Other struct {
	// Recipe is its name, and Tools are those that it declares.
	Recipe string
	Tools  []string
	Source string
	// InputSchema is that of its input; without OutputSchema any output passes.
	InputSchema, OutputSchema json.RawMessage
	// Limits are all set.
	Limits contract.Limits
}

// Change says what became of a call.
type Change string

// The changes of calls.
const (
	// Same is a call that is as it was.
	Same Change = "same"
	// Moved is one that comes earlier than it did.
	Moved Change = "moved"
	// Changed has other arguments than the call that was in its place, and New is one
	// that was not there. Nobody knows what either would return: it is the last call.
	Changed Change = "changed"
	New     Change = "new"
	// Gone is a call that is not made any more, and Unreached one that might come
	// behind the last call.
	Gone      Change = "gone"
	Unreached Change = "unreached"
)

// CallChange is what became of one call.
type CallChange struct {
	Change Change `json:"change"`
	// Before and After count the calls from 1 in both executions; 0 where it is not.
	Before int    `json:"before,omitempty"`
	After  int    `json:"after,omitempty"`
	Tool   string `json:"tool"`
	// Recorded and Replayed are the arguments, At is where they first differ, and the
	// parts are what is there.
	Recorded     string `json:"recorded,omitempty"`
	Replayed     string `json:"replayed,omitempty"`
	At           string `json:"at,omitempty"`
	RecordedPart string `json:"recordedPart,omitempty"`
	ReplayedPart string `json:"replayedPart,omitempty"`
}

// Comparison is what another program makes of what one program was given.
type Comparison struct {
	// Step, ID, Tool and Recipe are those of the recorded Program.
	Step   int64  `json:"step,omitempty"`
	ID     string `json:"id,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Recipe string `json:"recipe,omitempty"`
	// Same says that nothing differs: neither a call nor the end.
	Same bool `json:"same"`
	// Calls are those of both, in the order of the other program.
	Calls []CallChange `json:"calls"`
	// Before and After are how they ended, in words; After is empty where nobody can
	// tell, which Why says. At is where two outputs first differ.
	Before       string `json:"before"`
	After        string `json:"after,omitempty"`
	At           string `json:"at,omitempty"`
	RecordedPart string `json:"recordedPart,omitempty"`
	ReplayedPart string `json:"replayedPart,omitempty"`
	Why          string `json:"why,omitempty"`
	// Unverified says that the record lacks what it takes to compare.
	Unverified bool `json:"unverified,omitempty"`
}

// matching answers calls with what the same call returned, wherever it was.
type matching struct {
	script
	x     Other
	used  []bool
	calls []CallChange
	// lacking says that cut is the record's fault.
	lacking bool
}

// With executes another program with the input and the results of p. A call that
// the record does not have ends the comparison: no result is made up.
func (r Replayer) With(ctx context.Context, p Program, x Other) Comparison {
	out := Comparison{Step: p.Step, ID: p.ID, Tool: p.Tool, Recipe: p.Recipe, Calls: []CallChange{}, Before: "not known"}
	if p.End.Known {
		out.Before = p.End.words()
	}
	if p.Missing != "" && len(p.Input) == 0 {
		out.Unverified, out.Why = true, p.Missing
		return out
	}
	m := &matching{script: script{p: &p}, x: x, used: make([]bool, len(p.Calls))}
	q := p
	q.Source, q.InputSchema, q.OutputSchema, q.Limits, q.Recipe, q.End = x.Source, x.InputSchema, x.OutputSchema, &x.Limits, x.Recipe, End{}
	got := r.execute(ctx, q, &m.script, m)
	rest := Gone
	if m.cut != "" {
		rest, out.Why, out.Unverified = Unreached, m.cut, m.lacking
	} else {
		out.After = got.words()
	}
	out.Calls = append(out.Calls, m.calls...)
	for i, c := range p.Calls {
		if !m.used[i] {
			out.Calls = append(out.Calls, CallChange{Change: rest, Before: i + 1, Tool: c.Tool, Recorded: contract.Truncate(string(c.Arguments), maxShown)})
		}
	}
	out.Same = m.cut == "" && p.End.Known && out.Before == out.After && p.End.Digest == got.Digest
	if d := p.End.differs(got); d != nil && m.cut == "" {
		out.At, out.RecordedPart, out.ReplayedPart = d.At, d.RecordedPart, d.ReplayedPart
	}
	for _, c := range out.Calls {
		out.Same = out.Same && c.Change == Same
	}
	return out
}

// Call implements sandbox.Caller.
func (m *matching) Call(_ context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.calls) + 1
	if !slices.Contains(m.x.Tools, name) {
		m.latch = contract.Worst(m.latch, contract.Faultf(contract.ReasonToolNotAllowed, "tool %q is not one that the recipe declares", contract.Truncate(name, 64)))
		m.calls = append(m.calls, CallChange{Change: New, After: n, Tool: contract.Truncate(name, 64), Replayed: contract.Truncate(string(args), maxShown)})
		return nil, m.latch
	}
	canonical, err := contract.Canonical(args)
	if err != nil {
		canonical = args
	}
	i := m.find(name, canonical)
	if i < 0 {
		return nil, m.unknown(n, name, canonical)
	}
	c, change := m.p.Calls[i], Same
	if i != m.first() {
		change = Moved
	}
	m.used[i] = true
	m.calls = append(m.calls, CallChange{Change: change, Before: i + 1, After: n, Tool: name, Recorded: contract.Truncate(string(canonical), maxShown)})
	if c.State == contract.CallRefused && c.Fault != nil && c.Fault.Reason == contract.ReasonInvalidArguments {
		m.cut, m.lacking = fmt.Sprintf("call %d of %s: the call in its place was refused for its arguments, which the transcript does not have", n, name), true
		return nil, over()
	}
	if why := m.p.stops(c); why != "" {
		m.cut, m.lacking = fmt.Sprintf("call %d of %s: %s", n, name, why), true
		return nil, over()
	}
	if f := c.Fault; f != nil {
		if f.Reason.Class() != contract.ClassCatchable {
			m.latch = contract.Worst(m.latch, f)
		}
		return nil, f
	}
	return c.Result, nil
}

// first is the place of the first recorded call that is not made yet.
func (m *matching) first() int { return slices.Index(m.used, false) }

// find is the place of a recorded call that is this one; -1 where there is none. A
// refused call, whose arguments are not known, is only found in its place.
func (m *matching) find(name string, args json.RawMessage) int {
	for i, c := range m.p.Calls {
		if m.used[i] || c.Tool != name {
			continue
		}
		if c.State == contract.CallRefused {
			if i == m.first() {
				return i
			}
			continue
		}
		if bytes.Equal(c.Arguments, args) || c.Arguments == nil && c.ArgumentsDigest == contract.Digest(args) {
			return i
		}
	}
	return -1
}

// unknown ends the comparison at a call that the record does not have.
func (m *matching) unknown(n int, name string, args json.RawMessage) error {
	change := CallChange{Change: New, After: n, Tool: name, Replayed: contract.Truncate(string(args), maxShown)}
	if i := m.first(); i >= 0 && m.p.Calls[i].Tool == name {
		d := Divergence{}.compared(m.p.Calls[i].Arguments, args)
		m.used[i] = true
		change.Change, change.Before, change.Recorded = Changed, i+1, d.Recorded
		change.At, change.RecordedPart, change.ReplayedPart = d.At, d.RecordedPart, d.ReplayedPart
	}
	m.calls = append(m.calls, change)
	m.cut = fmt.Sprintf("call %d of %s is not in the record, so that nobody knows what it would return", n, name)
	return over()
}
