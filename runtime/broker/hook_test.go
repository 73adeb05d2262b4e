package broker

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// watch is a hook that writes down what it is called for, and does as told.
type watch struct {
	name string
	mu   sync.Mutex
	log  *[]string
	at   map[string]func(ctx context.Context, m Moment) error
	next func(ctx context.Context) context.Context
}

func (w *watch) note(ctx context.Context, at string, m Moment) error {
	w.mu.Lock()
	*w.log = append(*w.log, strings.TrimSpace(w.name+" "+at+" "+string(m.Call.State)))
	w.mu.Unlock()
	if f := w.at[at]; f != nil {
		return f(ctx, m)
	}
	return nil
}

func (w *watch) Admit(ctx context.Context, m Moment) error { return w.note(ctx, "admit", m) }
func (w *watch) Dispatch(ctx context.Context, m Moment) (context.Context, error) {
	err := w.note(ctx, "dispatch", m)
	if w.next != nil {
		ctx = w.next(ctx)
	}
	return ctx, err
}
func (w *watch) Result(ctx context.Context, m Moment) error { return w.note(ctx, "result", m) }
func (w *watch) Observe(ctx context.Context, m Moment)      { _ = w.note(ctx, "observe", m) }

// TestHooksInOrder holds the moments of a call, and the hooks at each, to their
// order.
func TestHooksInOrder(t *testing.T) {
	var log []string
	backend := &fake{answer: func(context.Context, Request) (Answer, error) {
		log = append(log, "send")
		return answerOf("1"), nil
	}}
	b := newBroker(t, Config{
		Tools:   []Tool{toolOf("x", contract.EffectEffectful, backend)},
		Hooks:   []Hook{&watch{name: "a", log: &log}, &watch{name: "b", log: &log}},
		Journal: &store{log: &log},
		Observe: func(e Event) { log = append(log, "told "+string(e.Call.State)) },
	})
	if _, err := b.Call(t.Context(), "x", json.RawMessage("{}")); err != nil {
		t.Fatal(err)
	}
	_, _ = b.Call(t.Context(), "ghost", json.RawMessage("{}"))
	want := []string{
		"a admit", "b admit",
		"a dispatch Dispatched", "b dispatch Dispatched", "write 1 x Dispatched ",
		"a observe Dispatched", "b observe Dispatched", "told Dispatched",
		"send",
		"a result Completed", "b result Completed", "write 1 x Completed ",
		"a observe Completed", "b observe Completed", "told Completed",
		"a observe Refused", "b observe Refused", "told Refused",
	}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
}

