package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMayHaveHappened(t *testing.T) {
	tests := map[CallState]map[Effect]bool{
		CallRefused:    {EffectReadOnly: false, EffectIdempotent: false, EffectEffectful: false},
		CallDispatched: {EffectReadOnly: false, EffectIdempotent: true, EffectEffectful: true, "": true},
		CallCompleted:  {EffectReadOnly: false, EffectIdempotent: false, EffectEffectful: false},
		CallFailed:     {EffectReadOnly: false, EffectIdempotent: false, EffectEffectful: false},
		CallUncertain:  {EffectReadOnly: false, EffectIdempotent: true, EffectEffectful: true, "": true},
		CallAbandoned:  {EffectReadOnly: false, EffectIdempotent: false, EffectEffectful: false},
	}
	for state, effects := range tests {
		for effect, want := range effects {
			t.Run(string(state)+" "+string(effect), func(t *testing.T) {
				c := Call{State: state, Effect: effect}
				if got := c.MayHaveHappened(); got != want {
					t.Errorf("MayHaveHappened is %v, want %v", got, want)
				}
				if got := len(Ambiguous([]Call{c})) == 1; got != want {
					t.Errorf("Ambiguous has it: %v, want %v", got, want)
				}
			})
		}
	}
}

func TestAmbiguousKeepsOrder(t *testing.T) {
	calls := []Call{
		{Seq: 1, State: CallDispatched, Effect: EffectEffectful},
		{Seq: 2, State: CallCompleted, Effect: EffectEffectful},
		{Seq: 3, State: CallUncertain, Effect: EffectIdempotent},
	}
	if diff := cmp.Diff([]Call{calls[0], calls[2]}, Ambiguous(calls)); diff != "" {
		t.Errorf("ambiguous (-want +got):\n%s", diff)
	}
}
