package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestWaitingCalls has a direct call wait at the desk.
func TestWaitingCalls(t *testing.T) {
	approve := Resolution{Decision: contract.DecisionApprove, By: "alice"}
	with := func(result string) Resolution {
		r := approve
		r.Result = json.RawMessage(result)
		return r
	}
	tests := map[string]struct {
		tool string
		desk *desk
		told string
		call string
		kind contract.PendingKind
	}{
		"approved": {"wire", decides(approve), `{"result":7}`, "Completed", contract.PendingApproval},
		"denied": {
			"wire", decides(Resolution{Decision: contract.DecisionDeny, By: "alice"}),
			`TOOL_ERROR: {"reason":"ApprovalRequired","message":"alice denied the call of tool wire","effects":[]}`, "Abandoned ApprovalRequired", contract.PendingApproval,
		},
		"answered": {"ask", decides(with(`"yes"`)), `{"result":"yes"}`, "Completed", contract.PendingResult},
		"answered without a result": {
			"ask", decides(approve), `TOOL_ERROR: {"reason":"ChildResultInvalid","message":"the result of tool ask does not match its schema: at /: expected string, but got null (rule type)","effects":[]}`,
			"Completed ChildResultInvalid", contract.PendingResult,
		},
		"answered with a result of another form": {
			"ask", decides(with("8")), `TOOL_ERROR: {"reason":"ChildResultInvalid","message":"the result of tool ask does not match its schema: `, "Completed ChildResultInvalid", contract.PendingResult,
		},
		"nobody answers": {
			"ask", decides(Resolution{Decision: contract.DecisionDeny, By: "bob"}),
			`TOOL_ERROR: {"reason":"ApprovalRequired","message":"bob denied the call of tool ask","effects":[]}`, "Abandoned ApprovalRequired", contract.PendingResult,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, m := toolsConfig(speaks(calls(tc.tool, `{"b":1, "a":2}`), says{text: "end"}))
			c.Desk = tc.desk
			o := Run(t.Context(), c)
			if o.Fault != nil || len(tc.desk.shown) != 1 {
				t.Fatalf("%v, shown %+v", o.Fault, tc.desk.shown)
			}
			p := tc.desk.shown[0]
			if p.Kind != tc.kind || p.Tool != tc.tool || p.Arguments != `{"a":2,"b":1}` || p.ID != contract.PendingID(c.Bundle.Run, 1, p.ArgumentsDigest) {
				t.Errorf("pending %+v", p)
			}
			if told := lastTold(m.requests[1]); len(told) != 1 || !strings.HasPrefix(told[0], "c1 "+tc.told) {
				t.Errorf("told %q", told)
			}
			if got := strings.TrimSpace(string(o.Calls[0].State) + " " + string(o.Calls[0].Reason)); got != tc.call {
				t.Errorf("call %s, want %s", got, tc.call)
			}
		})
	}
}

// TestWaitIsEnded cancels a run, and lets one end in time, while a call waits.
func TestWaitIsEnded(t *testing.T) {
	for _, want := range []contract.Reason{contract.ReasonCancelled, contract.ReasonDeadlineExceeded} {
		t.Run(string(want), func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			c, _ := toolsConfig(speaks(calls("wire", "{}")))
			c.Desk = &desk{answer: func(ctx context.Context, _ contract.Pending) (Resolution, error) {
				cancel(contract.Faultf(want, "w"))
				select {
				case <-ctx.Done():
					return Resolution{}, ctx.Err()
				case <-time.After(10 * time.Second):
					return Resolution{Decision: contract.DecisionApprove}, nil
				}
			}}
			o := Run(ctx, c)
			if o.Fault == nil || o.Fault.Reason != want || len(o.Calls) != 1 || o.Calls[0].State != contract.CallAbandoned || o.Calls[0].Reason != want {
				t.Errorf("%v, calls %+v", o.Fault, o.Calls)
			}
		})
	}
}

// TestHistoryOfTools: an answer and the results of its calls stay or go together.
func TestHistoryOfTools(t *testing.T) {
	c, m := toolsConfig(speaks(calls("read", "{}", contract.RunCodeTool, `{"source":"return 1"}`), calls("sum", "{}"), runs("return 2"), says{text: "end"}))
	c.Bundle.Agent.MaxItems = 4
	if o := Run(t.Context(), c); o.Fault != nil {
		t.Fatal(o.Fault)
	}
	var got []string
	for _, x := range m.requests[3].Messages[1:] {
		text := string(x.Role) + " " + x.ToolCallID
		for _, call := range x.ToolCalls {
			text += " " + call.Name
		}
		got = append(got, text)
	}
	want := []string{"user ", "assistant  sum", "tool c1", "assistant  run_code", "tool c1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if !strings.Contains(m.requests[3].Messages[1].Text, "(3 earlier messages of this conversation are left out.)") {
		t.Errorf("prompt %q", m.requests[3].Messages[1].Text)
	}
}

// TestEventsOfTools has the events of native calls, one of which waits.
func TestEventsOfTools(t *testing.T) {
	var out bytes.Buffer
	c, _ := toolsConfig(speaks(calls("wire", `{"a":1}`, contract.RunCodeTool, `{"source":"return 1"}`), says{text: "end"}))
	c.Desk, c.Events = decides(Resolution{Decision: contract.DecisionApprove, By: "alice"}), NewEvents(&out, clock())
	Run(t.Context(), c)
	var got []string
	for line := range strings.Lines(out.String()) {
		var e contract.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		text := strings.Join([]string{string(e.Type), e.Tool, e.State}, " ")
		if x := e.Content; x != nil && strings.HasPrefix(string(e.Type), "tool.") {
			text += fmt.Sprintf(" %s %s %s", x.Arguments, x.Source, x.Result)
		}
		got = append(got, strings.Join(strings.Fields(text), " "))
	}
	want := []string{
		"execution.started", "step.started", "model.requested", "model.answered",
		`tool.started wire {"a":1}`, "pending wire Approval", "resolved wire Approve", "call wire Dispatched", "call wire Completed", "tool.finished wire Succeeded 7",
		"tool.started run_code return 1", "tool.finished run_code Succeeded 1", "step.finished Tools",
		"step.started", "model.requested", "model.answered", "final", "step.finished Final", "execution.finished Succeeded",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestWaitIsToldApart: what a person needs is the time of the event resolved, and of
// no call.
func TestWaitIsToldApart(t *testing.T) {
	var out bytes.Buffer
	c, _ := toolsConfig(speaks(calls("wire", `{}`), says{text: "end"}))
	now := time.Unix(0, 0)
	c.Now = func() time.Time { now = now.Add(time.Millisecond); return now }
	c.Desk = &desk{answer: func(context.Context, contract.Pending) (Resolution, error) {
		now = now.Add(time.Hour)
		return Resolution{Decision: contract.DecisionApprove}, nil
	}}
	c.Events = NewEvents(&out, clock())
	o := Run(t.Context(), c)
	hour := time.Hour.Milliseconds()
	if ms := o.Steps[0].Tools[0].Ms; ms >= hour {
		t.Errorf("the step's call took %d ms", ms)
	}
	for line := range strings.Lines(out.String()) {
		var e contract.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		whole := e.Type == contract.EventResolved || e.Type == contract.EventStepFinished || e.Type == contract.EventExecutionFinished
		if e.Step < 2 && whole != (e.DurationMs >= hour) {
			t.Errorf("%s has %d ms", e.Type, e.DurationMs)
		}
	}
}
