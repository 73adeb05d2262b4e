package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/test/modelserver/script"
)

const token = "sesame-sesame-0123456789"

// fixed is a credential that counts how often it was asked for.
type fixed struct{ asked atomic.Int64 }

func (f *fixed) Credential(string) ([]byte, error) {
	f.asked.Add(1)
	return []byte(token + "\n"), nil
}

// pinned is a bundle with an agent whose model is at the URL.
func pinned(url string, api contract.ModelAPI) contract.Bundle {
	return contract.Bundle{
		Operator: contract.OperatorPolicy{AllowLoopback: true},
		Agent: &contract.PinnedAgent{Model: contract.PinnedModel{
			Tool: "llm", URL: url, Model: "scripted", API: api, TimeoutMs: 20_000,
			Auth: contract.Auth{Type: contract.AuthSecretRef}, Retry: &contract.Retry{Attempts: 3, BackoffMs: 1},
		}},
	}
}

// newClient makes a client that does not wait between attempts, and says what it
// would have waited.
func newClient(t *testing.T, b contract.Bundle) (*Client, *[]time.Duration) {
	t.Helper()
	c, err := New(b, &fixed{})
	if err != nil {
		t.Fatal(err)
	}
	var waits []time.Duration
	c.wait = func(ctx context.Context, d time.Duration) error {
		waits = append(waits, d)
		return ctx.Err()
	}
	return c, &waits
}

var question = loop.ModelRequest{Messages: []loop.Message{
	{Role: loop.RoleSystem, Text: "be brief"}, {Role: loop.RoleUser, Text: "hello"},
	{Role: loop.RoleAssistant, Text: "hi <&>"}, {Role: loop.RoleUser, Text: "again"},
}}

// ask asks once, and holds what Delta was told to the answer.
func ask(t *testing.T, c *Client) (loop.ModelAnswer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var text, reasoning strings.Builder
	q := question
	q.Delta = func(x, r string) {
		if x == "" && r == "" {
			text.Reset()
			reasoning.Reset()
		}
		text.WriteString(x)
		reasoning.WriteString(r)
	}
	ans, err := c.Ask(ctx, q)
	whole := ""
	if ans.Text != nil {
		whole = *ans.Text
	}
	if text.String() != whole || reasoning.String() != ans.Reasoning {
		t.Errorf("Delta was told %q and %q of the answer %+v", text.String(), reasoning.String(), ans)
	}
	if strings.Contains(fmt.Sprint(err), token) {
		t.Errorf("the error holds the credential: %v", err)
	}
	return ans, err
}

// wantFault holds an error to the reason and a part of its message.
func wantFault(t *testing.T, err error, part string) {
	t.Helper()
	f, ok := contract.AsFault(err)
	if !ok || f.Reason != contract.ReasonModelError || !strings.Contains(f.Message, part) {
		t.Errorf("error %v, want a ModelError with %q", err, part)
	}
}

// play starts the scripted server with one script.
func play(t *testing.T, x script.Script) (*script.Server, string) {
	t.Helper()
	s := script.New(script.Config{})
	s.Play("one", x)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, h.URL + "/s/one/v1"
}

