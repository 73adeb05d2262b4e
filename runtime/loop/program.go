package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/loop/protocol"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// CodeTool is the name of the logical tool that a program of a model is a call of.
const CodeTool = "code"

// CodeID is the id of the program of a step.
func CodeID(step int64) string { return fmt.Sprintf("code_execution_%d", step) }

// made is what came of one program, recipe or direct call: a value or a fault.
type made struct {
	value json.RawMessage
	fault *contract.Fault
	ended broker.Ended
}

// event is the end of it.
func (m made) event(x contract.Event) contract.Event {
	x.State = string(contract.ResultSucceeded)
	if f := m.fault; f != nil {
		x.State, x.Reason = string(contract.ResultFailed), f.Reason
		x.Content = &contract.EventContent{Message: f.Message, Line: f.Line, Column: f.Column, Evidence: m.ended.Evidence}
	} else {
		x.Content = &contract.EventContent{Result: m.value}
	}
	return x
}

// source is a program and its input as an event has them.
func source(text string, input json.RawMessage) *contract.EventContent {
	return &contract.EventContent{Source: text, SourceDigest: contract.Digest([]byte(text)), Input: input}
}

// program executes one program of the model in one fresh execution.
func (a *agent) program(ctx context.Context, s *contract.Step, text string) turn {
	s.Kind = contract.StepCode
	a.tell(append(slices.Clip(a.steps), *s))
	e := contract.Event{Type: contract.EventProgramStarted, Step: s.Step, ID: CodeID(s.Step), Tool: CodeTool, Content: source(text, a.Bundle.Input)}
	a.Events.step(a.Bundle, e)
	start := a.Now()
	inner, done := a.Spans.Tool(ctx, CodeTool, CodeID(s.Step))
	m := a.execute(inner, sandbox.Program{Source: text, Input: a.Bundle.Input, Limits: a.Bundle.Limits}, broker.Scope{})
	s.ProgramMs, s.Calls = a.Now().Sub(start).Milliseconds(), m.ended.Admitted
	done(m.fault)
	e.Type, e.DurationMs = contract.EventProgramFinished, s.ProgramMs
	a.Events.step(a.Bundle, m.event(e))
	if m.fault != nil {
		s.Reason = string(m.fault.Reason)
		return a.failed(ctx, m.fault, m.ended)
	}
	return a.succeeded(s, m.value)
}

// execute executes one program in one fresh execution.
func (a *agent) execute(ctx context.Context, p sandbox.Program, scope broker.Scope) made {
	x := a.broker.Next(scope)
	res, err := a.Sandbox.Execute(ctx, p, x)
	m := made{value: res.Value, ended: x.End()}
	a.used.HeapBytes = max(a.used.HeapBytes, res.Usage.HeapBytes)
	a.used.Fuel += res.Usage.Fuel
	if err != nil {
		m.fault = faultOf(err)
	}
	// What the broker holds is true whatever the executor says.
	m.fault = contract.Worst(m.ended.Fault, m.fault)
	return m
}

// failed decides whether the failure of a program is that of the run.
func (a *agent) failed(ctx context.Context, f *contract.Fault, ended broker.Ended) turn {
	if ended.Evidence != "" {
		a.left = ended.Evidence
	}
	if stop := stopped(ctx); stop != nil {
		return turn{fault: stop}
	}
	if ends(f.Reason) {
		return turn{fault: f}
	}
	a.closing = false
	x := protocol.Failure{Fault: f, Calls: ended.Calls, ReadOnly: ended.ReadOnly}
	if x.ReadOnly {
		x.Callable = a.readOnly()
	}
	return turn{feedback: protocol.CodeError(x)}
}

// readOnly names the tools that can be called while an effect is in doubt.
func (a *agent) readOnly() (names []string) {
	for _, t := range a.Tools {
		if a.pinned.Protocol == contract.ProtocolTools && !t.Direct {
			continue
		}
		if t.Tool.Defaulted().Effect == contract.EffectReadOnly {
			names = append(names, t.Tool.Name)
		}
	}
	return names
}

// ends reports whether a program's failure of this reason is the run's: its
// authority is gone, or no other program would do better.
func ends(r contract.Reason) bool {
	return r == contract.ReasonWorkerLost || r == contract.ReasonInputTooLarge || r == contract.ReasonLimitsTooHigh || broker.Withdraws(r)
}

// succeeded decides whether the value of a program is the output of the run.
func (a *agent) succeeded(s *contract.Step, value json.RawMessage) turn {
	useful := usable(value)
	if useful {
		a.last = &contract.LastResult{Step: s.Step, Result: value}
	}
	if a.pinned.Finalize == contract.FinalizeModel {
		a.closing = true
	} else if useful {
		return a.end(s, value)
	}
	return turn{feedback: protocol.CodeResult(value, a.pinned.Finalize)}
}

// usable reports whether a result may be an output: null and a blank string are
// what a program returns that has found nothing.
func usable(value json.RawMessage) bool {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || string(value) == "null" {
		return false
	}
	var text string
	return value[0] != '"' || json.Unmarshal(value, &text) != nil || strings.TrimSpace(text) != ""
}

// outcome is how the run ended.
func (a *agent) outcome(value json.RawMessage, f *contract.Fault) Outcome {
	rec := a.broker.End()
	o := Outcome{
		Value: value, Fault: f, Steps: a.steps, Calls: rec.Calls, Refused: rec.Refused, Media: rec.Media, MediaSeq: rec.MediaSeq,
		Usage: contract.Usage{HeapBytes: a.used.HeapBytes, Fuel: a.used.Fuel, ChildCalls: rec.Admitted, Tools: rec.Tools},
	}
	a.tokens.into(&o.Usage)
	if f != nil {
		o.Value, o.Evidence = nil, a.evidence(f)
	}
	return o
}

// evidence is what a run that failed leaves: what the call left that ended it;
// or else the last useful result; or else what an earlier call left.
func (a *agent) evidence(f *contract.Fault) string {
	if a.last == nil || f.Reason.Class() == contract.ClassTerminal && a.left != "" {
		return a.left
	}
	most := max(contract.EvidenceFloorBytes, min(a.Bundle.Limits.OutputBytes, contract.MaxEvidenceBytes))
	return a.last.Evidence(most)
}
