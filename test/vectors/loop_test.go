package vectors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/stub"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// loopCase is one case of loop.json.
type loopCase struct {
	ID      string
	Group   string
	Note    string
	Options struct {
		Protocol  contract.Protocol
		Finalize  contract.Finalize
		MaxSteps  int64
		MaxTokens int64
		TimeoutMs int64
		Limits    map[string]int64
		User      string
	}
	Input      json.RawMessage
	Tools      json.RawMessage
	ModelTurns []modelTurn
	RepeatLast bool
	Expect     struct {
		Status           string
		Output           json.RawMessage
		Reason           contract.Reason
		Steps            *int64
		Programs         *int64
		ChildCalls       *int64
		Feedback         *[]string
		FinalizeMessages *int
		Usage            *modelUsage
		Events           []string
	}
}

// modelTurn is one answer of the scripted model.
type modelTurn struct {
	Text         string
	FinishReason string
	Usage        *modelUsage
	DelayMs      int64
	Cancel       bool
}

type modelUsage struct{ InputTokens, OutputTokens, TotalTokens int64 }

// UnmarshalJSON reads a turn that is nothing but its text, too.
func (m *modelTurn) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &m.Text)
	}
	type plain modelTurn
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode((*plain)(m))
}

// scripted is a model that answers as the case says, and keeps what it was told.
type scripted struct {
	c      loopCase
	cancel context.CancelCauseFunc
	asked  int64
	told   []string
}

var errScriptIsOver = errors.New("the script of the model is over")

// kinds are how the messages begin that the runtime gives a model.
var kinds = []string{"CODE_RESULT: ", "CODE_ERROR: ", "PROTOCOL_ERROR: ", "FINALIZE_MODE: "}

// Ask implements loop.Model.
func (s *scripted) Ask(ctx context.Context, r loop.ModelRequest) (loop.ModelAnswer, error) {
	last := r.Messages[len(r.Messages)-1].Text
	for _, k := range kinds {
		if s.asked > 0 && strings.HasPrefix(last, k) {
			s.told = append(s.told, last)
		}
	}
	i := int(s.asked)
	s.asked++
	if i >= len(s.c.ModelTurns) {
		if !s.c.RepeatLast {
			return loop.ModelAnswer{}, errScriptIsOver
		}
		i = len(s.c.ModelTurns) - 1
	}
	turn := s.c.ModelTurns[i]
	if turn.Cancel {
		s.cancel(contract.Faultf(contract.ReasonCancelled, "cancelled"))
	}
	if turn.DelayMs > 0 || turn.Cancel {
		select {
		case <-time.After(milliseconds(turn.DelayMs)):
		case <-ctx.Done():
			return loop.ModelAnswer{}, ctx.Err()
		}
	}
	a := loop.ModelAnswer{Text: &turn.Text, FinishReason: turn.FinishReason, Attempts: 1}
	if u := turn.Usage; u != nil {
		a.Counted, a.InputTokens, a.OutputTokens = true, u.InputTokens, u.OutputTokens
	}
	return a, nil
}

// counting is the sandbox with a count of its programs.
type counting struct {
	loop.Sandbox
	begun atomic.Int64
}

func (c *counting) Execute(ctx context.Context, p sandbox.Program, b sandbox.Caller) (sandbox.Result, error) {
	c.begun.Add(1)
	return c.Sandbox.Execute(ctx, p, b)
}

func TestLoopVectors(t *testing.T) {
	var file struct {
		About string
		Cases []loopCase
	}
	load(t, "loop.json", &file)
	if len(file.Cases) != 75 {
		t.Errorf("there are %d cases, want 75", len(file.Cases))
	}
	e := newEngine(t)
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) { c.run(t, e) })
	}
}

