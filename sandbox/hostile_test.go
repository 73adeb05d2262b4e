package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
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

// TestHostileVectors runs every hostile program. Its deadline assumes a
// processor of its own: where others had it instead, as the process's own time
// shows, the program is run again with more time. A late end or a wrong reason
// on a processor of its own is never excused.
func TestHostileVectors(t *testing.T) {
	e := testEngine(t)
	for _, v := range readVectors[hostileVector](t, "hostile.json") {
		t.Run(v.ID, func(t *testing.T) {
			limits := hostileLimits()
			if testing.Short() && v.allows(contract.ReasonTimeout) {
				limits.WallClockMs = 300
			}
			for try := 0; ; try++ {
				problem, starved := runHostile(t, e, v, limits)
				if problem == "" {
					return
				}
				if !starved || try == 3 {
					t.Fatal(problem)
				}
				t.Logf("starved, trying again: %s", problem)
				limits.WallClockMs *= 2
			}
		})
	}
}

// runHostile says what was wrong with one run, and whether the process had less
// than three quarters of a processor.
func runHostile(t *testing.T, e *Engine, v hostileVector, limits contract.Limits) (problem string, starved bool) {
	start, used := time.Now(), cpuTime()
	res, err := e.Execute(t.Context(), Program{Source: v.Source, Input: hostileInput(v.Input), Limits: limits}, &hostileTools{})
	took := time.Since(start)
	starved = cpuTime()-used < took*3/4
	f, failed := contract.AsFault(err)
	switch {
	case err != nil && !failed:
		return fmt.Sprintf("not a fault: %v", err), false
	case failed && (f.Reason == contract.ReasonWorkerLost || strings.Contains(f.Message, "\n")):
		return fmt.Sprintf("not a clean outcome: %v", err), false
	case took > limits.WallClock()+overshoot:
		return fmt.Sprintf("took %v with a limit of %v", took, limits.WallClock()), starved
	case v.Expect.Status == "any":
	case v.Expect.Status == "ok":
		if err != nil || !sameJSON(res.Value, v.Expect.Value) {
			return fmt.Sprintf("value %.100s error %v, want %.100s", res.Value, err, v.Expect.Value), starved
		}
	case !failed || !v.allows(f.Reason):
		return fmt.Sprintf("value %.100s error %v, want one of %s", res.Value, err, v.Expect.Reason), starved && failed && f.Reason == contract.ReasonTimeout
	}
	return "", false
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
