package script

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const asks = `{"model":"m","user":"u","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}]}`

// post returns the status and what was read of the body.
func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer sesame-sesame")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = res.Body.Close() }()
	got, _ := io.ReadAll(res.Body) // what was cut was cut on purpose
	return res.StatusCode, string(got)
}

func start(t *testing.T, c Config) (*Server, string) {
	t.Helper()
	s := New(c)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, h.URL
}

func TestPlay(t *testing.T) {
	streamed := strings.Replace(asks, `"user":"u"`, `"user":"u","stream":true,"stream_options":{"include_usage":true}`, 1)
	input := strings.Replace(asks, "messages", "input", 1)
	for name, tc := range map[string]struct {
		script     string
		path, body string
		wantStatus int
		want       []string
		wantNone   string
	}{
		"a text":            {script: `{"turns":["hi"]}`, path: "chat/completions", body: asks, wantStatus: 200, want: []string{`"content":"hi"`, `"finish_reason":"stop"`}, wantNone: "usage"},
		"usage":             {script: `{"turns":[{"text":"hi","usage":{"inputTokens":3,"outputTokens":4}}]}`, path: "chat/completions", body: asks, wantStatus: 200, want: []string{`"total_tokens":7`}},
		"a stream":          {script: `{"turns":[{"text":"hello world","reasoning":"hm","usage":{"inputTokens":3,"outputTokens":4}}]}`, path: "chat/completions", body: streamed, wantStatus: 200, want: []string{`"content":"hello world"`, `"reasoning_content":"hm"`, `"total_tokens":7`, "data: [DONE]\n\n"}},
		"tool calls":        {script: `{"turns":[{"toolCalls":[{"name":"x","arguments":"{}"}]}]}`, path: "chat/completions", body: asks, wantStatus: 200, want: []string{`"finish_reason":"tool_calls"`, `"content":null`}},
		"a response":        {script: `{"turns":[{"text":"hi","finishReason":"length"}]}`, path: "responses", body: input, wantStatus: 200, want: []string{`"status":"incomplete"`, `"max_output_tokens"`}},
		"a response stream": {script: `{"turns":["hi"]}`, path: "responses", body: strings.Replace(input, `"user":"u"`, `"user":"u","stream":true`, 1), wantStatus: 200, want: []string{"event: response.output_text.delta\n", "event: response.completed\n"}},
		"a status":          {script: `{"turns":[{"status":503,"error":"busy"}]}`, path: "chat/completions", body: asks, wantStatus: 503, want: []string{`"message":"busy"`}},
		"an error in a 200": {script: `{"turns":[{"text":"hi","error":"overloaded"}]}`, path: "chat/completions", body: streamed, wantStatus: 200, want: []string{`data: {"error":`}, wantNone: "[DONE]"},
		"cut in a frame":    {script: `{"turns":[{"text":"hi","cut":"frame"}]}`, path: "chat/completions", body: streamed, wantStatus: 200, want: []string{`"cho`}, wantNone: "[DONE]"},
		"cut at the end":    {script: `{"turns":[{"text":"hi","cut":"end"}]}`, path: "chat/completions", body: streamed, wantStatus: 200, want: []string{`"content":"hi"`}, wantNone: "[DONE]"},
		"cut before":        {script: `{"turns":[{"text":"hi","cut":"before"}]}`, path: "chat/completions", body: asks, wantStatus: 0},
		"raw":               {script: `{"turns":[{"raw":"<html>","contentType":"text/html"}]}`, path: "chat/completions", body: asks, wantStatus: 200, want: []string{"<html>"}},
		"no stream":         {script: `{"turns":["hi"],"stream":"refuse"}`, path: "chat/completions", body: streamed, wantStatus: 400, want: []string{"'stream'"}},
		"stream ignored":    {script: `{"turns":["hi"],"stream":"ignore"}`, path: "chat/completions", body: streamed, wantStatus: 200, want: []string{`"object":"chat.completion"`}},
		"wrong model":       {script: `{"turns":["hi"],"model":"other"}`, path: "chat/completions", body: asks, wantStatus: 400, want: []string{`want \"other\"`}},
		"no system text":    {script: `{"turns":["hi"]}`, path: "chat/completions", body: `{"model":"m","messages":[{"role":"user","content":"x"}]}`, wantStatus: 400, want: []string{"system text"}},
		"system text":       {script: `{"turns":["hi"],"system":["be long"]}`, path: "chat/completions", body: asks, wantStatus: 400, want: []string{"be long"}},
		"last message":      {script: `{"turns":[{"text":"hi","lastPrefix":"CODE_RESULT: "}]}`, path: "chat/completions", body: asks, wantStatus: 400, want: []string{"CODE_RESULT"}},
		"the wrong API":     {script: `{"turns":["hi"]}`, path: "responses", body: asks, wantStatus: 400, want: []string{"other API"}},
		"not JSON":          {script: `{"turns":["hi"]}`, path: "responses", body: "x", wantStatus: 400, want: []string{"cannot be read"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := start(t, Config{})
			if status, text := post(t, url+"/script?name=one", tc.script); status != http.StatusNoContent {
				t.Fatal(text)
			}
			status, got := post(t, url+"/s/one/v1/"+tc.path, tc.body)
			if status != tc.wantStatus || tc.wantNone != "" && strings.Contains(got, tc.wantNone) {
				t.Errorf("status %d, body %s", status, got)
			}
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %s in %s", want, got)
				}
			}
			if n := len(s.Log("one")); n != 1 {
				t.Errorf("%d entries in the log", n)
			}
		})
	}
}

