package mcp

import (
	"fmt"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// TestOneCallOnTheWire kills the connection of a tools/call at every moment, for
// every class of effect: each attempt brings at most one tools/call to the wire,
// the failure claims no more than is proven, and only an answer that may be read
// again is asked for again.
func TestOneCallOnTheWire(t *testing.T) {
	type want struct {
		proof   broker.Proof
		calls   int // on the wire
		arrived int // at the server
	}
	tests := map[moment]want{
		whileConnecting: {broker.Unproven, 0, 0}, // the connection was there, then died
		inTheRequest:    {broker.Unproven, 1, 0},
		beforeForward:   {broker.Unproven, 1, 0},
		afterForward:    {broker.Unproven, 1, 1},
		inTheHeaders:    {broker.Unproven, 1, 1},
		inTheAnswer:     {broker.Unproven, 1, 1},
	}
	for m, wanted := range tests {
		for _, e := range []contract.Effect{contract.EffectReadOnly, contract.EffectIdempotent, contract.EffectEffectful} {
			for name, mode := range modes() {
				t.Run(fmt.Sprintf("%s/%s/%s", m, e, name), func(t *testing.T) {
					t.Parallel()
					w := newWire(t, served(t, honest(), mode).URL)
					p := pinned(w.url(), "echo", effect(e))
					b := backendOf(t, sessionsOf(t, bundle(), nil), p)
					// The session is there already, so that only the call is hit.
					if _, err := b.Call(within(t, 10*time.Second), request(p, `{}`)); err != nil {
						t.Fatal(err)
					}
					w.set(m, 1)
					ans, err := b.Call(within(t, 10*time.Second), request(p, `{"a":1}`))
					resumes := w.count("GET resume")
					if m == inTheAnswer && name == "stateful, resuming" && e != contract.EffectEffectful {
						if err != nil || string(ans.Body) != `{"a":1}` || resumes == 0 {
							t.Errorf("answer %s, error %v, %d resumes: the answer can be read again", ans.Body, err, resumes)
						}
					} else {
						// A connection that dies as it comes about was perhaps never there.
						if f := failureOf(t, err); f.Proof != wanted.proof && (m != whileConnecting || f.Proof != broker.NeverSent) {
							t.Errorf("%+v, want proof %d", f, wanted.proof)
						}
						if resumes != 0 {
							t.Errorf("%d resumes", resumes)
						}
					}
					if n := w.count("POST tools/call") - 1; n != wanted.calls {
						t.Errorf("%d calls on the wire, want %d: %v", n, wanted.calls, w.sent)
					}
					if n := w.reached() - 1; n != wanted.arrived {
						t.Errorf("%d calls at the server, want %d", n, wanted.arrived)
					}
					// The next call has a session again.
					if _, err := b.Call(within(t, 10*time.Second), request(p, `{}`)); err != nil {
						t.Errorf("the call after that: %v", err)
					}
				})
			}
		}
	}
}

// TestBeforeTheCall: whatever fails before the tools/call proves that nothing of
// it was sent.
func TestBeforeTheCall(t *testing.T) {
	h := served(t, honest(), &sdk.StreamableHTTPOptions{})
	w := newWire(t, h.URL)
	p := pinned(w.url(), "echo")
	b := backendOf(t, sessionsOf(t, bundle(), nil), p)
	w.set(whileConnecting, 100)
	if f := failureOf(t, second(b.Call(within(t, 10*time.Second), request(p, `{}`)))); f.Proof != broker.NeverSent || f.Final {
		t.Errorf("%+v", f)
	}
	w.set("", 0)
	if _, err := b.Call(within(t, 10*time.Second), request(p, `{}`)); err != nil {
		t.Errorf("the call after that: %v", err)
	}
	if n := w.count("POST tools/call"); n != 1 {
		t.Errorf("%d calls on the wire", n)
	}
}