// TestScripts plays each script to both APIs, streaming and not: the answers are
// the same.
func TestScripts(t *testing.T) {
	long := strings.Repeat("wörter und ", 200)
	used := &script.Usage{InputTokens: 90, OutputTokens: 12}
	for name, tc := range map[string]struct {
		turns     []script.Turn
		want      loop.ModelAnswer
		wantError string
		wantWaits []time.Duration
	}{
		"an answer":                         {turns: []script.Turn{{Text: long, Usage: used}}, want: loop.ModelAnswer{Text: &long, FinishReason: "stop", InputTokens: 90, OutputTokens: 12, Counted: true, Attempts: 1}},
		"no usage":                          {turns: []script.Turn{{Text: "x"}}, want: loop.ModelAnswer{Text: new("x"), FinishReason: "stop", Attempts: 1}},
		"reasoning":                         {turns: []script.Turn{{Text: "<think>a</think>x", Reasoning: "hm, so"}}, want: loop.ModelAnswer{Text: new("<think>a</think>x"), Reasoning: "hm, so", FinishReason: "stop", Attempts: 1}},
		"truncated":                         {turns: []script.Turn{{Text: "x", FinishReason: "length"}}, want: loop.ModelAnswer{Text: new("x"), FinishReason: "length", Attempts: 1}},
		"filtered":                          {turns: []script.Turn{{Text: "x", FinishReason: "content_filter"}}, want: loop.ModelAnswer{Text: new("x"), FinishReason: "content_filter", Attempts: 1}},
		"tool calls":                        {turns: []script.Turn{{ToolCalls: []script.ToolCall{{Name: "a", Arguments: "{}"}, {Name: "a", Arguments: "{}"}}}}, want: loop.ModelAnswer{ToolCalls: calling("call_1_1", "a", "{}", "call_1_2", "a", "{}"), FinishReason: "tool_calls", Attempts: 1}},
		"no text":                           {turns: []script.Turn{{}}, want: loop.ModelAnswer{FinishReason: "stop", Attempts: 1}},
		"429 twice":                         {turns: []script.Turn{{Text: "x", Status: 429, Times: 2, RetryAfter: "7"}}, want: loop.ModelAnswer{Text: new("x"), FinishReason: "stop", Attempts: 3}, wantWaits: []time.Duration{7 * time.Second, 7 * time.Second}},
		"500 once":                          {turns: []script.Turn{{Text: "x", Status: 500, Times: 1}}, want: loop.ModelAnswer{Text: new("x"), FinishReason: "stop", Attempts: 2}, wantWaits: []time.Duration{time.Millisecond}},
		"a long wait":                       {turns: []script.Turn{{Text: "x", Status: 503, Times: 1, RetryAfter: "3600"}}, want: loop.ModelAnswer{Text: new("x"), FinishReason: "stop", Attempts: 2}, wantWaits: []time.Duration{30 * time.Second}},
		"429 always":                        {turns: []script.Turn{{Status: 429, Times: 9}}, want: loop.ModelAnswer{Attempts: 3}, wantError: "asked 3 times: it answered with status 429 (scripted_error)", wantWaits: []time.Duration{time.Millisecond, 2 * time.Millisecond}},
		"401":                               {turns: []script.Turn{{Status: 401}}, want: loop.ModelAnswer{Attempts: 1}, wantError: "no answer: it answered with status 401"},
		"an error in a 200, then an answer": {turns: []script.Turn{{Text: "lost lost lost lost lost", Error: "overloaded"}, {Text: "x"}}, want: loop.ModelAnswer{Text: new("x"), FinishReason: "stop", Attempts: 2}, wantWaits: []time.Duration{time.Millisecond}},
		"no connection, then an answer":     {turns: []script.Turn{{Cut: script.CutBefore}, {Text: "x"}}, want: loop.ModelAnswer{Text: new("x"), FinishReason: "stop", Attempts: 2}, wantWaits: []time.Duration{time.Millisecond}},
		"cut in a frame, then an answer":    {turns: []script.Turn{{Text: long, Cut: script.CutFrame}, {Text: "x"}}, want: loop.ModelAnswer{Text: new("x"), FinishReason: "stop", Attempts: 2}, wantWaits: []time.Duration{time.Millisecond}},
	} {
		for _, api := range []contract.ModelAPI{contract.ModelAPIChat, contract.ModelAPIResponses} {
			for _, streaming := range []script.Streaming{script.StreamAsAsked, script.StreamIgnored} {
				t.Run(fmt.Sprint(name, " ", api, " ", streaming), func(t *testing.T) {
					s, url := play(t, script.Script{Turns: tc.turns, Stream: streaming})
					c, waits := newClient(t, pinned(url, api))
					ans, err := ask(t, c)
					if tc.wantError != "" {
						wantFault(t, err, tc.wantError)
					} else if err != nil {
						t.Fatal(err, s.Log(""))
					}
					if d := cmp.Diff(tc.want, ans); d != "" {
						t.Error(d)
					}
					if d := cmp.Diff(tc.wantWaits, *waits); d != "" {
						t.Error(d)
					}
				})
			}
		}
	}
}

func TestStreamWithoutFinishReason(t *testing.T) {
	for _, api := range []contract.ModelAPI{contract.ModelAPIChat, contract.ModelAPIResponses} {
		_, url := play(t, script.Script{Turns: []script.Turn{{Text: "x", Cut: script.CutEnd}}, RepeatLast: true})
		c, _ := newClient(t, pinned(url, api))
		ans, err := ask(t, c)
		wantFault(t, err, "without a finish reason")
		if ans.Attempts != 3 || ans.Text != nil {
			t.Errorf("answer %+v", ans)
		}
	}
}

