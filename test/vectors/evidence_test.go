package vectors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// backend stands in for one that gives media and receipts.
type backend func(n int) (broker.Answer, error)

// given makes a tool of answers: the nth call gets the nth.
func given(name string, e contract.Effect, sent *atomic.Int64, f backend) broker.Tool {
	return broker.Tool{
		PinnedTool: contract.PinnedTool{Tool: contract.Tool{Name: name, Effect: e}.Defaulted(), TimeoutMs: 10_000},
		Backend:    counted{sent, f},
	}
}

type counted struct {
	sent *atomic.Int64
	f    backend
}

func (c counted) Call(context.Context, broker.Request) (broker.Answer, error) {
	return c.f(int(c.sent.Add(1)))
}

func playWith(t *testing.T, source string, tools ...broker.Tool) loop.Outcome {
	t.Helper()
	return loop.Run(t.Context(), loop.Config{
		Sandbox: newEngine(t), Tools: tools, Now: time.Now,
		Bundle: contract.Bundle{Run: contract.RunRef{Namespace: "team-a", Name: "r", UID: "u", Generation: 1}, Source: source, Limits: contract.DefaultLimits()},
	})
}

// shows is an answer of so much text with a picture.
func shows(t *testing.T, body, text string) broker.Answer {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 4, 3))); err != nil {
		t.Fatal(err)
	}
	return broker.Answer{
		Body: []byte(body), Bytes: int64(len(body)), Digest: contract.Digest([]byte(body)),
		Media: &contract.Media{
			Marker: contract.MediaMarker, Text: text, Geometry: contract.Geometry{Width: 4, Height: 3},
			Pictures: []contract.Picture{{MIMEType: "image/png", Data: out.Bytes()}},
		},
	}
}

func TestBR06ReceiptIsKeptAndMediaGoes(t *testing.T) {
	receipt := strings.Repeat("r", 300)
	var observed, clicked atomic.Int64
	o := playWith(t, `function main(){
		tools.call("observe",{});
		try{tools.call("click",{})}catch(e){}
		try{tools.call("observe",{})}catch(e){}
		try{tools.call("click",{})}catch(e){}
		return 1
	}`,
		given("observe", contract.EffectReadOnly, &observed, func(int) (broker.Answer, error) { return shows(t, "1", "earlier"), nil }),
		given("click", contract.EffectEffectful, &clicked, func(int) (broker.Answer, error) {
			return broker.Answer{}, &broker.Failure{Message: "the answer was lost", Receipt: receipt}
		}))
	wantFault(t, o, contract.ReasonEffectUncertain)
	if observed.Load() != 1 || clicked.Load() != 1 {
		t.Errorf("observe was sent %d times, click %d times, want 1 of each", observed.Load(), clicked.Load())
	}
	if o.Media != nil {
		t.Error("the earlier media is still there")
	}
	var e contract.Execution
	o.Report(&e, time.Now())
	want := `{"seq":2,"tool":"click","reason":"EffectUncertain","receipt":"` + receipt + `"}`
	if e.Error.Evidence != want {
		t.Errorf("evidence %s, want %s", e.Error.Evidence, want)
	}
	if e.Calls[1].Receipt != receipt {
		t.Errorf("the journal has the receipt %q", e.Calls[1].Receipt)
	}
}

func TestBR07TheNewestMediaIsTheResults(t *testing.T) {
	var sent atomic.Int64
	o := playWith(t, `function main(){tools.call("observe",{});return tools.call("click",{})}`,
		given("observe", contract.EffectReadOnly, &sent, func(int) (broker.Answer, error) { return shows(t, `{"a":1}`, "of observe"), nil }),
		given("click", contract.EffectEffectful, &sent, func(int) (broker.Answer, error) { return shows(t, `{"b":2}`, "of click"), nil }))
	wantValue(t, o, `{"b":2}`)
	if o.Media == nil || o.Media.Text != "of click" || o.MediaSeq != 2 {
		t.Errorf("media %+v of call %d", o.Media, o.MediaSeq)
	}
	var e contract.Execution
	o.Report(&e, time.Now())
	if text, err := json.Marshal(e); err != nil || bytes.Contains(text, []byte("iVBOR")) {
		t.Errorf("the report holds the picture, or %v", err)
	}
}

