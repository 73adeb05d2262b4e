package vectors_test

import (
	"bytes"
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
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// shows answers body, and a picture with that text.
func shows(t *testing.T, body, text string) http.HandlerFunc {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 4, 3))); err != nil {
		t.Fatal(err)
	}
	answer, err := json.Marshal(contract.ToolResult{Value: json.RawMessage(body), Media: &contract.Media{
		Marker: contract.MediaMarker, Text: text, Geometry: contract.Geometry{Width: 4, Height: 3},
		Pictures: []contract.Picture{{MIMEType: "image/png", Data: out.Bytes()}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contract.ResultMediaType)
		_, _ = w.Write(answer)
	}
}

// halfAnswer gives a receipt and half of an answer, and drops the connection.
func halfAnswer(receipt string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set(contract.ReceiptHeader, receipt)
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"a":`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// wantMedia checks which media the result has, and that no report holds it.
func wantMedia(t *testing.T, o loop.Outcome, text string, seq int64) {
	t.Helper()
	got := ""
	if o.Media != nil {
		got = o.Media.Text
	}
	if got != text || o.MediaSeq != seq {
		t.Errorf("media %q of call %d, want %q of %d", got, o.MediaSeq, text, seq)
	}
	var e contract.Execution
	o.Report(&e, time.Now())
	if report, err := json.Marshal(e); err != nil || bytes.Contains(report, []byte("iVBOR")) {
		t.Errorf("the report holds a picture, or %v", err)
	}
}

func TestBR06ReceiptIsKeptAndMediaGoes(t *testing.T) {
	receipt := strings.Repeat("r", 300)
	observe, click := serve(t, shows(t, "1", "earlier")), serve(t, halfAnswer(receipt))
	o := scene{
		source: `function main(){
			tools.call("observe",{});
			try{tools.call("click",{})}catch(e){}
			try{tools.call("observe",{})}catch(e){}
			try{tools.call("click",{})}catch(e){}
			return 1
		}`,
		tools: []contract.PinnedTool{
			pinned("observe", observe.url, contract.EffectReadOnly), pinned("click", click.url, contract.EffectEffectful),
		},
	}.play(t.Context(), t)
	wantFault(t, o, contract.ReasonEffectUncertain)
	wantSent(t, observe, 1)
	wantSent(t, click, 1)
	wantMedia(t, o, "", 0)
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
	observe, click := serve(t, shows(t, `{"a":1}`, "of observe")), serve(t, shows(t, `{"b":2}`, "of click"))
	o := scene{
		source: `function main(){tools.call("observe",{});return tools.call("click",{})}`,
		tools: []contract.PinnedTool{
			pinned("observe", observe.url, contract.EffectReadOnly), pinned("click", click.url, contract.EffectEffectful),
		},
	}.play(t.Context(), t)
	wantValue(t, o, `{"b":2}`)
	wantMedia(t, o, "of click", 2)
}

func TestBR09IncompleteMediaIsNothing(t *testing.T) {
	s := serve(t, shows(t, `{"a":1}`, ""))
	o := scene{
		source: `function main(){return tools.call("observe",{})}`,
		tools:  []contract.PinnedTool{pinned("observe", s.url, contract.EffectEffectful)},
	}.play(t.Context(), t)
	wantValue(t, o, `{"a":1}`)
	wantMedia(t, o, "", 0)
}

func TestBR09bReadOnlyCallsClearNothing(t *testing.T) {
	observe, look := serve(t, shows(t, "1", "of observe")), serve(t, say("2"))
	o := scene{
		source: `function main(){tools.call("observe",{});tools.call("look",{});return 1}`,
		tools: []contract.PinnedTool{
			pinned("observe", observe.url, contract.EffectEffectful), pinned("look", look.url, contract.EffectReadOnly),
		},
	}.play(t.Context(), t)
	wantValue(t, o, "1")
	wantMedia(t, o, "of observe", 1)
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
