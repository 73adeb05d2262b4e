package model

import (
	"compress/gzip"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

const whole = `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`

// endless writes a text until the client is gone.
func endless(begin, again string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.WriteString(w, begin)
		for text := strings.Repeat(again, 1+(64<<10)/len(again)); err == nil; {
			_, err = io.WriteString(w, text)
		}
	}
}

// TestHostile: whatever an endpoint does, the answer is an error in bounded time
// and memory.
func TestHostile(t *testing.T) {
	elsewhere := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/elsewhere") {
				t.Error("the redirect was followed")
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		}
	}
	for name, tc := range map[string]struct {
		handler   http.HandlerFunc
		wantError string
		wantFinal bool
	}{
		"an endless document": {endless(`{"choices":"`, "x"), "longer than 8388608 bytes", true},
		"an endless line":     {endless("data: ", "x"), "a frame of its stream is longer", true},
		"an endless frame":    {endless("", "data: "+strings.Repeat("x", 2000)+"\n"), "a frame of its stream is longer", true},
		"an endless comment":  {endless("", ": x\n\n"), "longer than 12582912 bytes", true},
		"endless text":        {endless("", "data: "+chunk(`"delta":{"content":"`+strings.Repeat("x", 2000)+`"}`)+"\n\n"), "longer than 524288 bytes", true},
		"endless arguments":   {endless("", "data: "+chunk(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"`+strings.Repeat("x", 2000)+`"}}]}`)+"\n\n"), "longer than 524288 bytes", true},
		"endless calls":       {endless("", "data: "+chunk(`"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`)+"\n\n"), "more than 1024 tool calls", true},
		"endless pieces":      {endless("", "data: "+chunk(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}`)+"\n\n"), "longer than 12582912 bytes", true},
		"endless reasoning":   {endless("", "data: "+chunk(`"delta":{"reasoning":"`+strings.Repeat("x", 2000)+`"}`)+"\n\n"), "longer than 12582912 bytes", true},
		"endless blanks":      {endless("", "\n"), "longer than 12582912 bytes", true},
		"an endless error":    {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500); endless(`{"error":"`, "x")(w, r) }, "status 500", false},
		"huge headers":        {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, "could not be reached", false},
		"a redirect with 301": {elsewhere(301), "redirects are not followed", true},
		"a redirect with 307": {elsewhere(307), "redirects are not followed", true},
		"a redirect with 308": {elsewhere(308), "redirects are not followed", true},
		"a gzip bomb":         {bomb, "content encoding", true},
		"a gzip error": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(400)
			bomb(w, r)
		}, "status 400", true},
		"no content": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, "is empty", false},
		"deep JSON": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"a":`+strings.Repeat("[", 1<<20))
		}, "form of the API", false},
		"a lie about its length": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, whole)
		}, "connection was lost", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := httptest.NewServer(heard(tc.handler))
			defer h.Close()
			c, waits := newClient(t, pinned(h.URL, contract.ModelAPIChat))
			small, err := build(pinned(h.URL, contract.ModelAPIChat), &fixed{}, 12<<20)
			if err != nil {
				t.Fatal(err)
			}
			c.service = small.service // the bound itself would take long to read
			ans, err := ask(t, c)
			wantFault(t, err, tc.wantError)
			if ans.Text != nil || tc.wantFinal != (len(*waits) == 0) {
				t.Errorf("answer %+v, waits %v", ans, *waits)
			}
		})
	}
}

// heard reads the request before it answers: a server that closes a connection
// with something unread in it may reset it, and the answer is lost.
func heard(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h(w, r)
	}
}

// bomb is a small body that would become a large one.
func bomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	_, _ = io.Copy(z, io.LimitReader(zeros{}, 64<<20))
	_ = z.Close()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestCredentialComesBack: an answer that holds it is none, and Delta never sees a
// part of it.
func TestCredentialComesBack(t *testing.T) {
	quoted := strings.ReplaceAll(token, "s", `\\u0073`)
	for name, body := range map[string]string{
		"a document":     `{"choices":[{"message":{"content":"it is ` + token + `"},"finish_reason":"stop"}]}`,
		"escaped":        `{"choices":[{"message":{"content":"it is ` + quoted + `"},"finish_reason":"stop"}]}`,
		"base64":         `{"choices":[{"message":{"content":"` + base64.StdEncoding.EncodeToString([]byte("Bearer "+token)) + `"},"finish_reason":"stop"}]}`,
		"reasoning":      `{"choices":[{"message":{"content":"x","reasoning":"` + token + `"},"finish_reason":"stop"}]}`,
		"a reason":       `{"choices":[{"message":{"content":"x"},"finish_reason":"` + token + `"}]}`,
		"a call":         message(`"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":\"` + token + `\"}"}}]`),
		"an object":      message(`"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":"` + strings.ReplaceAll(token, "s", `\u0073`) + `"}}}]`),
		"a call's name":  message(`"tool_calls":[{"id":"a","function":{"name":"` + token + `","arguments":"{}"}}]`),
		"a call's id":    message(`"function_call":null,"tool_calls":[{"id":"` + token + `","function":{"name":"f","arguments":"{}"}}]`),
		"an older call":  message(`"function_call":{"name":"f","arguments":"` + token + `"}`),
		"pieces of one":  deltas(`{"index":0,"id":"a","function":{"name":"f","arguments":"`+token[:9]+`"}}`, `{"index":0,"function":{"arguments":"`+token[9:]+`"}}`),
		"a stream":       frames(chunk(`"delta":{"content":"it is `+token+`"}`), chunk(stopped)),
		"letters":        frames(append(letters(token), chunk(stopped))...),
		"a broken one":   frames(letters(token)...),
		"an error":       `{"error":{"message":"` + token + `","type":"` + token + `"}}`,
		"an error event": frames(`{"error":{"code":"` + token + `"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newClient(t, pinned(raw(t, "text/event-stream", body), contract.ModelAPIChat))
			var told strings.Builder
			q := question
			q.Delta = func(text, reasoning string) { told.WriteString(text + reasoning) }
			ans, err := c.Ask(t.Context(), q)
			wantFault(t, err, "")
			if strings.Contains(err.Error(), token) || ans.Text != nil || strings.Contains(told.String(), token[:4]) {
				t.Errorf("answer %+v, error %v, told %q", ans, err, told.String())
			}
		})
	}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"message":"`+r.Header.Get("Authorization")+`","code":"`+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+`"}}`)
	}))
	defer h.Close()
	c, _ := newClient(t, pinned(h.URL, contract.ModelAPIChat))
	_, err := ask(t, c)
	wantFault(t, err, "status 401")
}

// letters streams a text letter by letter.
func letters(text string) []string {
	var out []string
	for _, r := range text {
		out = append(out, chunk(`"delta":{"content":"`+string(r)+`"}`))
	}
	return out
}

// TestErrorsSayNothing of what the endpoint said but a code.
func TestErrorsSayNothing(t *testing.T) {
	for name, body := range map[string]string{
		"a message": `{"error":{"message":"the prompt was: hello","type":"invalid_request_error","code":"the prompt was: hello"}}`,
		"text":      `the prompt was: hello`,
	} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, body)
		}))
		c, _ := newClient(t, pinned(h.URL, contract.ModelAPIChat))
		_, err := ask(t, c)
		h.Close()
		wantFault(t, err, "it answered with status 404")
		if strings.Contains(err.Error(), "hello") || strings.Contains(err.Error(), h.URL) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestAddressIsChecked: the operator's policy counts, and nothing is asked twice.
func TestAddressIsChecked(t *testing.T) {
	var reached atomic.Int64
	h := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer h.Close()
	b := pinned(h.URL, contract.ModelAPIChat)
	b.Operator = contract.OperatorPolicy{}
	c, _ := newClient(t, b)
	ans, err := ask(t, c)
	wantFault(t, err, "loopback")
	if reached.Load() != 0 || ans.Attempts != 1 {
		t.Errorf("%d requests arrived, answer %+v", reached.Load(), ans)
	}
}