// TestFallback: an endpoint that refuses streams is asked without one, once a run.
func TestFallback(t *testing.T) {
	for name, tc := range map[string]struct {
		stream  script.Streaming
		counted bool
	}{"no stream": {script.StreamRefused, true}, "no options": {script.StreamOptionsRefused, false}} {
		t.Run(name, func(t *testing.T) {
			s, url := play(t, script.Script{Turns: []script.Turn{{Text: "x", Usage: &script.Usage{InputTokens: 1, OutputTokens: 1}}}, RepeatLast: true, Stream: tc.stream})
			c, waits := newClient(t, pinned(url, contract.ModelAPIChat))
			for i, want := range []int64{2, 1} {
				ans, err := ask(t, c)
				if err != nil || ans.Attempts != want || ans.Counted != tc.counted || *ans.Text != "x" {
					t.Errorf("ask %d: %+v, %v", i, ans, err)
				}
			}
			if len(s.Log("")) != 3 || len(*waits) != 0 {
				t.Errorf("%d requests, waits %v", len(s.Log("")), *waits)
			}
		})
	}
}

func TestTokensFallback(t *testing.T) {
	var bodies []string
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		if strings.Contains(string(b), `"max_tokens"`) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}`)
			return
		}
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
	}))
	defer h.Close()
	b := pinned(h.URL, contract.ModelAPIChat)
	b.Agent.Options.MaxOutputTokens = 9
	c, _ := newClient(t, b)
	if ans, err := ask(t, c); err != nil || ans.Attempts != 2 || !strings.Contains(bodies[1], `"max_completion_tokens":9`) {
		t.Errorf("%+v, %v, %v", ans, err, bodies)
	}
}

func TestCancel(t *testing.T) {
	s, url := play(t, script.Script{Turns: []script.Turn{{Text: "x", Hold: "never"}}})
	c, _ := newClient(t, pinned(url, contract.ModelAPIChat))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Ask(ctx, question)
		done <- err
	}()
	for len(s.Log("")) == 0 {
		select {
		case err := <-done:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the request went on")
	}
	// The wait between two attempts ends as well.
	wait, stop := context.WithCancel(t.Context())
	stop()
	if err := sleep(wait, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTimeout(t *testing.T) {
	for name, turn := range map[string]script.Turn{
		"no answer": {Text: "x", Hold: "never"},
		"a drip":    {Text: strings.Repeat("x", 10_000), DripMs: 20},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := play(t, script.Script{Turns: []script.Turn{turn}, RepeatLast: true})
			b := pinned(url, contract.ModelAPIChat)
			b.Agent.Model.TimeoutMs, b.Agent.Model.Retry = 150, nil
			c, _ := newClient(t, b)
			ans, err := ask(t, c)
			wantFault(t, err, "asked 2 times: there was no answer in time")
			if ans.Attempts != 2 || len(s.Log("")) != 2 {
				t.Errorf("answer %+v, %d requests", ans, len(s.Log("")))
			}
		})
	}
}

// TestEnvironment: nothing of the environment gets into a request, and little of
// the SDK.
func TestEnvironment(t *testing.T) {
	for k, v := range map[string]string{
		"OPENAI_API_KEY": "leak-key", "OPENAI_BASE_URL": "http://127.0.0.1:1/leak", "OPENAI_ORG_ID": "leak-org", "OPENAI_PROJECT_ID": "leak-project",
		"OPENAI_ADMIN_KEY": "leak-admin", "OPENAI_CUSTOM_HEADERS": "X-Leak: leak", "HTTP_PROXY": "http://127.0.0.1:1", "HTTPS_PROXY": "http://127.0.0.1:1",
	} {
		t.Setenv(k, v)
	}
	for _, api := range []contract.ModelAPI{contract.ModelAPIChat, contract.ModelAPIResponses} {
		var head http.Header
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			head = r.Header
			if q := r.URL.Query().Get("api-version"); q != "2024-06-01" || !strings.HasPrefix(r.URL.Path, "/v1/deployments/x/") {
				t.Errorf("path %s, api-version %q", r.URL.Path, q)
			}
			_, _ = io.WriteString(w, `{"status":"completed","choices":[{"message":{"content":"x"}}]}`)
		}))
		b := pinned(h.URL+"/v1/deployments/x?api-version=2024-06-01", api)
		c, _ := newClient(t, b)
		if _, err := ask(t, c); err != nil {
			t.Error(err)
		}
		h.Close()
		want := http.Header{
			"Accept": {"application/json"}, "Authorization": {"Bearer " + token}, "Content-Type": {"application/json"},
			"User-Agent": {egress.UserAgent}, "Connection": {"close"},
		}
		head.Del("Content-Length")
		if d := cmp.Diff(want, head); d != "" {
			t.Error(d)
		}
		b.Agent.Model.Auth.Type = contract.AuthNone
		if _, err := New(b, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestRequestBody(t *testing.T) {
	seed, store := int64(7), false
	all := contract.ModelOptions{
		Temperature: "0.10", TopP: "1", MaxOutputTokens: 9, ReasoningEffort: "low", Store: &store, User: "u", ExtraBody: json.RawMessage(`{"top.k": 20, "x": {"model": 1}}`),
	}
	withSeed := all
	withSeed.Seed, withSeed.Stop = &seed, []string{"END"}
	for name, tc := range map[string]struct {
		api  contract.ModelAPI
		o    contract.ModelOptions
		want string
	}{
		"chat":           {contract.ModelAPIChat, contract.ModelOptions{}, `{"messages":[{"content":"be brief","role":"system"},{"content":"hello","role":"user"},{"content":"hi <&>","role":"assistant"},{"content":"again","role":"user"}],"model":"scripted","n":1,"stream":true,"stream_options":{"include_usage":true}}`},
		"chat, all":      {contract.ModelAPIChat, withSeed, `{"messages":[{"content":"be brief","role":"system"},{"content":"hello","role":"user"},{"content":"hi <&>","role":"assistant"},{"content":"again","role":"user"}],"model":"scripted","n":1,"stream":true,"stream_options":{"include_usage":true},"temperature":0.10,"top_p":1,"max_tokens":9,"reasoning_effort":"low","store":false,"user":"u","seed":7,"stop":["END"],"top.k":20,"x":{"model":1}}`},
		"responses":      {contract.ModelAPIResponses, contract.ModelOptions{}, `{"input":[{"content":"be brief","role":"system"},{"content":"hello","role":"user"},{"content":"hi <&>","role":"assistant"},{"content":"again","role":"user"}],"model":"scripted","stream":true}`},
		"responses, all": {contract.ModelAPIResponses, all, `{"input":[{"content":"be brief","role":"system"},{"content":"hello","role":"user"},{"content":"hi <&>","role":"assistant"},{"content":"again","role":"user"}],"model":"scripted","stream":true,"temperature":0.10,"top_p":1,"max_output_tokens":9,"reasoning":{"effort":"low"},"store":false,"user":"u","top.k":20,"x":{"model":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var got []byte
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got, _ = io.ReadAll(r.Body)
				_, _ = io.WriteString(w, `{"status":"completed","choices":[{"message":{"content":"x"}}]}`)
			}))
			defer h.Close()
			b := pinned(h.URL, tc.api)
			b.Agent.Options = tc.o
			c, _ := newClient(t, b)
			if _, err := ask(t, c); err != nil {
				t.Fatal(err)
			}
			var g, w map[string]json.RawMessage
			if json.Unmarshal(got, &g) != nil || json.Unmarshal([]byte(tc.want), &w) != nil {
				t.Fatalf("body %s", got)
			}
			if d := cmp.Diff(spelled(w), spelled(g)); d != "" {
				t.Errorf("%s\n%s", d, got)
			}
		})
	}
}

