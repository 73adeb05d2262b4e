package replay

import (
	"cmp"
	"context"
	"fmt"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// Verdict is what a replay shows.
type Verdict string

// The verdicts, from the best.
const (
	// Holds says that the program made the same calls and came to the same end.
	Holds Verdict = "Holds"
	// Unverified says that nobody can tell: the record lacks something, or the end was
	// not the program's own doing.
	Unverified Verdict = "Unverified"
	// Diverges says that the program does something else than the record has.
	Diverges Verdict = "Diverges"
)

// Result is what came of the replay of one program.
type Result struct {
	// Step, ID, Tool and Recipe are those of the Program.
	Step         int64  `json:"step,omitempty"`
	ID           string `json:"id,omitempty"`
	Tool         string `json:"tool,omitempty"`
	Recipe       string `json:"recipe,omitempty"`
	SourceDigest string `json:"sourceDigest,omitempty"`
	// Verdict is the verdict, with a Divergence when it diverges. Why says why it is
	// not verified, or that there was nothing to execute.
	Verdict    Verdict     `json:"verdict"`
	Divergence *Divergence `json:"divergence,omitempty"`
	Why        string      `json:"why,omitempty"`
	// Calls counts the calls that are as they were, of Recorded ones.
	Calls    int `json:"calls"`
	Recorded int `json:"recorded"`
	// OutputDigest and OutputBytes are those of the output, as it was; Reason and
	// Message those of the failure.
	OutputDigest string          `json:"outputDigest,omitempty"`
	OutputBytes  int             `json:"outputBytes,omitempty"`
	Reason       contract.Reason `json:"reason,omitempty"`
	Message      string          `json:"message,omitempty"`
}

// Report is what came of the replay of a run.
type Report struct {
	// Run, RunUID, Generation and BundleDigest name the execution.
	Run          string `json:"run"`
	RunUID       string `json:"runUID"`
	Generation   int64  `json:"generation"`
	BundleDigest string `json:"bundleDigest,omitempty"`
	// Verdict is the worst one of the programs. A run without one holds: nothing in it
	// is a program's doing.
	Verdict  Verdict  `json:"verdict"`
	Programs []Result `json:"programs"`
	// DirectCalls counts the calls that a model made itself, which no replay makes.
	DirectCalls int `json:"directCalls,omitempty"`
	// Notes say what the transcript lacks.
	Notes []string `json:"notes,omitempty"`
}

// minWallMs is the least time that a program gets in a replay: the machine may be a
// slow one. What it was stopped for by a clock, it is stopped for sooner.
const minWallMs = 60_000

// Replayer replays programs. It is safe for concurrent use if its Sandbox is.
type Replayer struct {
	// Sandbox executes the programs; its ceiling is at least their limits, see Ceiling.
	Sandbox loop.Sandbox
}

// Ceiling is the most of heap and stack that the programs may use.
func (r Record) Ceiling() contract.Limits {
	most := contract.DefaultLimits()
	for _, p := range r.Programs {
		if p.Missing != "" {
			continue
		}
		l := p.limits()
		most.HeapBytes, most.StackBytes = max(most.HeapBytes, l.HeapBytes), max(most.StackBytes, l.StackBytes)
	}
	return most
}

// Run replays every program of a run. The error is that of ctx.
func (r Replayer) Run(ctx context.Context, rec Record) (Report, error) {
	out := Report{
		Run: rec.Run, RunUID: rec.RunUID, Generation: rec.Generation, BundleDigest: rec.BundleDigest,
		Verdict: Holds, Programs: []Result{}, DirectCalls: rec.Direct,
	}
	if o := rec.Omitted; o != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("the transcript is truncated: the contents of %d records (%d bytes) and %d records are left out", o.Contents, o.Bytes, o.Records))
	}
	if !rec.End.Known {
		out.Notes, out.Verdict = append(out.Notes, "the transcript ends before the run does"), Unverified
	}
	for _, p := range rec.Programs {
		res := r.program(ctx, p, rec.refusedAll())
		if err := ctx.Err(); err != nil {
			return out, err
		}
		out.Programs = append(out.Programs, res)
		if worse(res.Verdict) > worse(out.Verdict) {
			out.Verdict = res.Verdict
		}
	}
	return out, nil
}

