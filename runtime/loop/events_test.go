package loop

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// TestTypesOfEvents shows as what a change of a call is told.
func TestTypesOfEvents(t *testing.T) {
	refused := func(r contract.Reason) broker.Event {
		return broker.Event{Call: contract.Call{Tool: "x", State: contract.CallRefused, Reason: r}}
	}
	in := func(s contract.CallState, r contract.Reason) broker.Event {
		return broker.Event{Call: contract.Call{Seq: 1, Tool: "x", State: s, Reason: r}}
	}
	with := func(e broker.Event, f func(*broker.Event)) broker.Event { f(&e); return e }
	latch := func(e *broker.Event) { e.Latched = true }
	tests := map[string]struct {
		event broker.Event
		want  []string
	}{
		"dispatched":       {in(contract.CallDispatched, ""), []string{"call"}},
		"completed":        {in(contract.CallCompleted, ""), []string{"call"}},
		"corrected":        {refused(contract.ReasonInvalidArguments), []string{"call"}},
		"stopped":          {with(refused(contract.ReasonCancelled), latch), []string{"call", "latched"}},
		"denied":           {with(refused(contract.ReasonToolNotAllowed), latch), []string{"call.denied", "latched"}},
		"denied again":     {refused(contract.ReasonToolNotAllowed), []string{"call.denied"}},
		"by a constraint":  {with(refused(contract.ReasonConstraintViolated), latch), []string{"call.denied", "latched"}},
		"no budget":        {with(refused(contract.ReasonCallLimitExceeded), latch), []string{"call.overflow", "latched"}},
		"no evidence":      {with(refused(contract.ReasonEvidenceBudgetTooSmall), latch), []string{"call.overflow", "latched"}},
		"too large":        {with(in(contract.CallCompleted, contract.ReasonChildResultTooLarge), latch), []string{"call.overflow", "latched"}},
		"abandoned":        {with(in(contract.CallAbandoned, contract.ReasonTimeout), latch), []string{"call.abandoned", "latched"}},
		"uncertain":        {with(in(contract.CallUncertain, contract.ReasonEffectUncertain), latch), []string{"call", "latched"}},
		"drifted":          {with(in(contract.CallCompleted, ""), func(e *broker.Event) { e.Drifted = true }), []string{"call.drifted"}},
		"how far it is":    {with(in(contract.CallDispatched, ""), func(e *broker.Event) { e.Progress = &broker.Progress{Done: 1, Total: 4} }), []string{"call.progress 1 4"}},
		"no total, no end": {with(in(contract.CallDispatched, ""), func(e *broker.Event) { e.Progress = &broker.Progress{} }), []string{"call.progress 0 0"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			e := NewEvents(&out, clock())
			e.call(contract.Bundle{}, 0, tc.event)
			e.live.flush()
			var got []string
			for line := range strings.Lines(out.String()) {
				var e struct {
					Type        string
					Done, Total json.Number
				}
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				got = append(got, strings.TrimSpace(strings.Join([]string{e.Type, e.Done.String(), e.Total.String()}, " ")))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
