package trace

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	toolhttp "github.com/codeact-dev/codeact-operator/runtime/broker/backend/http"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// TestTraceContextIsACapability: only a tool that asked for it learns of the
// trace, and then its own work can be joined to exactly the span of its call.
func TestTraceContextIsACapability(t *testing.T) {
	got := map[string]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got[r.URL.Path] = r.Header.Get("Traceparent")
		_, _ = io.WriteString(w, "1")
	}))
	defer s.Close()
	r := receive(t)
	b := bundleOf(false, "with", "without")
	b.Operator.AllowLoopback = true
	b.Tools[0].Tool.Capabilities = []string{contract.CapabilityTraceContext}
	var tools []broker.Tool
	for i := range b.Tools {
		b.Tools[i].Backend.HTTP.URL = s.URL + "/" + b.Tools[i].Tool.Name
		backend, err := toolhttp.New(b, b.Tools[i], nil)
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, broker.Tool{PinnedTool: b.Tools[i], Backend: backend})
	}
	tr, err := New(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := tr.Execution(t.Context())
	br, err := broker.New(broker.Config{Run: b.Run, Limits: b.Limits, Now: time.Now, Hooks: tr.Hooks(), Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range tools {
		if _, err := br.Call(ctx, x.Tool.Name, json.RawMessage("{}")); err != nil {
			t.Fatal(err)
		}
	}
	end(loop.Outcome{})
	tr.Close(t.Context())
	want := ""
	for _, span := range r.spans {
		if span.Name == "execute_tool with" {
			want = "00-" + hex.EncodeToString(span.TraceId) + "-" + hex.EncodeToString(span.SpanId) + "-01"
		}
	}
	if want == "" || got["/with"] != want {
		t.Errorf("the tool with the capability got %q, want %q", got["/with"], want)
	}
	if got["/without"] != "" {
		t.Errorf("the tool without it got %q", got["/without"])
	}
}
