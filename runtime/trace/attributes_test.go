package trace

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// attributes are those of the one span of the name, by their keys.
func (r *receiver) attributes(t *testing.T, name string) (*otlp.Span, map[string]string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if s.Name != name {
			continue
		}
		out := map[string]string{}
		for _, a := range s.Attributes {
			out[a.Key] = plain(a.Value)
		}
		return s, out
	}
	t.Fatalf("there is no span %q", name)
	return nil, nil
}

// plain is a value as text, a list in brackets.
func plain(v *common.AnyValue) string {
	switch x := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return x.StringValue
	case *common.AnyValue_IntValue:
		return strconv.FormatInt(x.IntValue, 10)
	case *common.AnyValue_DoubleValue:
		return fmt.Sprint(x.DoubleValue)
	case *common.AnyValue_ArrayValue:
		var out []string
		for _, e := range x.ArrayValue.Values {
			out = append(out, plain(e))
		}
		return fmt.Sprint(out)
	}
	return v.String()
}

// TestAttributesOfAnAgent has all that its spans say.
func TestAttributesOfAnAgent(t *testing.T) {
	r, _ := life{says: []string{code("call get")}, change: func(b *contract.Bundle) {
		b.Agent.Options.TopP, b.Agent.Options.Seed, b.Agent.Options.Stop = "0.25", new(int64(7)), []string{"private stop"}
	}}.lived(t)
	model := map[string]string{
		"gen_ai.provider.name": "openai", "gen_ai.request.model": "m", "server.address": "model.example", "server.port": "8443",
		"gen_ai.usage.input_tokens": "10", "gen_ai.usage.output_tokens": "2",
	}
	tests := map[string]struct {
		kind otlp.Span_SpanKind
		want map[string]string
	}{
		"invoke_agent": {otlp.Span_SPAN_KIND_INTERNAL, merged(model, map[string]string{
			"gen_ai.operation.name": "invoke_agent", "codeact.run.namespace": "team-a", "codeact.run.name": "r", "codeact.run.uid": "u",
			"codeact.run.generation": "1", "codeact.source.digest": contract.Digest(nil),
			"codeact.agent.protocol": "Code", "codeact.agent.steps": "1",
		})},
		"codeact.step": {otlp.Span_SPAN_KIND_INTERNAL, map[string]string{
			"codeact.step.number": "1", "codeact.step.kind": "Code", "codeact.step.program_digest": contract.Digest([]byte("call get")),
		}},
		"chat m": {otlp.Span_SPAN_KIND_CLIENT, merged(model, map[string]string{
			"gen_ai.operation.name": "chat", "gen_ai.request.temperature": "0.5", "gen_ai.request.top_p": "0.25",
			"gen_ai.request.max_tokens": "100", "gen_ai.request.seed": "7", "gen_ai.response.finish_reasons": "[stop]", "codeact.model.attempts": "1",
		})},
		"execute_tool code": {otlp.Span_SPAN_KIND_INTERNAL, map[string]string{
			"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "code", "gen_ai.tool.type": "function", "gen_ai.tool.call.id": "code_execution_1",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			span, got := r.attributes(t, name)
			if diff := cmp.Diff(tc.want, got); diff != "" || span.Kind != tc.kind {
				t.Errorf("kind %s, want %s, attributes (-want +got):\n%s", span.Kind, tc.kind, diff)
			}
		})
	}
}

func merged(list ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range list {
		maps.Copy(out, m)
	}
	return out
}

// TestMessagesAreTheOperatorsChoice: with it, the messages stand in the span in
// the form of the conventions.
func TestMessagesAreTheOperatorsChoice(t *testing.T) {
	r, _ := life{says: []string{final}, change: func(b *contract.Bundle) { b.Operator.TraceContent = true }}.lived(t)
	raw := r.raw.String()
	for _, want := range []string{`[{"role":"system","parts":[{"type":"text"`, "private prompt", "private output", `"finish_reason":"stop"`} {
		if !strings.Contains(raw, want) {
			t.Errorf("the spans have no %s", want)
		}
	}
}

