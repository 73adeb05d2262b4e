package trace

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	api "go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// receiver is a collector that speaks OTLP over HTTP and keeps what it is sent.
type receiver struct {
	mu    sync.Mutex
	spans []*otlp.Span
	raw   strings.Builder
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		var x collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &x); err != nil || q.URL.Path != "/v1/traces" {
			t.Errorf("request to %s: %v", q.URL.Path, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.raw.Write(body)
		for _, rs := range x.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				r.spans = append(r.spans, ss.Spans...)
			}
		}
	}))
	t.Cleanup(s.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	return r
}

type answers func(context.Context, broker.Request) (broker.Answer, error)

func (a answers) Call(ctx context.Context, r broker.Request) (broker.Answer, error) { return a(ctx, r) }

func says(body string) answers {
	return func(context.Context, broker.Request) (broker.Answer, error) {
		return broker.Answer{Body: []byte(body), Bytes: int64(len(body)), Digest: contract.Digest([]byte(body))}, nil
	}
}

func bundleOf(content bool, tools ...string) contract.Bundle {
	b := contract.Bundle{
		Run: contract.RunRef{Namespace: "team-a", Name: "r", UID: "u", Generation: 1}, Limits: contract.DefaultLimits(),
		SourceDigest: contract.Digest(nil), Operator: contract.OperatorPolicy{TraceContent: content},
	}
	for _, name := range tools {
		b.Tools = append(b.Tools, contract.PinnedTool{
			Tool: contract.Tool{Name: name}.Defaulted(), Grant: contract.GrantRef{Name: name + "-grant"},
			Backend: contract.Backend{HTTP: &contract.HTTPBackend{URL: "https://" + name + ".example/secret-path"}},
		})
	}
	return b
}

// traced makes one good call, one that fails and one that is refused, with
// arguments and results that must not show.
func traced(t *testing.T, content bool) {
	t.Helper()
	b := bundleOf(content, "get", "break")
	tr, err := New(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := tr.Execution(t.Context())
	br, err := broker.New(broker.Config{
		Run: b.Run, Limits: b.Limits, Now: time.Now, Hooks: tr.Hooks(),
		Tools: []broker.Tool{
			{PinnedTool: b.Tools[0], Backend: says(`"private result"`)},
			{PinnedTool: b.Tools[1], Backend: answers(func(context.Context, broker.Request) (broker.Answer, error) {
				return broker.Answer{}, &broker.Failure{Message: "private message"}
			})},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"get", "ghost"} {
		_, _ = br.Call(ctx, name, json.RawMessage(`{"q":"private argument"}`))
		if name == "get" {
			_, _ = br.Call(ctx, "break", json.RawMessage(`{}`))
		}
	}
	end(loop.Outcome{Fault: br.End().Fault})
	tr.Close(t.Context())
}

// told are the spans as text: name, parent, state and error, and the attributes
// of the conventions.
func (r *receiver) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[string]string{"": "-"}
	for _, s := range r.spans {
		names[string(s.SpanId)] = s.Name
	}
	var out []string
	for _, s := range r.spans {
		at := map[string]string{}
		for _, a := range s.Attributes {
			at[a.Key] = a.Value.GetStringValue()
		}
		out = append(out, strings.Join([]string{
			s.Name, "in " + names[string(s.ParentSpanId)], at["gen_ai.operation.name"], at["gen_ai.tool.call.id"],
			at["server.address"], at["codeact.call.state"], at["error.type"], s.Status.GetMessage(),
		}, "|"))
	}
	sort.Strings(out)
	return out
}

func TestSpans(t *testing.T) {
	r := receive(t)
	traced(t, false)
	want := []string{
		"codeact.execution|in -|||||EffectUncertain|EffectUncertain",
		"execute_tool break|in codeact.execution|execute_tool|u:1:2|break.example|Uncertain|EffectUncertain|EffectUncertain",
		"execute_tool get|in codeact.execution|execute_tool|u:1:1|get.example|Completed||",
		"execute_tool ghost|in codeact.execution|execute_tool|||Refused|EffectUncertain|EffectUncertain",
	}
	if diff := cmp.Diff(want, r.told()); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if raw := r.raw.String(); strings.Contains(raw, "private") || strings.Contains(raw, "secret-path") {
		t.Error("what belongs to the tenant was sent to the collector")
	}
}

// abandons is a hook that lets no call be sent.
type abandons struct{ broker.Pass }

func (abandons) Dispatch(ctx context.Context, _ broker.Moment) (context.Context, error) {
	return ctx, contract.Faultf(contract.ReasonBrokerUnavailable, "not today")
}

// TestSpanOfACallThatEndsEarly: a call that another hook abandons before the
// tracer has seen it has a span of its own, and does not end the execution's.
func TestSpanOfACallThatEndsEarly(t *testing.T) {
	r := receive(t)
	b := bundleOf(false, "get")
	tr, err := New(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := tr.Execution(t.Context())
	br, err := broker.New(broker.Config{
		Run: b.Run, Limits: b.Limits, Now: time.Now, Hooks: append([]broker.Hook{abandons{}}, tr.Hooks()...),
		Tools: []broker.Tool{{PinnedTool: b.Tools[0], Backend: says("1")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = br.Call(ctx, "get", json.RawMessage(`{}`))
	if !api.SpanFromContext(ctx).IsRecording() {
		t.Error("the span of the execution has ended")
	}
	end(loop.Outcome{})
	tr.Close(t.Context())
	want := []string{
		"codeact.execution|in -||||||",
		"execute_tool get|in codeact.execution|execute_tool|u:1:1|get.example|Abandoned|BrokerUnavailable|BrokerUnavailable",
	}
	if diff := cmp.Diff(want, r.told()); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

func TestContentIsTheOperatorsChoice(t *testing.T) {
	r := receive(t)
	traced(t, true)
	raw := r.raw.String()
	for _, want := range []string{"private argument", "private result"} {
		if !strings.Contains(raw, want) {
			t.Errorf("the spans have no %q", want)
		}
	}
	if strings.Contains(raw, "private message") {
		t.Error("the spans have a message of a tool")
	}
}

// TestCollectorNeverHoldsUp: a collector that takes connections and never
// answers costs the end of a run flushFor at most.
func TestCollectorNeverHoldsUp(t *testing.T) {
	block := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		select {
		case <-block:
		case <-q.Context().Done():
		}
	}))
	defer s.Close()
	defer close(block)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	start := time.Now()
	traced(t, false)
	if d := time.Since(start); d > flushFor+3*time.Second {
		t.Errorf("the run was held up for %s", d)
	}
}

func TestWithoutATracer(t *testing.T) {
	var tr *Tracer
	ctx, end := tr.Execution(t.Context())
	end(loop.Outcome{})
	tr.Close(ctx)
	if ctx != t.Context() {
		t.Error("a context was changed for nothing")
	}
}
