package mcp

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// TestHostileAnswers: whatever a server streams, the call ends by its deadline,
// with a bound on memory and on what is sent back, and claims nothing.
func TestHostileAnswers(t *testing.T) {
	const noise = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`
	forever := func(event string) func(http.ResponseWriter, *http.Request, scriptMessage) {
		return func(w http.ResponseWriter, r *http.Request, _ scriptMessage) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, event); err != nil {
					return
				}
			}
		}
	}
	drip := func(kind string) func(http.ResponseWriter, *http.Request, scriptMessage) {
		return func(w http.ResponseWriter, r *http.Request, _ scriptMessage) {
			w.Header().Set("Content-Type", kind)
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(" "))
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		}
	}
	deep := func(w http.ResponseWriter, _ *http.Request, m scriptMessage) {
		respond(w, m, `{"content":[],"structuredContent":`+strings.Repeat("[", 200_000)+strings.Repeat("]", 200_000)+`}`)
	}
	tests := map[string]struct {
		call func(http.ResponseWriter, *http.Request, scriptMessage)
	}{
		"events without end":    {forever("data: " + noise + "\n\n")},
		"one event without end": {forever("data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n")},
		"a line without end":    {forever("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")},
		"comments without end":  {forever(": nothing\n\n")},
		"requests without end":  {forever(`data: {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}` + "\n\n")},
		"progress without end":  {forever(`data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"u:1:1","progress":1}}` + "\n\n")},
		"news without end":      {forever(`data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n\n")},
		"ids and ends": {func(w http.ResponseWriter, _ *http.Request, _ scriptMessage) {
			stream(w)
			_, _ = fmt.Fprint(w, "id: 1\nretry: 1\n\n")
		}},
		"JSON that drips":     {drip("application/json")},
		"events that drip":    {drip("text/event-stream")},
		"silence":             {func(_ http.ResponseWriter, r *http.Request, _ scriptMessage) { <-r.Context().Done() }},
		"deeper than is sane": {deep},
		"cut in the middle": {func(w http.ResponseWriter, _ *http.Request, m scriptMessage) {
			w.Header().Set("Content-Length", "1000")
			respond(w, m, "{}")
			panic(http.ErrAbortHandler)
		}},
		"another session's name": {func(w http.ResponseWriter, _ *http.Request, m scriptMessage) {
			w.Header().Set("Mcp-Session-Id", "evil")
			w.WriteHeader(http.StatusOK)
		}},
	}
	for name, tc := range tests {
		for _, e := range []contract.Effect{contract.EffectReadOnly, contract.EffectEffectful} {
			t.Run(name+"/"+string(e), func(t *testing.T) {
				s := script(t, &scripted{session: "s", call: tc.call})
				p := pinned(s.URL, "x", effect(e))
				var told atomic.Int64
				r := request(p, `{}`)
				r.Progress = func(float64, float64) { told.Add(1) }
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				start := time.Now()
				f := failureOf(t, second(backendOf(t, sessionsOf(t, bundle(), nil), p).Call(within(t, 400*time.Millisecond), r)))
				took := time.Since(start)
				runtime.ReadMemStats(&after)
				if f.Proof != broker.Unproven || took > 2*time.Second {
					t.Errorf("%+v after %s", f, took)
				}
				if n := s.count("POST tools/call"); n != 1 {
					t.Errorf("%d calls on the wire", n)
				}
				if n := s.count("POST "); n > maxAsked {
					t.Errorf("%d answers to the server's own requests", n)
				}
				if n := s.count("GET"); e == contract.EffectEffectful && n > 1 || n > 1+maxResumes {
					t.Errorf("%d GETs", n)
				}
				if told.Load() > maxProgress {
					t.Errorf("told %d times", told.Load())
				}
				if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 64<<20 {
					t.Errorf("the heap grew by %d bytes", grown)
				}
			})
		}
	}
}

