package vectors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/runtime/run"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// server is a tool server on the loopback that remembers what it was sent.
type server struct {
	url  string
	mu   sync.Mutex
	keys []string // idempotency keys
}

func (s *server) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys)
}

// serve starts a tool server. A request that is over, since its client is gone,
// ends the handler's context.
func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(h.Close)
	s.url = h.URL
	return s
}

func say(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// slow answers null after d, or never when its client leaves.
func slow(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server sees a lost client only after the body
		select {
		case <-time.After(d):
			_, _ = io.WriteString(w, "null")
		case <-r.Context().Done():
		}
	}
}

// lost reads the request and drops the connection.
func lost(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	panic(http.ErrAbortHandler)
}

func pinned(name, url string, e contract.Effect) contract.PinnedTool {
	return contract.PinnedTool{
		Tool:      contract.Tool{Name: name, Effect: e}.Defaulted(),
		Grant:     contract.GrantRef{Name: name + "-grant", UID: "g-" + name, Generation: 1},
		Backend:   contract.Backend{HTTP: &contract.HTTPBackend{URL: url}},
		TimeoutMs: 10_000,
	}
}

// scene is one prose case: a program and its tools.
type scene struct {
	source  string
	limits  map[string]int64
	tools   []contract.PinnedTool
	journal broker.Journal
	exec    loop.Sandbox // instead of the sandbox
	model   loop.Model   // of an agent
	bundle  func(*contract.Bundle)
}

func (s scene) play(ctx context.Context, t *testing.T) loop.Outcome {
	t.Helper()
	b := contract.Bundle{
		Run:    contract.RunRef{Namespace: "team-a", Name: "r", UID: "u", Generation: 1},
		Source: s.source, Limits: contract.DefaultLimits(), Tools: s.tools,
		Operator: contract.OperatorPolicy{AllowLoopback: true}, // where the test's servers are
	}
	for name, n := range s.limits {
		if err := b.Limits.Set(name, n); err != nil {
			t.Fatal(err)
		}
	}
	if s.bundle != nil {
		s.bundle(&b)
	}
	tools, _, f := run.Tools(b, nil)
	if f != nil {
		t.Fatal(f)
	}
	if s.exec == nil {
		s.exec = newEngine(t)
	}
	return loop.Run(ctx, loop.Config{Sandbox: s.exec, Bundle: b, Tools: tools, Journal: s.journal, Model: s.model, Now: time.Now})
}

func wantFault(t *testing.T, o loop.Outcome, want contract.Reason) {
	t.Helper()
	if o.Fault == nil {
		t.Fatalf("value %.100s, want the fault %s", o.Value, want)
	}
	if o.Fault.Reason != want {
		t.Errorf("fault %v, want the reason %s", o.Fault, want)
	}
}

func wantValue(t *testing.T, o loop.Outcome, want string) {
	t.Helper()
	if o.Fault != nil {
		t.Fatalf("fault %v, want the value %s", o.Fault, want)
	}
	if string(o.Value) != want {
		t.Errorf("value %s, want %s", o.Value, want)
	}
}

func wantSent(t *testing.T, s *server, want int) {
	t.Helper()
	if got := len(s.sent()); got != want {
		t.Errorf("the tool was sent %d requests, want %d", got, want)
	}
}

func states(calls []contract.Call) []string {
	out := []string{}
	for _, c := range calls {
		out = append(out, fmt.Sprintf("%d %s %s %s", c.Seq, c.Tool, c.State, c.Reason))
	}
	return out
}

const catchAll = `function main(){try{tools.call("pay",{})}catch(e){}return 1}`

// deaf is an executor that ignores what the broker answers.
type deaf struct{ calls int }

func (d deaf) Execute(ctx context.Context, _ sandbox.Program, c sandbox.Caller) (sandbox.Result, error) {
	for range d.calls {
		_, _ = c.Call(ctx, "pay", json.RawMessage("{}"))
	}
	return sandbox.Result{Value: json.RawMessage(`"done"`)}, nil
}

func TestBR03bLatchIsOutsideTheExecutor(t *testing.T) {
	s := serve(t, lost)
	o := scene{tools: []contract.PinnedTool{pinned("pay", s.url, contract.EffectEffectful)}, exec: deaf{4}}.play(t.Context(), t)
	wantFault(t, o, contract.ReasonEffectUncertain)
	wantSent(t, s, 1)
}

