package http

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
)

// local is a bundle whose tools may be on this machine.
var local = contract.Bundle{Operator: contract.OperatorPolicy{AllowLoopback: true}}

func tool(url string, capabilities ...string) contract.PinnedTool {
	return contract.PinnedTool{
		Tool:    contract.Tool{Name: "pay", Capabilities: capabilities},
		Backend: contract.Backend{HTTP: &contract.HTTPBackend{URL: url}},
	}
}

func newBackend(t *testing.T, b contract.Bundle, p contract.PinnedTool, c egress.Credentials) *Backend {
	t.Helper()
	x, err := New(b, p, c)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func request() broker.Request {
	return broker.Request{ID: "u:1:1", Tool: "pay", Arguments: []byte(`{"a":1}`), MaxBytes: 1000}
}

// call makes one call and returns its failure, if any.
func call(t *testing.T, b *Backend) (broker.Answer, *broker.Failure) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ans, err := b.Call(ctx, request())
	var f *broker.Failure
	if err != nil && !errors.As(err, &f) {
		t.Fatalf("error %v is no Failure", err)
	}
	return ans, f
}

func TestAnswers(t *testing.T) {
	const secret = "what the body says"
	const elsewhere = "http://127.0.0.1:1/"
	tests := map[string]struct {
		answer     http.HandlerFunc
		want       string
		wantProof  broker.Proof
		wantReason contract.Reason
		wantFails  bool
	}{
		"a result":             {answer: status(200, `{"b":2}`), want: `{"b":2}`},
		"created":              {answer: status(201, `1`), want: `1`},
		"no content is null":   {answer: status(204, ""), want: `null`},
		"later":                {answer: status(202, secret), wantFails: true, wantReason: contract.ReasonCallDeferred},
		"bad request":          {answer: status(400, secret), wantFails: true, wantProof: broker.Answered},
		"not found":            {answer: status(404, secret), wantFails: true, wantProof: broker.Answered},
		"too many":             {answer: status(429, secret), wantFails: true},
		"time out":             {answer: status(408, secret), wantFails: true},
		"server error":         {answer: status(500, secret), wantFails: true},
		"bad gateway":          {answer: status(502, secret), wantFails: true},
		"unknown status":       {answer: status(999, secret), wantFails: true},
		"moved after the work": {answer: location(301, elsewhere), wantFails: true},
		"redirect":             {answer: location(302, elsewhere), wantFails: true},
		"see other":            {answer: location(303, elsewhere), wantFails: true},
		"not modified":         {answer: status(304, ""), wantFails: true},
		"redirect with body":   {answer: location(307, elsewhere), wantFails: true, wantProof: broker.Answered},
		"permanent redirect":   {answer: location(308, elsewhere), wantFails: true, wantProof: broker.Answered},
		"dropped":              {answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, wantFails: true},
		"broken off":           {answer: brokenOff, wantFails: true},
		"compressed":           {answer: compressed, wantFails: true},
		"header without end":   {answer: wideHeader, wantFails: true},
		"result is not JSON":   {answer: status(200, "<html>"), want: "<html>"}, // the broker's to judge
		"result of no length":  {answer: status(200, ""), want: "null"},
		"reset content":        {answer: status(205, ""), want: "null"},
		"without its length":   {answer: endless(`{"b":2}`), want: `{"b":2}`},
		"perhaps cut":          {answer: endless("12"), wantFails: true},
		"perhaps cut to none":  {answer: endless(""), want: ""}, // the broker's to judge
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(tc.answer)
			defer s.Close()
			ans, f := call(t, newBackend(t, local, tool(s.URL), nil))
			if (f != nil) != tc.wantFails {
				t.Fatalf("failure %v, want one: %v", f, tc.wantFails)
			}
			if f == nil {
				if string(ans.Body) != tc.want || ans.Bytes != int64(len(tc.want)) || ans.Digest != contract.Digest([]byte(tc.want)) {
					t.Errorf("answer %+v, want %q", ans, tc.want)
				}
				return
			}
			if f.Proof != tc.wantProof || f.Reason != tc.wantReason {
				t.Errorf("failure %+v, want proof %d, reason %q", f, tc.wantProof, tc.wantReason)
			}
			if strings.Contains(f.Message, secret) || strings.Contains(f.Message, "127.0.0.1") || !strings.HasPrefix(f.Message, "tool pay: ") {
				t.Errorf("message %q", f.Message)
			}
		})
	}
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func location(code int, to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(code)
	}
}

// endless answers without a length, so that the connection's end is the answer's.
func endless(body string) http.HandlerFunc {
	return raw("HTTP/1.1 200 OK\r\n\r\n" + body)
}

// raw answers with these bytes and closes the connection.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(c, text)
		_ = c.Close()
	}
}

func brokenOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, `{"b":`)
	panic(http.ErrAbortHandler)
}

func compressed(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Accept-Encoding") != "" {
		w.WriteHeader(200) // would be an answer, and so fail the test
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = io.WriteString(w, "x")
}

func wideHeader(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Wide", strings.Repeat("x", 2*64<<10))
	_, _ = io.WriteString(w, "1")
}

func TestRedirectReachesNobody(t *testing.T) {
	var reached atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	s := httptest.NewServer(location(307, other.URL))
	defer s.Close()
	if _, f := call(t, newBackend(t, local, tool(s.URL), nil)); f == nil {
		t.Error("the redirect was an answer")
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("the redirect was followed %d times", n)
	}
}

func TestNeverSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(status(200, "1"))
	defer plain.Close()
	unknown := httptest.NewTLSServer(status(200, "1"))
	unknown.Config.ErrorLog = nil
	defer unknown.Close()
	tests := map[string]string{
		"nobody listens":      closed,
		"no such host":        "http://nowhere.invalid/",
		"no TLS":              "https://" + plain.Listener.Addr().String(),
		"unknown certificate": unknown.URL,
	}
	for name, url := range tests {
		t.Run(name, func(t *testing.T) {
			_, f := call(t, newBackend(t, local, tool(url), nil))
			if f == nil || f.Proof != broker.NeverSent || f.Reason != "" {
				t.Errorf("failure %+v, want NeverSent", f)
			}
		})
	}
}

func TestAnswerIsBounded(t *testing.T) {
	tests := map[string]struct {
		bytes      int
		wantDigest bool
	}{
		"exactly the bound":   {1000, true},
		"one byte more":       {1001, true},
		"much more":           {1 << 20, true},
		"more than is hashed": {maxHashedBytes + 1<<20, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			body := strings.Repeat("7", tc.bytes)
			s := httptest.NewServer(status(200, body))
			defer s.Close()
			ans, f := call(t, newBackend(t, local, tool(s.URL), nil))
			if f != nil {
				t.Fatal(f)
			}
			if len(ans.Body) > 1001 || ans.Bytes <= 1000 != (tc.bytes <= 1000) {
				t.Errorf("%d bytes kept, %d counted", len(ans.Body), ans.Bytes)
			}
			h := sha256.Sum256([]byte(body))
			want := ""
			if tc.wantDigest {
				want = "sha256:" + hex.EncodeToString(h[:])
			}
			if ans.Digest != want {
				t.Errorf("digest %q, want %q", ans.Digest, want)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for name, url := range map[string]string{
		"user and password": "http://a:b@host/", "other scheme": "file:///etc/passwd", "no host": "http:///x", "no URL": "", "nonsense": "http://%zz",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(contract.Bundle{}, tool(url), nil); err == nil {
				t.Errorf("%q was taken", url)
			}
		})
	}
}