func TestBR09IncompleteMediaIsNothing(t *testing.T) {
	var sent atomic.Int64
	o := playWith(t, `function main(){return tools.call("observe",{})}`,
		given("observe", contract.EffectReadOnly, &sent, func(int) (broker.Answer, error) { return shows(t, `{"a":1}`, ""), nil }))
	wantValue(t, o, `{"a":1}`)
	if o.Media != nil {
		t.Errorf("media %+v", o.Media)
	}
}

func TestBR09bReadOnlyCallsClearNothing(t *testing.T) {
	var sent atomic.Int64
	o := playWith(t, `function main(){tools.call("observe",{});tools.call("look",{});return 1}`,
		given("observe", contract.EffectReadOnly, &sent, func(int) (broker.Answer, error) { return shows(t, "1", "of observe"), nil }),
		given("look", contract.EffectReadOnly, &sent, func(int) (broker.Answer, error) {
			return broker.Answer{Body: []byte("2"), Bytes: 1}, nil
		}))
	wantValue(t, o, "1")
	if o.Media == nil || o.Media.Text != "of observe" || o.MediaSeq != 1 {
		t.Errorf("media %+v of call %d", o.Media, o.MediaSeq)
	}
}

// thrice is a grant's retry.
var thrice = &contract.Retry{Attempts: 3, BackoffMs: 1}

func wantSameKey(t *testing.T, s *server, want int) {
	t.Helper()
	if diff := cmp.Diff(slices.Repeat([]string{"u:1:1"}, want), s.sent()); diff != "" {
		t.Errorf("idempotency keys (-want +got):\n%s", diff)
	}
}

func TestBR33cEveryAttemptIsLate(t *testing.T) {
	s := serve(t, slow(5*time.Second))
	tool := pinned("pay", s.url, contract.EffectIdempotent)
	tool.TimeoutMs, tool.Retry = 50, thrice // room for the connection on a slow machine
	o := scene{source: catchAll, tools: []contract.PinnedTool{tool}}.play(t.Context(), t)
	wantFault(t, o, contract.ReasonEffectUncertain)
	wantSameKey(t, s, 3)
	if n := o.Calls[0].Attempts; n != 3 {
		t.Errorf("the journal has %d attempts", n)
	}
}

// twiceLost loses two answers on the way and then says 5.
func twiceLost() http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) < 3 {
			lost(w, r)
		}
		_, _ = io.WriteString(w, "5")
	}
}

func TestBR35bIdempotentIsTriedAgain(t *testing.T) {
	s := serve(t, twiceLost())
	tool := pinned("pay", s.url, contract.EffectIdempotent)
	tool.Retry = thrice
	o := scene{source: `function main(){return tools.call("pay",{})}`, tools: []contract.PinnedTool{tool}}.play(t.Context(), t)
	wantValue(t, o, "5")
	wantSameKey(t, s, 3)
}

func TestBR35fAProvenAnswerIsNotTriedAgain(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	tool := pinned("pay", s.url, contract.EffectReadOnly)
	tool.Retry = thrice
	o := scene{source: `function main(){try{tools.call("pay",{})}catch(e){return e.message.length>0}}`, tools: []contract.PinnedTool{tool}}.play(t.Context(), t)
	wantValue(t, o, "true")
	wantSent(t, s, 1)
	if diff := cmp.Diff([]string{"1 pay Failed ToolFailed"}, states(o.Calls)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func TestBR58Constraint(t *testing.T) {
	s := serve(t, say("1"))
	tool := pinned("pay", s.url, contract.EffectEffectful)
	tool.Constraints = []contract.Constraint{{Expression: "args.amount <= 100", Message: "too much"}}
	o := scene{source: `function main(){try{tools.call("pay",{amount:101})}catch(e){}return 1}`, tools: []contract.PinnedTool{tool}}.play(t.Context(), t)
	wantFault(t, o, contract.ReasonConstraintViolated)
	if !strings.Contains(o.Fault.Message, "too much") {
		t.Errorf("message %q", o.Fault.Message)
	}
	wantSent(t, s, 0)
	if o.Usage.ChildCalls != 0 {
		t.Errorf("%d calls were charged", o.Usage.ChildCalls)
	}
}

func TestBR58bConstraintHolds(t *testing.T) {
	s := serve(t, say("1"))
	tool := pinned("pay", s.url, contract.EffectEffectful)
	tool.Constraints = []contract.Constraint{{Expression: "args.amount <= 100", Message: "too much"}}
	o := scene{source: `function main(){return tools.call("pay",{amount:100})}`, tools: []contract.PinnedTool{tool}}.play(t.Context(), t)
	wantValue(t, o, "1")
	wantSent(t, s, 1)
}
