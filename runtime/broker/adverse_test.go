package broker

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestOneTextOfArguments shows that schema, constraints, digest and tool all see
// the same arguments, whichever of two equal keys a reader takes.
func TestOneTextOfArguments(t *testing.T) {
	backend := &fake{}
	x := toolOf("x", contract.EffectEffectful, backend)
	x.Tool.InputSchema = json.RawMessage(`{"properties":{"n":{"maximum":9}}}`)
	x.Constraints = []contract.Constraint{{Expression: "args.n < 5"}}
	b := newBroker(t, Config{Tools: []Tool{x}})
	if _, err := b.Call(t.Context(), "x", json.RawMessage(`{ "n":999, "b":"\u003c", "n":1 }`)); err != nil {
		t.Fatal(err)
	}
	want := `{"b":"<","n":1}`
	if got := string(backend.requests[0].Arguments); got != want {
		t.Errorf("the tool got %s, want %s", got, want)
	}
	if got := b.End().Calls[0].ArgumentsDigest; got != contract.Digest([]byte(want)) {
		t.Errorf("the digest is of something else")
	}
}

// TestArgumentsThatReadAsOthers are refused before they have an id.
func TestArgumentsThatReadAsOthers(t *testing.T) {
	tests := map[string]string{
		"half a character":        `{"a":"\ud800"}`,
		"half of one, in a key":   `{"\udc00":1}`,
		"not UTF-8":               "{\"a\":\"\xff\"}",
		"too long once canonical": `"` + strings.Repeat("\u2028", contract.MaxArgumentBytes/4) + `"`,
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			backend := &fake{}
			b := newBroker(t, Config{Tools: []Tool{toolOf("x", contract.EffectEffectful, backend)}})
			_, err := b.Call(t.Context(), "x", json.RawMessage(args))
			if reasonOf(err) != contract.ReasonInvalidArguments || len(backend.requests) != 0 {
				t.Errorf("error %v, sent %d times, want InvalidArguments and nothing sent", err, len(backend.requests))
			}
		})
	}
}

// TestEndWhileACallIsOnItsWay shows that what comes behind the end of a run, at
// any moment of a call, is not sent: it would not be in the record.
func TestEndWhileACallIsOnItsWay(t *testing.T) {
	for _, at := range []string{"admit", "dispatch"} {
		t.Run(at, func(t *testing.T) {
			var b *Broker
			var r Record
			end := func(context.Context, Moment) error { r = b.End(); return nil }
			backend := &fake{}
			b = newBroker(t, Config{
				Tools: []Tool{toolOf("x", contract.EffectEffectful, backend)},
				Hooks: []Hook{&watch{log: new([]string), at: map[string]func(context.Context, Moment) error{at: end}}},
			})
			_, err := b.Call(t.Context(), "x", json.RawMessage("{}"))
			if reasonOf(err) != contract.ReasonBrokerUnavailable {
				t.Errorf("error %v, want BrokerUnavailable", err)
			}
			if n := len(backend.requests); n != 0 {
				t.Errorf("it was sent %d times, and the record has %v", n, states(r.Calls))
			}
		})
	}
}

// TestHookThatFailsAtAFailure shows that no hook can let a program go on whose
// last outcome is not written down.
func TestHookThatFailsAtAFailure(t *testing.T) {
	var log []string
	say := func(context.Context, Moment) error { return contract.Faultf(contract.ReasonToolFailed, "no") }
	b := newBroker(t, Config{
		Tools:   []Tool{toolOf("x", contract.EffectEffectful, failing(&Failure{Proof: Answered, Message: "m"}))},
		Hooks:   []Hook{&watch{log: new([]string), at: map[string]func(context.Context, Moment) error{"result": say}}},
		Journal: &store{log: &log},
	})
	_, err := b.Call(t.Context(), "x", json.RawMessage("{}"))
	if reasonOf(err) != contract.ReasonBrokerUnavailable {
		t.Errorf("error %v, want BrokerUnavailable", err)
	}
	r := b.End()
	if diff := cmp.Diff([]string{"1 x Failed ToolFailed"}, states(r.Calls)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if r.Fault == nil {
		t.Error("nothing is latched, though the outcome was never written")
	}
}