func TestTurnsAreInOrder(t *testing.T) {
	s, url := start(t, Config{})
	s.Play("u", Script{Turns: []Turn{{Text: "one", Status: 429, Times: 2, RetryAfter: "0"}, {Text: "two"}}})
	var got []string
	for range 5 {
		status, text := post(t, url+"/v1/chat/completions", asks)
		var doc struct {
			Choices []struct{ Message struct{ Content string } }
		}
		_ = json.Unmarshal([]byte(text), &doc)
		if len(doc.Choices) == 1 {
			text = doc.Choices[0].Message.Content
		}
		if status != http.StatusOK {
			text = http.StatusText(status)
		}
		got = append(got, text)
	}
	if want := "Too Many Requests, Too Many Requests, one, two, Bad Request"; strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
	s.Play("shared", Script{Turns: []Turn{{Text: "first"}}})
	for _, user := range []string{"a", "b"} {
		if status, text := post(t, url+"/s/shared/v1/chat/completions", strings.Replace(asks, `"u"`, `"`+user+`"`, 1)); status != http.StatusOK {
			t.Errorf("user %s: %d %s", user, status, text)
		}
	}
}

func TestCredentialIsNotKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("open-sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, url := start(t, Config{TokenFile: file})
	s.Play("u", Script{Turns: []Turn{{Text: "one"}}})
	if status, _ := post(t, url+"/v1/chat/completions", asks); status != http.StatusUnauthorized {
		t.Errorf("status %d", status)
	}
	if err := os.WriteFile(file, []byte("sesame-sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _ := post(t, url+"/v1/chat/completions", asks); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	log, err := json.Marshal(s.Log(""))
	if err != nil || strings.Contains(string(log), "sesame") || !strings.Contains(string(log), `"Expected"`) {
		t.Errorf("log %s", log)
	}
}

func TestHold(t *testing.T) {
	s, url := start(t, Config{})
	s.Play("u", Script{Turns: []Turn{{Text: "one", Hold: "gate"}}})
	done := make(chan int, 1)
	go func() {
		status, _ := post(t, url+"/v1/chat/completions", asks)
		done <- status
	}()
	if status, _ := post(t, url+"/release?name=gate", ""); status != http.StatusNoContent {
		t.Errorf("status %d", status)
	}
	if status := <-done; status != http.StatusOK {
		t.Errorf("status %d", status)
	}
}
