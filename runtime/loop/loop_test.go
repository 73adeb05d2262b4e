package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// executor does what a test says.
type executor func(ctx context.Context, p sandbox.Program, c sandbox.Caller) (sandbox.Result, error)

func (e executor) Execute(ctx context.Context, p sandbox.Program, c sandbox.Caller) (sandbox.Result, error) {
	return e(ctx, p, c)
}

func returns(value string) executor {
	return func(context.Context, sandbox.Program, sandbox.Caller) (sandbox.Result, error) {
		return sandbox.Result{Value: json.RawMessage(value), Usage: sandbox.Usage{HeapBytes: 65536}}, nil
	}
}

func fails(err error) executor {
	return func(context.Context, sandbox.Program, sandbox.Caller) (sandbox.Result, error) {
		return sandbox.Result{}, err
	}
}

// callsGhost calls a tool that is not there and ends as given.
func callsGhost(end executor) executor {
	return func(ctx context.Context, p sandbox.Program, c sandbox.Caller) (sandbox.Result, error) {
		_, _ = c.Call(ctx, "ghost", json.RawMessage("{}"))
		return end(ctx, p, c)
	}
}

func clock() func() time.Time {
	t := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time { t = t.Add(time.Millisecond); return t }
}

func TestRun(t *testing.T) {
	object := json.RawMessage(`{"type":"object"}`)
	broken := json.RawMessage(`{"type":7}`)
	tests := map[string]struct {
		bundle contract.Bundle
		exec   executor
		want   contract.Reason
		value  string
	}{
		"no schemas":                       {contract.Bundle{}, returns("1"), "", "1"},
		"input matches":                    {contract.Bundle{Input: json.RawMessage("{}"), InputSchema: object}, returns("1"), "", "1"},
		"input does not match":             {contract.Bundle{Input: json.RawMessage("[]"), InputSchema: object}, returns("1"), contract.ReasonInvalidInput, ""},
		"no input is null":                 {contract.Bundle{InputSchema: object}, returns("1"), contract.ReasonInvalidInput, ""},
		"input is not JSON":                {contract.Bundle{Input: json.RawMessage("{"), InputSchema: object}, returns("1"), contract.ReasonInvalidInput, ""},
		"output matches":                   {contract.Bundle{OutputSchema: object}, returns("{}"), "", "{}"},
		"output does not match":            {contract.Bundle{OutputSchema: object}, returns("1"), contract.ReasonInvalidOutput, ""},
		"input schema is broken":           {contract.Bundle{InputSchema: broken}, returns("1"), contract.ReasonSchemaInvalid, ""},
		"output schema is broken":          {contract.Bundle{OutputSchema: broken}, returns("1"), contract.ReasonSchemaInvalid, ""},
		"the program fails":                {contract.Bundle{OutputSchema: object}, fails(contract.Faultf(contract.ReasonHeapExhausted, "h")), contract.ReasonHeapExhausted, ""},
		"the sandbox fails":                {contract.Bundle{}, fails(errors.New("x")), contract.ReasonWorkerLost, ""},
		"a latched fault beats a value":    {contract.Bundle{}, callsGhost(returns("1")), contract.ReasonToolNotAllowed, ""},
		"and an error of the language":     {contract.Bundle{}, callsGhost(fails(contract.Faultf(contract.ReasonJavaScriptError, "j"))), contract.ReasonToolNotAllowed, ""},
		"and an output that is too large":  {contract.Bundle{}, callsGhost(fails(contract.Faultf(contract.ReasonOutputTooLarge, "o"))), contract.ReasonToolNotAllowed, ""},
		"and an output of the wrong shape": {contract.Bundle{OutputSchema: object}, callsGhost(returns("1")), contract.ReasonToolNotAllowed, ""},
		"a timeout beats it":               {contract.Bundle{}, callsGhost(fails(contract.Faultf(contract.ReasonTimeout, "t"))), contract.ReasonTimeout, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.bundle.Limits = contract.DefaultLimits()
			o := Run(t.Context(), Config{Sandbox: tc.exec, Bundle: tc.bundle, Now: clock()})
			var got contract.Reason
			if o.Fault != nil {
				got = o.Fault.Reason
			}
			if got != tc.want || string(o.Value) != tc.value {
				t.Errorf("value %s, fault %v, want %q and the reason %q", o.Value, o.Fault, tc.value, tc.want)
			}
		})
	}
}