func TestBR04EvidenceFloor(t *testing.T) {
	s := serve(t, say("1"))
	o := scene{
		source: catchAll, limits: map[string]int64{"outputBytes": 127},
		tools: []contract.PinnedTool{pinned("pay", s.url, contract.EffectReadOnly)},
	}.play(t.Context(), t)
	wantFault(t, o, contract.ReasonEvidenceBudgetTooSmall)
	wantSent(t, s, 0)
	if diff := cmp.Diff([]string{"0 pay Refused EvidenceBudgetTooSmall"}, states(o.Calls)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if o.Usage.ChildCalls != 0 {
		t.Errorf("%d calls were admitted", o.Usage.ChildCalls)
	}
}

func TestBR57AnswerTooLargeKeepsItsDigest(t *testing.T) {
	body := `"` + strings.Repeat("x", 262_143) + `"` // 262,145 bytes
	s := serve(t, say(body))
	o := scene{source: catchAll, tools: []contract.PinnedTool{pinned("pay", s.url, contract.EffectEffectful)}}.play(t.Context(), t)
	wantFault(t, o, contract.ReasonChildResultTooLarge)
	c := o.Calls[0]
	if c.State != contract.CallCompleted || c.ResultDigest != contract.Digest([]byte(body)) || c.ResultBytes != int64(len(body)) {
		t.Errorf("journal has %+v", c)
	}
	var e contract.Execution
	o.Report(&e, time.Now())
	text, err := json.Marshal(e)
	if err != nil || strings.Contains(string(text), "xxxx") {
		t.Errorf("the report holds the answer, or %v", err)
	}
}

// hung is a journal that never answers from its nth write on.
type hung struct {
	mu    sync.Mutex
	from  int
	count int
}

func (h *hung) Record(ctx context.Context, _ []contract.Call, _ int64) error {
	h.mu.Lock()
	h.count++
	n := h.count
	h.mu.Unlock()
	if n < h.from {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestBR10bTimeoutDuringACall(t *testing.T) {
	s := serve(t, slow(5*time.Second))
	newEngine(t)
	sc := scene{
		source: catchAll, limits: map[string]int64{"wallClockMs": 300},
		tools: []contract.PinnedTool{pinned("pay", s.url, contract.EffectEffectful)},
	}
	start := time.Now()
	o := sc.play(t.Context(), t)
	wantFault(t, o, contract.ReasonTimeout)
	if d := time.Since(start); d > 800*time.Millisecond {
		t.Errorf("it took %s", d)
	}
	if len(contract.Ambiguous(o.Calls)) != 1 {
		t.Errorf("journal %v, want one call that may have happened", states(o.Calls))
	}
}

func TestBR11IntentIsNeverWritten(t *testing.T) {
	s := serve(t, say("1"))
	o := scene{
		source: catchAll, limits: map[string]int64{"wallClockMs": 300}, journal: &hung{from: 1},
		tools: []contract.PinnedTool{pinned("pay", s.url, contract.EffectIdempotent)},
	}.play(t.Context(), t)
	wantFault(t, o, contract.ReasonTimeout)
	wantSent(t, s, 0)
	if diff := cmp.Diff([]string{"1 pay Abandoned Timeout"}, states(o.Calls)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func TestBR13OutcomeIsNeverWritten(t *testing.T) {
	s := serve(t, say("1"))
	o := scene{
		source: catchAll, limits: map[string]int64{"wallClockMs": 300}, journal: &hung{from: 2},
		tools: []contract.PinnedTool{pinned("pay", s.url, contract.EffectEffectful)},
	}.play(t.Context(), t)
	wantFault(t, o, contract.ReasonTimeout)
	wantSent(t, s, 1)
	if len(contract.Ambiguous(o.Calls)) != 1 {
		t.Errorf("journal %v, want one call that may have happened", states(o.Calls))
	}
}

func TestBR33bCallTimeoutIsUncertain(t *testing.T) {
	s := serve(t, slow(time.Second))
	tool := pinned("pay", s.url, contract.EffectEffectful)
	tool.TimeoutMs = 50 // room for the connection on a slow machine
	o := scene{source: catchAll, tools: []contract.PinnedTool{tool}}.play(t.Context(), t)
	wantFault(t, o, contract.ReasonEffectUncertain)
	wantSent(t, s, 1)
}

func TestBR34CancelDuringACall(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		cancel(contract.Faultf(contract.ReasonCancelled, "cancelled"))
		slow(5*time.Second)(w, r)
	})
	start := time.Now()
	o := scene{source: catchAll, tools: []contract.PinnedTool{pinned("pay", s.url, contract.EffectReadOnly)}}.play(ctx, t)
	wantFault(t, o, contract.ReasonCancelled)
	wantSent(t, s, 1)
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("it took %s", d)
	}
}

func TestBR35dRefusedConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	o := scene{source: catchAll, tools: []contract.PinnedTool{pinned("pay", url, contract.EffectEffectful)}}.play(t.Context(), t)
	wantValue(t, o, "1")
	if diff := cmp.Diff([]string{"1 pay Failed ToolFailed"}, states(o.Calls)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func TestBR29MaxCallsPerRun(t *testing.T) {
	s := serve(t, say("1"))
	tool := pinned("pay", s.url, contract.EffectReadOnly)
	tool.MaxCalls = 1
	o := scene{source: `function main(){tools.call("pay",{});try{tools.call("pay",{})}catch(e){}return 1}`, tools: []contract.PinnedTool{tool}}.play(t.Context(), t)
	wantFault(t, o, contract.ReasonCallLimitExceeded)
	wantSent(t, s, 1)
}

func TestBR31NameComesBeforeBudget(t *testing.T) {
	o := scene{source: `function main(){return tools.call("ghost",{})}`, limits: map[string]int64{"childCalls": 0}}.play(t.Context(), t)
	wantFault(t, o, contract.ReasonToolNotAllowed)
	if o.Usage.ChildCalls != 0 || o.Calls[0].ID != "" {
		t.Errorf("a call id was given out: %+v", o.Calls)
	}
}

func TestBR39Deferred(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	o := scene{source: catchAll, tools: []contract.PinnedTool{pinned("pay", s.url, contract.EffectEffectful)}}.play(t.Context(), t)
	wantFault(t, o, contract.ReasonCallDeferred)
	wantSent(t, s, 1)
}

// TestBR15PinnedSchema shows that nothing but the pin says what arguments are:
// the broker has no other way to a schema.
func TestBR15PinnedSchema(t *testing.T) {
	s := serve(t, say("1"))
	tool := pinned("pay", s.url, contract.EffectReadOnly)
	tool.Tool.InputSchema = json.RawMessage(`{"type":"object","required":["old"]}`)
	source := `function main(){return tools.call("pay",{old:1})}`
	wantValue(t, scene{source: source, tools: []contract.PinnedTool{tool}}.play(t.Context(), t), "1")

	// A second run, pinned after the schema was changed, sees the new one.
	tool.Tool.InputSchema = json.RawMessage(`{"type":"object","required":["new"]}`)
	o := scene{source: source, tools: []contract.PinnedTool{tool}}.play(t.Context(), t)
	wantFault(t, o, contract.ReasonJavaScriptError)
	if diff := cmp.Diff([]string{"0 pay Refused InvalidArguments"}, states(o.Calls)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	wantSent(t, s, 1)
}

func TestBR59IDs(t *testing.T) {
	s := serve(t, say("1"))
	o := scene{
		source: `function main(){let n=0;for(let i=0;i<3;i++)n+=tools.call("pay",{});return n}`,
		tools:  []contract.PinnedTool{pinned("pay", s.url, contract.EffectIdempotent)},
		bundle: func(b *contract.Bundle) { b.Run.Generation = 2 },
	}.play(t.Context(), t)
	wantValue(t, o, "3")
	want := []string{"u:2:1", "u:2:2", "u:2:3"}
	if diff := cmp.Diff(want, s.sent()); diff != "" {
		t.Errorf("idempotency keys (-want +got):\n%s", diff)
	}
	var ids []string
	for _, c := range o.Calls {
		ids = append(ids, c.ID)
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}
