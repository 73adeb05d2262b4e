package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/fixture"
)

// Kind says what a replay does otherwise.
type Kind string

// The kinds of divergence.
const (
	// KindArguments are other arguments of a call.
	KindArguments Kind = "arguments"
	// KindTool is a call of another tool.
	KindTool Kind = "tool"
	// KindExtra is a call behind the last one of the record.
	KindExtra Kind = "extra"
	// KindMissing is a call that is not made any more.
	KindMissing Kind = "missing"
	// KindOutput is another output.
	KindOutput Kind = "output"
	// KindEnd is a failure in place of an output, or of another reason, message or
	// place, or an output in place of a failure.
	KindEnd Kind = "end"
)

// maxShown bounds a value in a Divergence, in bytes; what is longer is cut.
const maxShown = fixture.MaxValueBytes

// Divergence is where a replay first leaves the record.
type Divergence struct {
	Kind Kind `json:"kind"`
	// Call counts the calls of the program from 1, refused ones too; 0 when it is not
	// about a call. Seq is the run's number of the recorded one.
	Call int   `json:"call,omitempty"`
	Seq  int64 `json:"seq,omitempty"`
	// Tool is the one that was called, or should have been.
	Tool string `json:"tool,omitempty"`
	// Recorded and Replayed are JSON, or words where there is no value.
	Recorded string `json:"recorded,omitempty"`
	Replayed string `json:"replayed,omitempty"`
	// At is where two JSON values first differ, such as $.items[3].name, and the
	// parts are what is there.
	At           string `json:"at,omitempty"`
	RecordedPart string `json:"recordedPart,omitempty"`
	ReplayedPart string `json:"replayedPart,omitempty"`
}

// Title says in one line what differs.
func (d Divergence) Title() string {
	switch d.Kind {
	case KindArguments:
		return fmt.Sprintf("call %d of %s has other arguments%s", d.Call, d.Tool, d.place())
	case KindTool:
		return fmt.Sprintf("call %d is one of another tool", d.Call)
	case KindExtra:
		return fmt.Sprintf("call %d of %s is one that the record does not have", d.Call, d.Tool)
	case KindMissing:
		return fmt.Sprintf("call %d of %s is not made any more", d.Call, d.Tool)
	case KindOutput:
		return "the output differs" + d.place()
	default:
		return "it ends otherwise"
	}
}

func (d Divergence) place() string {
	if d.At == "" {
		return ""
	}
	return ", first at " + d.At
}

// compared fills in two JSON texts that differ.
func (d Divergence) compared(recorded, replayed json.RawMessage) *Divergence {
	if p, ok := fixture.First(recorded, replayed); ok {
		d.At, d.RecordedPart, d.ReplayedPart = contract.Truncate(p.Path, maxShown), part(p.Want), part(p.Got)
	}
	d.Recorded, d.Replayed = contract.Truncate(string(recorded), maxShown), contract.Truncate(string(replayed), maxShown)
	return &d
}

// part is a part of a value; null is nothing, too.
func part(v any) string {
	b, err := contract.Canonical(v)
	if err != nil {
		return ""
	}
	return contract.Truncate(string(b), maxShown)
}

// script answers the calls of one program as they were answered before. It is a
// sandbox.Caller.
type script struct {
	p *Program
	// full says that the run was refused so often that the transcript does not have
	// every refusal.
	full bool

	mu    sync.Mutex // guards what is below
	next  int
	latch *contract.Fault
	diff  *Divergence
	// cut says why nobody can tell how the program goes on.
	cut string
}

// over ends an execution for a reason that is the script's; it is never shown.
func over() *contract.Fault {
	return contract.Faultf(contract.ReasonBrokerUnavailable, "the replay ends here")
}

// Call implements sandbox.Caller.
func (s *script) Call(_ context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	canonical, err := contract.Canonical(args)
	if err != nil || !contract.WellFormed(args) {
		canonical = nil // the broker has refused them
	}
	if s.next >= len(s.p.Calls) {
		return nil, s.extra(name, canonical)
	}
	c := s.p.Calls[s.next]
	if s.diff = c.differs(s.next+1, name, canonical); s.diff != nil {
		return nil, over()
	}
	if s.cut = s.p.stops(c); s.cut != "" {
		s.cut = fmt.Sprintf("call %d of %s: %s", s.next+1, c.Tool, s.cut)
		s.next++
		return nil, over()
	}
	s.next++
	if f := c.Fault; f != nil {
		if f.Reason.Class() != contract.ClassCatchable {
			s.latch = contract.Worst(s.latch, f)
		}
		return nil, f
	}
	return c.Result, nil
}

// extra is a call that the record does not have.
func (s *script) extra(name string, args json.RawMessage) error {
	switch {
	case outside(s.p.End):
		s.cut = "it " + s.p.End.stopped()
	case !s.p.End.Known:
		s.cut = "the transcript ends before the program does"
	case s.full:
		s.cut = fmt.Sprintf("the run was refused more than %d calls, and the transcript has no more of them", contract.MaxRefusedCalls)
	default:
		s.diff = &Divergence{Kind: KindExtra, Call: s.next + 1, Tool: contract.Truncate(name, 64), Replayed: shown(name, args)}
	}
	return over()
}

// stops says why the outcome of a recorded call is not known, or "".
func (p *Program) stops(c Call) string {
	switch {
	case c.Missing != "":
		return c.Missing
	case c.Latched && c.Fault != nil && c.Fault.Reason.Class() != contract.ClassTerminal && outside(p.End):
		return "the program " + p.End.stopped() + " in it"
	}
	return ""
}

// differs compares the n-th call with what it was; nil when it is the same. Of a
// refused call the arguments are not known.
func (c Call) differs(n int, name string, args json.RawMessage) *Divergence {
	d := Divergence{Call: n, Seq: c.Seq, Tool: c.Tool}
	if c.Tool != contract.Truncate(name, 64) {
		d.Kind, d.Recorded, d.Replayed = KindTool, shown(c.Tool, c.Arguments), shown(name, args)
		return &d
	}
	if c.State == contract.CallRefused || c.ArgumentsDigest == "" || c.ArgumentsDigest == contract.Digest(args) {
		return nil
	}
	d.Kind = KindArguments
	if c.Arguments == nil {
		d.Recorded, d.Replayed = "arguments of the digest "+c.ArgumentsDigest, contract.Truncate(string(args), maxShown)
		return &d
	}
	return d.compared(c.Arguments, args)
}

func shown(tool string, args json.RawMessage) string {
	return contract.Truncate(contract.Truncate(tool, 64)+" "+string(args), maxShown)
}