func TestShown(t *testing.T) {
	long := strings.Repeat("\x01", maxContentBytes)
	call := []contract.ModelToolCall{{ID: "c", Name: "get", Arguments: `{"a":1}`}}
	tests := map[string]struct {
		messages []loop.Message
		want     string
	}{
		"none":   {nil, `[]`},
		"text":   {[]loop.Message{{Role: loop.RoleUser, Text: "a"}}, `[{"role":"user","parts":[{"type":"text","content":"a"}]}]`},
		"a call": {[]loop.Message{{Role: loop.RoleAssistant, ToolCalls: call}}, `[{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"get","arguments":"{\"a\":1}"}]}]`},
		"result": {[]loop.Message{{Role: loop.RoleTool, Text: "1", ToolCallID: "c"}}, `[{"role":"tool","parts":[{"type":"tool_call_response","id":"c","response":"1"}]}]`},
		"the newest stay": {
			[]loop.Message{{Role: loop.RoleSystem, Text: long}, {Role: loop.RoleUser, Text: long}, {Role: loop.RoleUser, Text: "b"}},
			`[{"role":"user","parts":[{"type":"text","content":"` + strings.Repeat(`\u0001`, maxTextBytes) + `"}]},{"role":"user","parts":[{"type":"text","content":"b"}]}]`,
		},
		"no text": {[]loop.Message{{Role: loop.RoleUser, Text: "a\xff"}}, `[{"role":"user","parts":[{"type":"text","content":"a�"}]}]`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := shown(tc.messages)
			if got != tc.want || len(got) > maxContentBytes || !json.Valid([]byte(got)) {
				t.Errorf("%d bytes %.300s, want %.300s", len(got), got, tc.want)
			}
		})
	}
}

// TestToolNamesAreTheRuns: what a model wrote for a name is in no span.
func TestToolNamesAreTheRuns(t *testing.T) {
	r := receive(t)
	b := bundleOf(false, "get")
	b.Agent = &contract.PinnedAgent{Recipes: []contract.PinnedRecipeTool{{PinnedRecipe: contract.PinnedRecipe{Name: "buy", ToolName: "buy_it"}}}}
	tr, err := New(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"code", "run_code", "get", "buy_it", "buy", "private word"} {
		_, ended := tr.Spans().Tool(t.Context(), name, "")
		ended(nil)
	}
	tr.Close(t.Context())
	var got []string
	for _, s := range r.spans {
		got = append(got, strings.TrimPrefix(s.Name, "execute_tool "))
	}
	sort.Strings(got)
	if diff := cmp.Diff([]string{"_OTHER", "_OTHER", "buy_it", "code", "get", "run_code"}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// TestParent: the spans are below the one that the bundle names, which also
// decides whether there are any.
func TestParent(t *testing.T) {
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	tests := map[string]struct {
		parent string
		want   int // spans that are sent
		below  bool
	}{
		"none":        {"", 3, false},
		"sampled":     {"00-" + trace + "-" + span + "-01", 3, true},
		"not sampled": {"00-" + trace + "-" + span + "-00", 0, false},
		"invalid":     {"00-" + trace + "-" + span, 3, false},
		"newer":       {"01-" + trace + "-" + span + "-01", 3, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, open := life{says: []string{final}, change: func(b *contract.Bundle) { b.TraceParent = tc.parent }}.lived(t)
			if len(r.spans) != tc.want || open != 0 {
				t.Fatalf("%d spans, %d of them open, want %d", len(r.spans), open, tc.want)
			}
			for _, s := range r.spans {
				if got := hex.EncodeToString(s.TraceId) == trace; got != tc.below {
					t.Errorf("%s is in the trace %x", s.Name, s.TraceId)
				}
				if s.Name == "invoke_agent" && (hex.EncodeToString(s.ParentSpanId) == span) != tc.below {
					t.Errorf("the parent is %x", s.ParentSpanId)
				}
			}
		})
	}
}

// TestSpansOfARunWithoutAnAgent: there are none, and none without a tracer.
func TestSpansOfARunWithoutAnAgent(t *testing.T) {
	receive(t)
	tr, err := New(t.Context(), bundleOf(false))
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close(context.WithoutCancel(t.Context()))
	var none *Tracer
	if tr.Spans() != nil || none.Spans() != nil {
		t.Error("there are spans for nobody")
	}
}