// spelled keeps the spelling of members apart from their order and white space.
func spelled(m map[string]json.RawMessage) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		if len(v) > 0 && (v[0] == '{' || v[0] == '[') {
			var x any
			_ = json.Unmarshal(v, &x)
			v, _ = json.Marshal(x)
		}
		out[k] = string(v)
	}
	return out
}

func TestNewRefuses(t *testing.T) {
	for name, edit := range map[string]func(*contract.Bundle){
		"no agent":   func(b *contract.Bundle) { b.Agent = nil },
		"no URL":     func(b *contract.Bundle) { b.Agent.Model.URL = "" },
		"a file":     func(b *contract.Bundle) { b.Agent.Model.URL = "file:///x" },
		"a password": func(b *contract.Bundle) { b.Agent.Model.URL = "http://u:p@x/v1" },
		"an API":     func(b *contract.Bundle) { b.Agent.Model.API = "Gopher" },
		"extraBody":  func(b *contract.Bundle) { b.Agent.Options.ExtraBody = json.RawMessage(`{"Model":"x"}`) },
	} {
		b := pinned("http://x/v1", contract.ModelAPIChat)
		edit(&b)
		if _, err := New(b, &fixed{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestCredentialIsAskedForEachTime: a rotated one counts from the next attempt on.
func TestCredentialIsAskedForEachTime(t *testing.T) {
	_, url := play(t, script.Script{Turns: []script.Turn{{Text: "x", Status: 500, Times: 1}}})
	creds := &fixed{}
	c, err := New(pinned(url, contract.ModelAPIChat), creds)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, c); err != nil || creds.asked.Load() != 2 {
		t.Errorf("error %v, asked %d times", err, creds.asked.Load())
	}
	c.creds = nil
	_, err = ask(t, c)
	wantFault(t, err, "nothing was sent")
}