// TestServerAsks: a server's own requests are refused, on every stream, but for
// the question whether anybody is there.
func TestServerAsks(t *testing.T) {
	s := &scripted{session: "s"}
	s.call = func(w http.ResponseWriter, _ *http.Request, m scriptMessage) {
		send := stream(w)
		for i, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list", "tools/call", "ping"} {
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","method":%q,"params":{}}`, i, method))
		}
		for end := time.Now().Add(5 * time.Second); s.count("POST ") < 5 && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		_, _ = fmt.Fprintf(w, "event: other\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"isError\":true}}\n\n", m.ID)
		send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{}}`)
	}
	script(t, s)
	p := pinned(s.URL, "x")
	if _, err := backendOf(t, sessionsOf(t, bundle(), nil), p).Call(within(t, 10*time.Second), request(p, `{}`)); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.said) != 5 {
		t.Fatalf("%d answers: %v", len(s.said), s.said)
	}
	for _, a := range s.said {
		if refused := strings.Contains(a, `"error"`) && !strings.Contains(a, `"result"`); refused == strings.Contains(a, `"q4"`) {
			t.Errorf("the server was told %s", a)
		}
	}
}

// TestOpening: a server that never opens its session, or its stream of notices,
// holds nobody beyond the deadline, and gets no call.
func TestOpening(t *testing.T) {
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	status := func(n int) http.HandlerFunc { return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(n) } }
	opens := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, text)
		}
	}
	tests := map[string]struct {
		open, get http.HandlerFunc
		want      bool // it opens
		message   string
	}{
		"initialize is silent":  {open: silent, message: "there was no answer in time"},
		"initialize is 401":     {open: status(401), message: "it refused the call with status 401"},
		"initialize is 500":     {open: status(500), message: "it answered with status 500"},
		"initialize is no JSON": {open: opens("{"), message: "could not be reached"},
		"initialize is huge":    {open: opens(`{"jsonrpc":"2.0","id":2,"result":{"x":"` + strings.Repeat("y", 8<<20) + `"}}`), message: ""},
		"notices are silent":    {get: silent, want: true},
		"notices are 404":       {get: status(404), want: true},
		"notices are no stream": {get: opens("{}"), want: true},
		"notices are of 500":    {get: status(500), want: true},
		"notices never stop": {get: func(w http.ResponseWriter, r *http.Request) {
			send := stream(w)
			for r.Context().Err() == nil {
				send(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
			}
		}, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := script(t, &scripted{session: "s", open: tc.open, get: tc.get, call: fine})
			p := pinned(s.URL, "x")
			all := sessionsOf(t, bundle(), nil)
			start := time.Now()
			_, err := backendOf(t, all, p).Call(within(t, 3*time.Second), request(p, `{}`))
			if took := time.Since(start); took > 4*time.Second {
				t.Errorf("it took %s", took)
			}
			switch {
			case tc.want && err != nil:
				t.Errorf("error %v", err)
			case !tc.want:
				if f := failureOf(t, err); f.Proof != broker.NeverSent || !strings.Contains(f.Message, tc.message) {
					t.Errorf("%+v", f)
				}
			}
			if n := s.count("POST tools/call"); n != 0 != tc.want {
				t.Errorf("%d calls", n)
			}
			start = time.Now()
			all.Close(t.Context())
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("the end took %s", took)
			}
		})
	}
}

// TestEndIsBounded: a server that does not answer DELETE holds up nobody, and a
// call that somebody still makes reaches no server.
func TestEndIsBounded(t *testing.T) {
	s := script(t, &scripted{session: "s", call: fine, end: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
	p := pinned(s.URL, "x")
	all := sessionsOf(t, bundle(), nil)
	b := backendOf(t, all, p)
	if _, err := b.Call(within(t, 5*time.Second), request(p, `{}`)); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	all.Close(t.Context())
	if took := time.Since(start); took > closeFor+time.Second {
		t.Errorf("it took %s", took)
	}
	if n := s.count("DELETE"); n != 1 {
		t.Errorf("%d DELETEs", n)
	}
	if f := failureOf(t, second(b.Call(within(t, 5*time.Second), request(p, `{}`)))); f.Proof != broker.NeverSent || f.Reason != contract.ReasonBrokerUnavailable {
		t.Errorf("%+v", f)
	}
	if n := s.count("POST initialize"); n != 1 {
		t.Errorf("%d sessions", n)
	}
}