func (c loopCase) bundle(t *testing.T) contract.Bundle {
	b := contract.Bundle{
		Run: contract.RunRef{Namespace: "team-a", Name: "r", UID: "u", Generation: 1}, Input: c.Input, Limits: contract.DefaultLimits(),
		Agent: &contract.PinnedAgent{
			Protocol: c.Options.Protocol, Finalize: c.Options.Finalize, Prompt: "Do it.", MaxSteps: c.Options.MaxSteps,
			MaxTokens: c.Options.MaxTokens, Options: contract.ModelOptions{User: c.Options.User},
		},
	}
	for name, n := range c.Options.Limits {
		if err := b.Limits.Set(name, n); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (c loopCase) run(t *testing.T, e *sandbox.Engine) {
	stubs := map[string]stub.Stub{}
	if c.Tools != nil {
		var err error
		if stubs, err = stub.Parse(c.Tools); err != nil {
			t.Fatal(err)
		}
	}
	tools := stub.New(stubs)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if ms := c.Options.TimeoutMs; ms > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, milliseconds(ms), contract.Faultf(contract.ReasonDeadlineExceeded, "too late"))
		defer stop()
	}
	model, box := &scripted{c: c, cancel: cancel}, &counting{Sandbox: e}
	var events bytes.Buffer
	told := loop.NewEvents(&events, time.Now)
	told.Record(recorded)
	o := loop.Run(ctx, loop.Config{
		Sandbox: box, Bundle: c.bundle(t), Tools: tools.List, Now: time.Now, Model: model, Events: told,
	})
	wantReplayed(t, e, told)
	c.compare(t, o)
	c.count(t, "steps", c.Expect.Steps, int64(len(o.Steps)))
	c.count(t, "model calls", c.Expect.Steps, model.asked)
	c.count(t, "programs", c.Expect.Programs, box.begun.Load())
	c.count(t, "child calls", c.Expect.ChildCalls, tools.Entered())
	c.compareFeedback(t, model.told)
	if want := c.Expect.Usage; want != nil {
		got := modelUsage{o.Usage.InputTokens, o.Usage.OutputTokens, o.Usage.InputTokens + o.Usage.OutputTokens}
		if diff := cmp.Diff(*want, got); diff != "" || o.Usage.TokensEstimated {
			t.Errorf("usage (-want +got), estimated %v:\n%s", o.Usage.TokensEstimated, diff)
		}
	}
	if got := neutral(t, events.String()); c.Expect.Events != nil {
		if diff := cmp.Diff(c.Expect.Events, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
}

func (c loopCase) count(t *testing.T, what string, want *int64, got int64) {
	t.Helper()
	if want != nil && *want != got {
		t.Errorf("%d %s, want %d", got, what, *want)
	}
}

// compare compares the end of the run. No end may have a message of the protocol
// as its output.
func (c loopCase) compare(t *testing.T, o loop.Outcome) {
	t.Helper()
	if c.Expect.Status == "error" {
		wantFault(t, o, c.Expect.Reason)
		return
	}
	if o.Fault != nil {
		t.Fatalf("fault %v, want a value", o.Fault)
	}
	if diff := cmp.Diff(doubles(t, c.Expect.Output), doubles(t, o.Value)); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func (c loopCase) compareFeedback(t *testing.T, told []string) {
	t.Helper()
	finalize := 0
	for _, text := range told {
		if strings.HasPrefix(text, "FINALIZE_MODE: ") {
			finalize++
		}
	}
	if want := c.Expect.FinalizeMessages; want != nil && *want != finalize {
		t.Errorf("%d messages begin with FINALIZE_MODE, want %d", finalize, *want)
	}
	if c.Expect.Feedback == nil {
		return
	}
	want := *c.Expect.Feedback
	if len(told) != len(want) {
		t.Fatalf("the model was told %q, want %q", told, want)
	}
	for i := range want {
		if !strings.HasPrefix(told[i], want[i]) {
			t.Errorf("message %d is %q, want it to begin with %q", i+1, told[i], want[i])
		}
	}
}

// neutral gives the events of a run the names of the cases, and leaves out those
// that have none there.
func neutral(t *testing.T, lines string) []string {
	t.Helper()
	names := map[contract.EventType]string{
		contract.EventStepStarted: "StepStart", contract.EventModelRequested: "ModelRequest", contract.EventModelAnswered: "ModelResponse",
		contract.EventProgramStarted: "ProgramStart", contract.EventProgramFinished: "ProgramEnd", contract.EventProgramRefused: "Refused",
		contract.EventProtocolError: "ProtocolError", contract.EventFinal: "Final", contract.EventStepFinished: "StepEnd",
	}
	out := []string{}
	for line := range strings.Lines(lines) {
		var e contract.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		switch name := names[e.Type]; {
		case name != "":
			out = append(out, name)
		case e.Seq > 0 && e.State == string(contract.CallDispatched):
			out = append(out, "CallStart")
		case e.Seq > 0 && e.State != "":
			out = append(out, "CallEnd")
		}
	}
	return out
}
