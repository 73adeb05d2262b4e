package model

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// arrived asks a request and returns the path and the body of what was sent.
func arrived(t *testing.T, api contract.ModelAPI, below string, q loop.ModelRequest) (path string, body []byte) {
	t.Helper()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.RequestURI()
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"status":"completed","choices":[{"message":{"content":"x"}}]}`)
	}))
	defer h.Close()
	c, _ := newClient(t, pinned(h.URL+below, api))
	if _, err := c.Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	return path, body
}

// TestPath: requests go below the grant's URL, whatever it ends with.
func TestPath(t *testing.T) {
	for below, want := range map[string]string{
		"": "/", "/": "/", "/v1": "/v1/", "/v1/": "/v1/", "/a%2Fb/v1": "/a%2Fb/v1/", "//x": "//x/", "/v1?api-version=2024-06-01&a=%26": "/v1/*?a=%26&api-version=2024-06-01",
	} {
		for api, last := range map[contract.ModelAPI]string{contract.ModelAPIChat: "chat/completions", contract.ModelAPIResponses: "responses"} {
			want := want
			if !strings.Contains(want, "*") {
				want += "*"
			}
			want = strings.Replace(want, "*", last, 1)
			if got, _ := arrived(t, api, below, question); got != want {
				t.Errorf("%s below %q: %s, want %s", api, below, got, want)
			}
		}
	}
}

// TestToolsInRequests: definitions, calls and results, in the words of each API.
func TestToolsInRequests(t *testing.T) {
	tools := []loop.ModelTool{
		{Name: "run_code", Description: "d <&>", Parameters: json.RawMessage(`{"type": "object", "required":["z"], "properties":{"z":{"type":"string"},"a":{"type":"number"}}}`)},
		{Name: "read"},
	}
	history := []loop.Message{
		{Role: loop.RoleSystem, Text: "s"}, {Role: loop.RoleUser, Text: "p"},
		{Role: loop.RoleAssistant, ToolCalls: calling("a", "read", `{"x":1}`, "b", "read", `{"x`)},
		{Role: loop.RoleTool, Text: "[1]", ToolCallID: "a"}, {Role: loop.RoleTool, Text: "", ToolCallID: "b"},
		{Role: loop.RoleAssistant, Text: "so", ToolCalls: calling("c", "read", "")},
		{Role: loop.RoleTool, Text: "2", ToolCallID: "c"},
	}
	for name, tc := range map[string]struct {
		api      contract.ModelAPI
		messages []loop.Message
		member   string
		want     string
	}{
		"chat: tools": {contract.ModelAPIChat, question.Messages, "tools", `[{"type":"function","function":{"name":"run_code","description":"d <&>","parameters":{"type":"object","required":["z"],"properties":{"z":{"type":"string"},"a":{"type":"number"}}}}},` +
			`{"type":"function","function":{"name":"read","parameters":{"type":"object","properties":{}}}}]`},
		"responses: tools": {contract.ModelAPIResponses, question.Messages, "tools", `[{"type":"function","name":"run_code","description":"d <&>","parameters":{"type":"object","required":["z"],"properties":{"z":{"type":"string"},"a":{"type":"number"}}},"strict":false},` +
			`{"type":"function","name":"read","parameters":{"type":"object","properties":{}},"strict":false}]`},
		"chat: history": {contract.ModelAPIChat, history, "messages", `[{"role":"system","content":"s"},{"role":"user","content":"p"},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"x\":1}"}},{"id":"b","type":"function","function":{"name":"read","arguments":"{}"}}]},` +
			`{"role":"tool","content":"[1]","tool_call_id":"a"},{"role":"tool","content":"","tool_call_id":"b"},` +
			`{"role":"assistant","content":"so","tool_calls":[{"id":"c","type":"function","function":{"name":"read","arguments":"{}"}}]},{"role":"tool","content":"2","tool_call_id":"c"}]`},
		"responses: history": {contract.ModelAPIResponses, history, "input", `[{"content":"s","role":"system"},{"content":"p","role":"user"},` +
			`{"arguments":"{\"x\":1}","call_id":"a","name":"read","type":"function_call"},{"arguments":"{}","call_id":"b","name":"read","type":"function_call"},` +
			`{"output":"[1]","call_id":"a","type":"function_call_output"},{"output":"","call_id":"b","type":"function_call_output"},` +
			`{"content":"so","role":"assistant"},{"arguments":"{}","call_id":"c","name":"read","type":"function_call"},{"output":"2","call_id":"c","type":"function_call_output"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			_, body := arrived(t, tc.api, "/v1", loop.ModelRequest{Messages: tc.messages, Tools: tools})
			var members map[string]json.RawMessage
			if err := json.Unmarshal(body, &members); err != nil {
				t.Fatal(err)
			}
			got := strings.NewReplacer(`\u003c`, "<", `\u0026`, "&", `\u003e`, ">").Replace(string(members[tc.member]))
			if tc.api == contract.ModelAPIResponses && tc.member == "input" { // the SDK has its own order
				got, tc.want = canonical(t, got), canonical(t, tc.want)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
			if _, ok := members["parallel_tool_calls"]; ok || members["tool_choice"] != nil {
				t.Errorf("body %s", body)
			}
		})
	}
}

// TestToolsAreRefused: whether the endpoint takes no tools at all, or none in a
// stream.
func TestToolsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		status    int
		says      string
		wantError string
	}{
		"Ollama":            {400, `{"error":{"message":"m does not support tools","type":"api_error"}}`, "needs the protocol Code"},
		"vLLM":              {400, `{"error":{"message":"\"auto\" tool choice requires --enable-auto-tool-choice","type":"BadRequestError"}}`, "status 400 (BadRequestError); it names tools"},
		"something else":    {400, `{"error":{"message":"m"}}`, "status 400"},
		"llama.cpp, stream": {500, `{"error":{"code":500,"message":"Cannot use tools with stream","type":"server_error"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if tc.wantError == "" && !strings.Contains(string(body), `"stream":true`) {
					_, _ = io.WriteString(w, whole)
					return
				}
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.says)
			}))
			defer h.Close()
			c, waits := newClient(t, pinned(h.URL, contract.ModelAPIChat))
			q := question
			q.Tools = []loop.ModelTool{{Name: "f"}}
			_, err := c.Ask(t.Context(), q)
			if tc.wantError == "" && err == nil {
				return
			}
			wantFault(t, err, tc.wantError)
			if len(*waits) != 0 || strings.Contains(err.Error(), "names tools") != strings.Contains(tc.says, "tool") {
				t.Errorf("error %v, waits %v", err, *waits)
			}
		})
	}
}

func canonical(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	out, err := marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestParameters(t *testing.T) {
	for schema, want := range map[string]string{
		"": `{"type":"object","properties":{}}`, "null": `{"type":"object","properties":{}}`, "true": `{"type":"object","properties":{}}`, "{ }": `{"type":"object","properties":{}}`,
		`{"type":"object"}`: `{"type":"object","properties":{}}`, `{"properties":{"b":{},"a":{}} }`: `{"properties":{"b":{},"a":{}},"type":"object"}`,
		`{"type":"object","properties":{},"required":[]}`: `{"type":"object","properties":{},"required":[]}`,
	} {
		if got := string(parameters(json.RawMessage(schema))); got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
}
