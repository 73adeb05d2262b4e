package broker

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

func calling(ctx context.Context, x *Execution, names ...string) []contract.Reason {
	out := []contract.Reason{}
	for _, name := range names {
		_, err := x.Call(ctx, name, json.RawMessage("{}"))
		out = append(out, reasonOf(err))
	}
	return out
}

// TestExecutionsOfOneRun plays two programs of one run, and says what the second
// one may do after the end of the first.
func TestExecutionsOfOneRun(t *testing.T) {
	lost := failing(errors.New("x"))
	one, none := int64(1), int64(0)
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(contract.Faultf(contract.ReasonCancelled, "c"))
	late, stop := context.WithTimeoutCause(t.Context(), 0, contract.Faultf(contract.ReasonTimeout, "t"))
	defer stop()
	const ok = contract.Reason("")
	tests := map[string]struct {
		ctx           context.Context
		calls         *int64
		maxPay        int64
		first, second []string
		want1, want2  []contract.Reason
		readOnly      bool
		end           contract.Reason
	}{
		"nothing happened": {
			first: []string{"pay"}, second: []string{"pay", "read"},
			want1: []contract.Reason{ok}, want2: []contract.Reason{ok, ok},
		},
		"a name that is not granted": {
			first: []string{"ghost", "pay"}, second: []string{"pay"},
			want1: []contract.Reason{contract.ReasonToolNotAllowed, contract.ReasonToolNotAllowed}, want2: []contract.Reason{ok},
		},
		"an effect in doubt": {
			first: []string{"lose", "read"}, second: []string{"read", "pay", "read"}, readOnly: true,
			want1: []contract.Reason{contract.ReasonEffectUncertain, contract.ReasonEffectUncertain},
			want2: []contract.Reason{ok, contract.ReasonEffectUncertain, contract.ReasonEffectUncertain},
			end:   contract.ReasonEffectUncertain,
		},
		"the budget of the run": {
			calls: &one, first: []string{"pay"}, second: []string{"read", "pay"},
			want1: []contract.Reason{ok}, want2: []contract.Reason{contract.ReasonCallLimitExceeded, contract.ReasonCallLimitExceeded},
			end: contract.ReasonCallLimitExceeded,
		},
		"a spent budget stays": {
			calls: &none, first: []string{"pay"}, second: []string{"ghost"},
			want1: []contract.Reason{contract.ReasonCallLimitExceeded}, want2: []contract.Reason{contract.ReasonCallLimitExceeded},
			end: contract.ReasonCallLimitExceeded,
		},
		"the budget of a tool": {
			maxPay: 2, first: []string{"pay", "pay"}, second: []string{"pay"},
			want1: []contract.Reason{ok, ok}, want2: []contract.Reason{contract.ReasonCallLimitExceeded},
			end: contract.ReasonCallLimitExceeded,
		},
		"a cancelled run": {
			ctx: cancelled, first: []string{"pay"}, second: []string{"pay"},
			want1: []contract.Reason{contract.ReasonCancelled}, want2: []contract.Reason{contract.ReasonCancelled},
			end: contract.ReasonCancelled,
		},
		"a program out of time": {
			ctx: late, first: []string{"pay"}, second: []string{"pay"},
			want1: []contract.Reason{contract.ReasonTimeout}, want2: []contract.Reason{ok},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := contract.DefaultLimits()
			if tc.calls != nil {
				l.ChildCalls = tc.calls
			}
			pay := toolOf("pay", contract.EffectEffectful, &fake{})
			pay.MaxCalls = tc.maxPay
			b := newBroker(t, Config{Limits: l, Tools: []Tool{
				pay, toolOf("read", contract.EffectReadOnly, &fake{}), toolOf("lose", contract.EffectEffectful, lost),
			}})
			x := b.Next(Scope{})
			ctx := t.Context()
			if tc.ctx != nil {
				ctx = tc.ctx
			}
			if diff := cmp.Diff(tc.want1, calling(ctx, x, tc.first...)); diff != "" {
				t.Errorf("first program (-want +got):\n%s", diff)
			}
			if e := x.End(); e.ReadOnly != tc.readOnly || len(e.Calls) != len(b.book.calls) {
				t.Errorf("the first program ended with %+v", e)
			}
			x = b.Next(Scope{})
			if diff := cmp.Diff(tc.want2, calling(t.Context(), x, tc.second...)); diff != "" {
				t.Errorf("second program (-want +got):\n%s", diff)
			}
			if f := x.End().Fault; (f == nil) != (tc.end == "") || f != nil && f.Reason != tc.end {
				t.Errorf("the second program ended with %v, want %q", f, tc.end)
			}
		})
	}
}

func TestExecutionIsOver(t *testing.T) {
	tool := &fake{}
	b := newBroker(t, Config{Tools: []Tool{toolOf("pay", contract.EffectEffectful, tool)}})
	old := b.Next(Scope{})
	calling(t.Context(), old, "pay")
	if got := old.End(); got.Admitted != 1 || len(got.Calls) != 1 {
		t.Errorf("the first program ended with %+v", got)
	}
	x := b.Next(Scope{})
	if diff := cmp.Diff([]contract.Reason{contract.ReasonBrokerUnavailable}, calling(t.Context(), old, "pay")); diff != "" {
		t.Errorf("the program before (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]contract.Reason{""}, calling(t.Context(), x, "pay")); diff != "" {
		t.Errorf("its successor (-want +got):\n%s", diff)
	}
	if got := x.End(); got.Admitted != 1 || got.Calls[0].ID != "u:3:2" || got.Fault != nil {
		t.Errorf("the second program ended with %+v", got)
	}
	b.End()
	if diff := cmp.Diff([]contract.Reason{contract.ReasonBrokerUnavailable}, calling(t.Context(), b.Next(Scope{}), "pay")); diff != "" {
		t.Errorf("after the end (-want +got):\n%s", diff)
	}
	if len(tool.requests) != 2 {
		t.Errorf("the tool was sent %d requests", len(tool.requests))
	}
}
