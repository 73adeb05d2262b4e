package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxTerminationBytes is what the kubelet keeps of a termination message.
const MaxTerminationBytes = 4096

// termination is the report's second way out. Digest covers Execution, so that
// a message that was cut short or put together by something else is no report.
type termination struct {
	Version   string          `json:"codeact"`
	Digest    string          `json:"digest"`
	Execution json.RawMessage `json:"execution"`
}

const terminationVersion = "report.v1"

// TerminationMessage returns e as a message of at most MaxTerminationBytes. What
// does not fit is left out in this order: the evidence, the output (its digest
// stays), the stack, the usage of each tool, all of the steps but their
// kinds and reasons, all steps but the last eight, the refused calls, the digests, receipts and times
// of the calls, the steps, every call with a proven outcome, the end of the
// error's message, where the transcript is, the message and the calls.
func (e Execution) TerminationMessage() ([]byte, error) {
	for _, shrink := range []func(*Execution){
		func(*Execution) {},
		shorterError(func(x *ExecutionError) { x.Evidence = "" }),
		func(e *Execution) { e.Output = "" },
		shorterError(func(x *ExecutionError) { x.Stack = nil }),
		func(e *Execution) {
			if e.Usage != nil {
				short := *e.Usage
				short.Tools = nil
				e.Usage = &short
			}
		},
		func(e *Execution) { e.Steps = briefSteps(e.Steps) },
		func(e *Execution) { e.Steps = e.Steps[max(0, len(e.Steps)-8):] },
		func(e *Execution) { e.Calls = only(e.Calls, func(c Call) bool { return c.State != CallRefused }) },
		func(e *Execution) { e.Calls = brief(e.Calls) },
		func(e *Execution) { e.Steps = nil },
		func(e *Execution) { e.Calls = only(e.Calls, Call.MayHaveHappened) },
		shorterError(func(x *ExecutionError) { x.Message = Truncate(x.Message, 256) }),
		func(e *Execution) { e.Transcript = nil },
		func(e *Execution) { e.Calls = e.Calls[:min(len(e.Calls), 8)] },
		func(e *Execution) {
			e.Calls = nil
			if e.Error != nil {
				e.Error = &ExecutionError{Reason: e.Error.Reason, Line: e.Error.Line, Column: e.Error.Column}
			}
		},
	} {
		shrink(&e)
		b, err := encodeTermination(e)
		if err != nil {
			return nil, err
		}
		if len(b) <= MaxTerminationBytes {
			return b, nil
		}
	}
	return nil, fmt.Errorf("the report does not fit %d bytes", MaxTerminationBytes)
}

// shorterError changes a copy of the report's error, if it has one.
func shorterError(shrink func(*ExecutionError)) func(*Execution) {
	return func(e *Execution) {
		if e.Error != nil {
			short := *e.Error
			shrink(&short)
			e.Error = &short
		}
	}
}

func only(calls []Call, keep func(Call) bool) []Call {
	var out []Call
	for _, c := range calls {
		if keep(c) {
			out = append(out, c)
		}
	}
	return out
}

func brief(calls []Call) []Call {
	var out []Call
	for _, c := range calls {
		out = append(out, Call{Seq: c.Seq, Tool: c.Tool, Effect: c.Effect, State: c.State, Reason: c.Reason})
	}
	return out
}

func briefSteps(steps []Step) []Step {
	var out []Step
	for _, s := range steps {
		out = append(out, Step{Step: s.Step, Kind: s.Kind, Reason: s.Reason})
	}
	return out
}

func encodeTermination(e Execution) ([]byte, error) {
	x, err := Canonical(e)
	if err != nil {
		return nil, err
	}
	return Canonical(termination{Version: terminationVersion, Digest: Digest(x), Execution: x})
}

// ParseTermination reads a termination message. Any text that is not a whole
// message of this version is an error.
func ParseTermination(b []byte) (*Execution, error) {
	var t termination
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return nil, fmt.Errorf("the termination message is no report")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the termination message has text behind the report")
	}
	if t.Version != terminationVersion || Digest(t.Execution) != t.Digest {
		return nil, fmt.Errorf("the termination message is no whole report")
	}
	var e Execution
	if err := json.Unmarshal(t.Execution, &e); err != nil {
		return nil, fmt.Errorf("the termination message is no report")
	}
	return &e, nil
}