// TestHooksThatSayNo shows what an error at each moment does to a call.
func TestHooksThatSayNo(t *testing.T) {
	fault := func(r contract.Reason) error { return contract.Faultf(r, "no") }
	plain := errors.New("x")
	tests := map[string]struct {
		at     string
		err    error
		effect contract.Effect
		want   contract.Reason
		end    string
		sent   int
	}{
		"admission refuses":            {"admit", fault(contract.ReasonConstraintViolated), contract.EffectEffectful, contract.ReasonConstraintViolated, "0 x Refused ConstraintViolated", 0},
		"admission corrects":           {"admit", fault(contract.ReasonInvalidArguments), contract.EffectEffectful, contract.ReasonInvalidArguments, "0 x Refused InvalidArguments", 0},
		"admission fails":              {"admit", plain, contract.EffectReadOnly, contract.ReasonBrokerUnavailable, "0 x Refused BrokerUnavailable", 0},
		"dispatch fails":               {"dispatch", plain, contract.EffectEffectful, contract.ReasonBrokerUnavailable, "1 x Abandoned BrokerUnavailable", 0},
		"dispatch refuses, catchable":  {"dispatch", fault(contract.ReasonToolFailed), contract.EffectEffectful, contract.ReasonToolFailed, "1 x Abandoned ToolFailed", 0},
		"the result is refused":        {"result", fault(contract.ReasonChildResultInvalid), contract.EffectEffectful, contract.ReasonChildResultInvalid, "1 x Completed ChildResultInvalid", 1},
		"the end fails":                {"result", plain, contract.EffectEffectful, contract.ReasonBrokerUnavailable, "1 x Uncertain BrokerUnavailable", 1},
		"the end fails, harmless":      {"result", plain, contract.EffectReadOnly, contract.ReasonBrokerUnavailable, "1 x Completed BrokerUnavailable", 1},
		"the end cannot be catchable":  {"result", fault(contract.ReasonToolFailed), contract.EffectIdempotent, contract.ReasonBrokerUnavailable, "1 x Uncertain ToolFailed", 1},
		"an observer has no say":       {"observe", plain, contract.EffectEffectful, "", "1 x Completed ", 1},
		"nothing is said, all is well": {"", nil, contract.EffectEffectful, "", "1 x Completed ", 1},
	}
	for name, tc := range tests {
		for how, f := range map[string]func(context.Context, Moment) error{
			"error": func(context.Context, Moment) error { return tc.err },
			"panic": func(context.Context, Moment) error { panic("x") },
		} {
			if how == "panic" && tc.err != plain { //nolint:errorlint // the very same
				continue
			}
			t.Run(name+"/"+how, func(t *testing.T) {
				backend := &fake{}
				var log []string
				w := &watch{log: &log, at: map[string]func(context.Context, Moment) error{tc.at: f}}
				b := newBroker(t, Config{Tools: []Tool{toolOf("x", tc.effect, backend)}, Hooks: []Hook{w}})
				_, err := b.Call(t.Context(), "x", json.RawMessage("{}"))
				if got := reasonOf(err); got != tc.want {
					t.Errorf("error %v, want the reason %q", err, tc.want)
				}
				r := b.End()
				if diff := cmp.Diff([]string{tc.end}, states(r.Calls)); diff != "" {
					t.Errorf("journal (-want +got):\n%s", diff)
				}
				if len(backend.requests) != tc.sent {
					t.Errorf("sent %d times, want %d", len(backend.requests), tc.sent)
				}
				if tc.at == "admit" && r.Admitted != 0 {
					t.Error("a refused call was charged")
				}
			})
		}
	}
}

// TestHooksThatHang shows that a hook that ignores its context is bounded by the
// program's deadline and by its cancellation, and what the journal says then.
func TestHooksThatHang(t *testing.T) {
	tests := map[string]struct {
		at     string
		effect contract.Effect
		end    string
		sent   int
	}{
		"admit":                {"admit", contract.EffectEffectful, "0 x Refused ", 0},
		"dispatch":             {"dispatch", contract.EffectEffectful, "1 x Abandoned ", 0},
		"result, effectful":    {"result", contract.EffectEffectful, "1 x Uncertain ", 1},
		"result, idempotent":   {"result", contract.EffectIdempotent, "1 x Uncertain ", 1},
		"result, harmless":     {"result", contract.EffectReadOnly, "1 x Completed ", 1},
		"result, by the store": {"store", contract.EffectEffectful, "1 x Uncertain ", 1},
	}
	for name, tc := range tests {
		for _, reason := range []contract.Reason{contract.ReasonTimeout, contract.ReasonCancelled} {
			t.Run(name+"/"+string(reason), func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				// The run is stopped once the hook hangs, however slow the machine is.
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				hang := func(context.Context, Moment) error {
					stop(contract.Faultf(reason, "stop"))
					<-release
					return nil
				}
				var log []string
				w := &watch{log: &log, at: map[string]func(context.Context, Moment) error{tc.at: hang}}
				backend := &fake{}
				cfg := Config{Tools: []Tool{toolOf("x", tc.effect, backend)}, Hooks: []Hook{w}}
				if tc.at == "store" {
					cfg.Journal = &store{log: new([]string), fail: func(n int) error {
						if n == 2 {
							return hang(ctx, Moment{})
						}
						return nil
					}}
				}
				b := newBroker(t, cfg)
				start := time.Now()
				_, err := b.Call(ctx, "x", json.RawMessage("{}"))
				if got := reasonOf(err); got != reason {
					t.Errorf("error %v, want the reason %s", err, reason)
				}
				if d := time.Since(start); d > 2*time.Second {
					t.Errorf("it took %s", d)
				}
				if diff := cmp.Diff([]string{tc.end + string(reason)}, states(b.End().Calls)); diff != "" {
					t.Errorf("journal (-want +got):\n%s", diff)
				}
				if len(backend.requests) != tc.sent {
					t.Errorf("sent %d times, want %d", len(backend.requests), tc.sent)
				}
			})
		}
	}
}

