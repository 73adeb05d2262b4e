package sandbox

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

func hostileLimits() contract.Limits {
	calls := int64(1000)
	return contract.Limits{
		SourceBytes: 2 << 20, InputBytes: 2 << 20, OutputBytes: 1 << 20,
		HeapBytes: 64 << 20, StackBytes: 1 << 20, WallClockMs: 1500, ChildCalls: &calls,
	}
}

// codedFailure is a failure with a code of the tool's own.
type codedFailure struct {
	*contract.Fault
	code string
}

func (c codedFailure) GuestCode() string { return c.code }
func (c codedFailure) Unwrap() error     { return c.Fault }

// hostileTools are the stubs that the hostile programs call.
type hostileTools struct{ calls int }

func (h *hostileTools) Call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	if h.calls++; h.calls > 1000 {
		return nil, contract.Faultf(contract.ReasonCallLimitExceeded, "too many calls")
	}
	switch name {
	case "echo":
		return args, nil
	case "fail":
		return nil, codedFailure{contract.Faultf(contract.ReasonToolFailed, "no such thing"), "NotFound"}
	case "term":
		return nil, contract.Faultf(contract.ReasonApprovalRequired, "approval required")
	case "slow":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, contract.Faultf(contract.ReasonToolNotAllowed, "%s is not allowed", name)
}

// overshoot is how long after its deadline a hostile program may end.
const overshoot = 250 * time.Millisecond

func TestHostileVectors(t *testing.T) {
	e := testEngine(t)
	for _, v := range readVectors[hostileVector](t, "hostile.json") {
		t.Run(v.ID, func(t *testing.T) {
			p := Program{Source: v.Source, Input: hostileInput(v.Input), Limits: hostileLimits()}
			start := time.Now()
			res, err := e.Execute(t.Context(), p, &hostileTools{})
			if took := time.Since(start); took > p.Limits.WallClock()+overshoot {
				t.Errorf("took %v, limit %v", took, p.Limits.WallClock())
			}
			f, failed := contract.AsFault(err)
			switch {
			case err != nil && !failed:
				t.Fatalf("not a fault: %v", err)
			case strings.Contains(err2s(err), "\n"), failed && f.Reason == contract.ReasonWorkerLost:
				t.Fatalf("not a clean outcome: %v", err)
			case v.Expect.Status == "any":
			case v.Expect.Status == "ok":
				if err != nil || !sameJSON(res.Value, v.Expect.Value) {
					t.Errorf("value %.100s error %v, want %.100s", res.Value, err, v.Expect.Value)
				}
			case !failed || !v.allows(f.Reason):
				t.Errorf("value %.100s error %v, want one of %s", res.Value, err, v.Expect.Reason)
			}
		})
	}
}

func err2s(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// hostileInput expands {"repeatJSON": ["[", n, "]", n]}.
func hostileInput(raw json.RawMessage) json.RawMessage {
	var r struct{ RepeatJSON []any }
	if json.Unmarshal(raw, &r) != nil || r.RepeatJSON == nil {
		return raw
	}
	var b strings.Builder
	for i := 0; i < len(r.RepeatJSON); i += 2 {
		b.WriteString(strings.Repeat(r.RepeatJSON[i].(string), int(r.RepeatJSON[i+1].(float64))))
	}
	return json.RawMessage(b.String())
}