func worse(v Verdict) int {
	return map[Verdict]int{Holds: 0, Unverified: 1, Diverges: 2}[v]
}

// refusedAll reports whether the run was refused as many calls as are listed.
func (r Record) refusedAll() bool {
	n := 0
	for _, p := range r.Programs {
		for _, c := range p.Calls {
			if c.State == contract.CallRefused {
				n++
			}
		}
	}
	return n >= contract.MaxRefusedCalls
}

// program replays one program.
func (r Replayer) program(ctx context.Context, p Program, full bool) Result {
	res := Result{
		Step: p.Step, ID: p.ID, Tool: p.Tool, Recipe: p.Recipe, SourceDigest: p.SourceDigest, Verdict: Holds,
		Recorded: len(p.Calls), OutputDigest: p.End.Digest, OutputBytes: len(p.End.Value),
	}
	if f := p.End.Fault; f != nil {
		res.Reason, res.Message = f.Reason, f.Message
	}
	if p.Missing != "" {
		res.Verdict, res.Why = Unverified, p.Missing
		return res
	}
	s := &script{p: &p, full: full}
	got := r.execute(ctx, p, s, s)
	res.Calls = s.next
	if res.Divergence = p.judge(s, got); res.Divergence != nil {
		res.Verdict = Diverges
	}
	switch {
	case p.refused() && res.Verdict == Diverges:
		res.Verdict, res.Divergence, res.Why = Holds, nil, "it was refused before it began"
	case s.cut != "":
		res.Verdict, res.Divergence, res.Why = Unverified, nil, s.cut
	}
	return res
}

// execute executes a program once, as the loop does: its input is looked at before,
// and its output afterwards.
func (r Replayer) execute(ctx context.Context, p Program, s *script, c sandbox.Caller) End {
	end := End{Known: true}
	if end.Fault = p.checkInput(); end.Fault != nil {
		return end
	}
	res, err := r.Sandbox.Execute(ctx, sandbox.Program{Source: p.Source, Input: p.Input, Limits: p.limits()}, c)
	if err != nil {
		var ok bool
		if end.Fault, ok = contract.AsFault(err); !ok {
			end.Fault = contract.Faultf(contract.ReasonWorkerLost, "the execution could not be carried out")
		}
	}
	if end.Fault = contract.Worst(s.latch, end.Fault); end.Fault == nil {
		end.Fault = loop.CheckOutput(p.OutputSchema, res.Value)
	}
	if end.Fault == nil {
		end.Value, end.Digest = res.Value, contract.Digest(res.Value)
	}
	return end
}

// checkInput says why the program is not executed at all, or nil.
func (p Program) checkInput() *contract.Fault {
	if !p.Called {
		return loop.CheckInput(p.InputSchema, p.Input)
	}
	input, err := contract.CompileSchema(p.InputSchema)
	if err != nil {
		f, _ := contract.AsFault(err)
		return f
	}
	return loop.CheckArguments(p.Recipe, p.limits(), input, p.Input)
}

// limits are those of the program, but for the clock: how fast it was is no part of
// what it did. Without a record of them they are as high as they can be.
func (p Program) limits() contract.Limits {
	l := contract.Ceilings()
	l.Fuel, l.WallClockMs = 0, minWallMs
	if p.Limits != nil {
		l = *p.Limits
	}
	if f := p.End.Fault; f == nil || f.Reason != contract.ReasonTimeout || sandbox.OutOfFuel(f) {
		l.WallClockMs = max(l.WallClockMs, minWallMs)
	}
	return l
}