func TestRunHandsTheProgramOver(t *testing.T) {
	b := contract.Bundle{Source: "s", Input: json.RawMessage(`{"n":9007199254740993}`), Limits: contract.DefaultLimits()}
	var got sandbox.Program
	Run(t.Context(), Config{Bundle: b, Now: clock(), Sandbox: executor(func(_ context.Context, p sandbox.Program, _ sandbox.Caller) (sandbox.Result, error) {
		got = p
		return sandbox.Result{Value: json.RawMessage("1")}, nil
	})})
	if diff := cmp.Diff(sandbox.Program{Source: b.Source, Input: b.Input, Limits: b.Limits}, got); diff != "" {
		t.Errorf("program (-want +got):\n%s", diff)
	}
}

func TestReport(t *testing.T) {
	end := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("x", 3600))
	calls := []contract.Call{{Seq: 1, Tool: "x", State: contract.CallCompleted}}
	usage := contract.Usage{WallMs: 1, HeapBytes: 2, ChildCalls: 3}
	base := contract.Execution{Generation: 1, RunUID: "u"}
	tests := map[string]struct {
		outcome Outcome
		want    contract.Execution
	}{
		"success": {
			Outcome{Value: json.RawMessage(`{"b":1,"a":2}`), Calls: calls, Refused: 4, Usage: usage},
			contract.Execution{
				Result: contract.ResultSucceeded, Output: `{"b":1,"a":2}`, OutputDigest: contract.Digest([]byte(`{"b":1,"a":2}`)),
				Calls: calls, RefusedCalls: 4,
			},
		},
		"failure": {
			Outcome{Fault: contract.Faultf(contract.ReasonSyntaxError, "m").At(2, 3), Usage: usage},
			contract.Execution{
				Result: contract.ResultFailed,
				Error:  &contract.ExecutionError{Reason: contract.ReasonSyntaxError, Message: "m", Line: 2, Column: 3},
			},
		},
		"a value that is none": {
			Outcome{Value: json.RawMessage(`{`), Usage: usage},
			contract.Execution{
				Result: contract.ResultFailed,
				Error:  &contract.ExecutionError{Reason: contract.ReasonWorkerLost, Message: "the program's result is not JSON"},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := base
			tc.outcome.Report(&got, end)
			tc.want.Generation, tc.want.RunUID, tc.want.Usage, tc.want.CompletionTime = 1, "u", &usage, "2026-01-02T02:04:05Z"
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	var out bytes.Buffer
	b := contract.Bundle{
		Run:    contract.RunRef{Namespace: "n", Name: "r", UID: "u", Generation: 2},
		Input:  json.RawMessage(`"hunter2"`),
		Limits: contract.DefaultLimits(), Transcript: contract.TranscriptNone,
	}
	Run(t.Context(), Config{Sandbox: callsGhost(returns(`"hunter2"`)), Bundle: b, Now: clock(), Events: NewEvents(&out, clock())})
	var got []string
	for line := range strings.Lines(out.String()) {
		var e contract.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Run != "n/r" || e.RunUID != "u" || e.Generation != 2 || e.Time == "" {
			t.Errorf("event %s", line)
		}
		got = append(got, strings.TrimSpace(string(e.Type)+" "+e.Tool+" "+e.State+" "+string(e.Reason)))
	}
	want := []string{"execution.started", "call.denied (unknown) Refused ToolNotAllowed", "latched (unknown)  ToolNotAllowed", "error   ToolNotAllowed", "execution.finished  Failed ToolNotAllowed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if strings.Contains(out.String(), "hunter2") {
		t.Error("the events hold the input or the output")
	}
}