// TestObserverThatHangs is told nothing more, and stops nobody.
func TestObserverThatHangs(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	var told int
	b := newBroker(t, Config{
		Tools:   []Tool{toolOf("x", contract.EffectEffectful, &fake{})},
		Hooks:   []Hook{&watch{log: new([]string), at: map[string]func(context.Context, Moment) error{"observe": func(context.Context, Moment) error { <-release; return nil }}}},
		Observe: func(Event) { told++ },
	})
	start := time.Now()
	for range 10 {
		if _, err := b.Call(t.Context(), "x", json.RawMessage("{}")); err != nil {
			t.Errorf("error %v", err)
		}
	}
	if told != 20 {
		t.Errorf("the observer behind it was told %d times, want 20", told)
	}
	if d := time.Since(start); d > 10*ObserveFor {
		t.Errorf("it was waited for again and again, %s", d)
	}
}

// TestHooksDeriveValues shows that the values of a hook's context reach the
// backend, and that its end does not.
func TestHooksDeriveValues(t *testing.T) {
	type key string
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	over := &watch{log: new([]string), next: func(context.Context) context.Context { return context.WithValue(gone, key("span"), "s") }}
	also := &watch{log: new([]string), next: func(ctx context.Context) context.Context { return context.WithValue(ctx, key("more"), "m") }}
	var got []any
	look := func(ctx context.Context) { got = append(got, ctx.Value(key("span")), ctx.Value(key("more"))) }
	also.at = map[string]func(context.Context, Moment) error{"result": func(ctx context.Context, _ Moment) error { look(ctx); return nil }}
	backend := &fake{answer: func(ctx context.Context, _ Request) (Answer, error) {
		look(ctx)
		return answerOf("1"), ctx.Err()
	}}
	b := newBroker(t, Config{Tools: []Tool{toolOf("x", contract.EffectReadOnly, backend)}, Hooks: []Hook{over, also}})
	if _, err := b.Call(t.Context(), "x", json.RawMessage("{}")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"s", "m", "s", "m"}, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

// TestHooksGetCopies shows that a hook cannot change a call.
func TestHooksGetCopies(t *testing.T) {
	spoil := func(_ context.Context, m Moment) error {
		for _, s := range [][]byte{m.Arguments, m.Result} {
			for i := range s {
				s[i] = 'x'
			}
		}
		return nil
	}
	w := &watch{log: new([]string), at: map[string]func(context.Context, Moment) error{"admit": spoil, "dispatch": spoil, "result": spoil, "observe": spoil}}
	backend := &fake{}
	b := newBroker(t, Config{Tools: []Tool{toolOf("x", contract.EffectReadOnly, backend)}, Hooks: []Hook{w}})
	got, err := b.Call(t.Context(), "x", json.RawMessage(`{"a":1}`))
	if err != nil || string(got) != "1" || string(backend.requests[0].Arguments) != `{"a":1}` {
		t.Errorf("result %s, arguments %s, error %v", got, backend.requests[0].Arguments, err)
	}
}