// judge compares the end of a replay with the record. It may find that nobody can
// tell, which it leaves in s.cut.
func (p Program) judge(s *script, got End) *Divergence {
	switch f := got.Fault; {
	case s.diff != nil:
		return s.diff
	case s.cut != "":
		return nil
	case f != nil && f.Reason == contract.ReasonTimeout && !sandbox.OutOfFuel(f):
		s.cut = fmt.Sprintf("the replay was stopped: %s", f.Message)
		if outside(p.End) {
			s.cut = "it " + p.End.stopped()
		}
		return nil
	case f != nil && (f.Reason == contract.ReasonCancelled || f.Reason == contract.ReasonWorkerLost || f.Reason == contract.ReasonLimitsTooHigh):
		s.cut = "the replay was stopped: " + f.Message
		return nil
	case s.next < len(p.Calls):
		c := p.Calls[s.next]
		return &Divergence{Kind: KindMissing, Call: s.next + 1, Seq: c.Seq, Tool: c.Tool, Recorded: shown(c.Tool, c.Arguments), Replayed: got.words()}
	case !p.End.Known:
		s.cut = "the transcript ends before the program does"
		return nil
	}
	d := p.End.differs(got)
	switch {
	case d == nil:
	case outside(p.End):
		s.cut = "it " + p.End.stopped()
	case bounded(p.End.Fault) != bounded(got.Fault) && p.Limits == nil:
		s.cut = "it " + p.End.ended() + ", and the transcript, which an earlier version wrote, has no limits"
	case bounded(p.End.Fault) && p.respelled():
		s.cut = "it " + p.End.ended() + ", and the transcript has its values without their blanks, which count"
	default:
		return d
	}
	return nil
}

// refused reports whether a recipe may have been refused what no program has to do
// with: one of its tools is not one of the run.
func (p Program) refused() bool {
	f := p.End.Fault
	return p.Called && f != nil && f.Reason == contract.ReasonToolNotAllowed && len(p.Calls) == 0
}

func (p Program) respelled() bool {
	for _, c := range p.Calls {
		if c.Respelled {
			return true
		}
	}
	return p.Respelled
}

// bounded reports whether a fault is that of a bound that the transcript must have
// exactly.
func bounded(f *contract.Fault) bool {
	if f == nil {
		return false
	}
	switch f.Reason {
	case contract.ReasonHeapExhausted, contract.ReasonStackExhausted, contract.ReasonTimeout, contract.ReasonOutputTooLarge,
		contract.ReasonInputTooLarge, contract.ReasonSourceTooLarge, contract.ReasonInvalidArguments:
		return true
	default:
		return false
	}
}

// outside reports whether a program did not end by its own doing, so that no replay
// comes to this end: a clock, somebody, or the machine ended it, or nothing began.
func outside(e End) bool {
	f := e.Fault
	if f == nil {
		return false
	}
	switch f.Reason {
	case contract.ReasonTimeout:
		return !sandbox.OutOfFuel(f)
	case contract.ReasonCancelled, contract.ReasonWorkerLost, contract.ReasonBrokerUnavailable:
		return true
	case contract.ReasonInvalidInput, contract.ReasonInvalidOutput:
		return false
	default:
		c := f.Reason.Class()
		return c == contract.ClassRun || c == contract.ClassObject || c == ""
	}
}

// differs compares two ends; nil when they are the same.
func (e End) differs(got End) *Divergence {
	switch {
	case e.Fault == nil && got.Fault == nil:
		if e.Digest == got.Digest {
			return nil
		}
		if e.Value == nil {
			return &Divergence{Kind: KindOutput, Recorded: "an output of the digest " + e.Digest, Replayed: got.words()}
		}
		return Divergence{Kind: KindOutput}.compared(e.Value, got.Value)
	case e.Fault != nil && got.Fault != nil && e.words() == got.words():
		return nil
	}
	return &Divergence{Kind: KindEnd, Recorded: e.words(), Replayed: got.words()}
}

// words are how it ended.
func (e End) words() string {
	f := e.Fault
	switch {
	case f != nil && f.Line > 0:
		return fmt.Sprintf("%s at line %d, column %d", f.Error(), f.Line, f.Column)
	case f != nil:
		return f.Error()
	}
	return contract.Truncate("the output "+cmp.Or(string(e.Value), "of the digest "+e.Digest), maxShown)
}

// ended and stopped are the same, as the end of a sentence.
func (e End) ended() string { return "ended with " + string(e.Fault.Reason) }

func (e End) stopped() string {
	return fmt.Sprintf("was ended by %s, which no replay reproduces", e.Fault.Reason)
}
