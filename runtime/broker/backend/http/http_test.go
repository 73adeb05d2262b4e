package http

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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
		"too many":             {answer: status(429, secret), wantFails: true, wantProof: broker.Answered},
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
		"result of no length":  {answer: status(200, ""), want: ""},
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

// wire is a server on a bare socket: it keeps its connections open, answers the
// first request of each, and drops the connection in the middle of the second.
type wire struct {
	addr     string
	requests atomic.Int64
}

func newWire(t *testing.T, answers bool) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	w := &wire{addr: l.Addr().String()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.serve(c, answers)
		}
	}()
	return w
}

func (w *wire) serve(c net.Conn, answers bool) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	for first := true; ; first = false {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		w.requests.Add(1)
		if !answers || !first {
			return
		}
		_, _ = fmt.Fprint(c, "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n1")
	}
}

// TestOneRequestPerCall looks at the socket: net/http sends a request with an
// Idempotency-Key a second time when a connection that it kept dies.
func TestOneRequestPerCall(t *testing.T) {
	t.Run("kept connections die", func(t *testing.T) {
		w := newWire(t, true)
		b := newBackend(t, local, tool("http://"+w.addr), nil)
		for range 5 {
			if _, f := call(t, b); f != nil {
				t.Errorf("failure %v", f)
			}
		}
		if n := w.requests.Load(); n != 5 {
			t.Errorf("5 calls were %d requests", n)
		}
	})
	t.Run("no answer", func(t *testing.T) {
		w := newWire(t, false)
		_, f := call(t, newBackend(t, local, tool("http://"+w.addr), nil))
		if f == nil || f.Proof != broker.Unproven {
			t.Errorf("failure %+v, want Unproven", f)
		}
		if n := w.requests.Load(); n != 1 {
			t.Errorf("1 call was %d requests", n)
		}
	})
	t.Run("the trap is there", func(t *testing.T) {
		w := newWire(t, true)
		client := &http.Client{Transport: &http.Transport{}}
		for range 2 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+w.addr, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Idempotency-Key", "k")
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		if n := w.requests.Load(); n != 3 {
			t.Errorf("2 requests of an ordinary client were %d on the wire, this test knows 3", n)
		}
	})
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
