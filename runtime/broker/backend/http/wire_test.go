package http

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// wire is a server on a bare socket: it reads a request, and does what end says
// with the connection. Requests that come over the same connection count, too.
type wire struct {
	addr     string
	requests atomic.Int64
	keys     atomic.Int64 // requests with the Idempotency-Key of request
}

// newWire returns a server whose end gets the number of the request on its
// connection, from 1, and reports whether the connection goes on.
func newWire(t *testing.T, end func(c net.Conn, n int) bool) *wire {
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
			go w.serve(c, end)
		}
	}()
	return w
}

func (w *wire) serve(c net.Conn, end func(net.Conn, int) bool) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	for n := 1; ; n++ {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		w.requests.Add(1)
		if req.Header.Get("Idempotency-Key") == "u:1:1" {
			w.keys.Add(1)
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil || !end(c, n) {
			return
		}
	}
}

func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// keeps answers the first request of a connection, asks to keep it, and drops it
// in the middle of the second.
func keeps(c net.Conn, n int) bool {
	if n > 1 {
		return false
	}
	_, _ = fmt.Fprint(c, "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n1")
	return true
}

func says(text string, then func(net.Conn)) func(net.Conn, int) bool {
	return func(c net.Conn, _ int) bool {
		_, _ = io.WriteString(c, text)
		if then != nil {
			then(c)
		}
		return false
	}
}

// TestOneRequestPerCall looks at the socket: for each method and each way in which
// a connection may end, one call is one request, and its failure claims nothing.
func TestOneRequestPerCall(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nCodeact-Receipt: r-1\r\nContent-Length: 100\r\n"
	ends := map[string]struct {
		end         func(net.Conn, int) bool
		wantFails   bool
		wantReceipt string
	}{
		"closed":                     {says("", nil), true, ""},
		"reset":                      {says("", reset), true, ""},
		"half a status line":         {says("HTTP/1.1 2", nil), true, ""},
		"half a header":              {says(head, nil), true, ""},
		"half a header, then reset":  {says(head, reset), true, ""},
		"half a body":                {says(head+"\r\n{\"a\":", nil), true, "r-1"},
		"half a body, then reset":    {says(head+"\r\n{\"a\":", reset), true, "r-1"},
		"half a chunk":               {says("HTTP/1.1 200 OK\r\nCodeact-Receipt: r-1\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n1", nil), true, "r-1"},
		"no last chunk":              {says("HTTP/1.1 200 OK\r\nCodeact-Receipt: r-1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n1\r\n", nil), true, "r-1"},
		"no HTTP":                    {says("hello\r\n\r\n", nil), true, ""},
		"early hint, then nothing":   {says("HTTP/1.1 103 Early Hints\r\n\r\n", nil), true, ""},
		"continue, then nothing":     {says("HTTP/1.1 100 Continue\r\n\r\n", nil), true, ""},
		"unavailable":                {says("HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nCodeact-Receipt: r-1\r\nContent-Length: 0\r\n\r\n", nil), true, "r-1"},
		"time out":                   {says("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", nil), true, ""},
		"kept connections that die":  {keeps, false, ""},
		"misdirected, so try again?": {says("HTTP/1.1 425 Too Early\r\nContent-Length: 0\r\n\r\n", nil), true, ""},
	}
	for _, method := range []contract.HTTPMethod{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		for name, tc := range ends {
			t.Run(string(method)+" "+name, func(t *testing.T) {
				w := newWire(t, tc.end)
				p := tool("http://" + w.addr + "/x?a={a}")
				p.Backend.HTTP.Method = method
				b := newBackend(t, local, p, nil)
				calls := int64(1)
				if !tc.wantFails {
					calls = 3
				}
				for range calls {
					_, f := call(t, b)
					if (f != nil) != tc.wantFails {
						t.Fatalf("failure %v, want one: %v", f, tc.wantFails)
					}
					if f == nil {
						continue
					}
					if (f.Proof != broker.Unproven) != strings.HasPrefix(name, "misdirected") {
						t.Errorf("proof %d", f.Proof)
					}
					if f.Receipt != tc.wantReceipt {
						t.Errorf("receipt %q, want %q", f.Receipt, tc.wantReceipt)
					}
				}
				if n, keys := w.requests.Load(), w.keys.Load(); n != calls || keys != calls {
					t.Errorf("%d calls were %d requests, %d with their key", calls, n, keys)
				}
			})
		}
	}
}

// TestGivenUpCallIsOneRequest: a call whose time is over while the tool works.
func TestGivenUpCallIsOneRequest(t *testing.T) {
	for _, answer := range []string{"", "HTTP/1.1 200 OK\r\nCodeact-Receipt: r-1\r\nContent-Length: 9\r\n\r\n12"} {
		gone := make(chan struct{})
		w := newWire(t, func(c net.Conn, _ int) bool {
			_, _ = io.WriteString(c, answer)
			_, _ = c.Read(make([]byte, 1)) // until the client leaves
			close(gone)
			return false
		})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := newBackend(t, local, tool("http://"+w.addr), nil).Call(ctx, request())
		cancel()
		var f *broker.Failure
		if !errors.As(err, &f) || f.Proof != broker.Unproven || (answer != "") != (f.Receipt == "r-1") {
			t.Errorf("failure %+v, want Unproven", f)
		}
		select {
		case <-gone:
		case <-time.After(10 * time.Second):
			t.Error("the client stays")
		}
		if n := w.requests.Load(); n != 1 {
			t.Errorf("1 call was %d requests", n)
		}
	}
}

// TestTrapIsThere: net/http sends a request with an Idempotency-Key a second time
// when a connection that it kept dies.
func TestTrapIsThere(t *testing.T) {
	w := newWire(t, keeps)
	client := &http.Client{Transport: &http.Transport{}}
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+w.addr, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "u:1:1")
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
}

// TestRefusedArgumentsSendNothing: what has no place in the request is told to the
// program before a connection is made.
func TestRefusedArgumentsSendNothing(t *testing.T) {
	w := newWire(t, keeps)
	tests := map[string]struct {
		method contract.HTTPMethod
		path   string
		args   string
	}{
		"leftovers of GET":            {"GET", "/x?a={a}", `{"a":1,"b":2}`},
		"leftovers of DELETE":         {"DELETE", "/x", `{"b":2}`},
		"leftovers of a fixed GET":    {"GET", "/x", `{"":2}`},
		"an array for a template":     {"POST", "/x?a={a}", `[1]`},
		"an array for GET":            {"GET", "/x", `[1]`},
		"a path argument that lacks":  {"POST", "/{a}", `{}`},
		"a path argument of dots":     {"GET", "/{a}", `{"a":".."}`},
		"a path argument that climbs": {"PUT", "/{a}", `{"a":"%2e%2e%2f"}`},
		"half a character":            {"PUT", "/x?a={a}", `{"a":"\ud800"}`},
		"an object in the query":      {"PATCH", "/x?a={a}", `{"a":{}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := tool("http://" + w.addr + tc.path)
			p.Backend.HTTP.Method = tc.method
			r := request()
			r.Arguments = json.RawMessage(tc.args)
			_, err := newBackend(t, local, p, nil).Call(t.Context(), r)
			var f *broker.Failure
			if !errors.As(err, &f) || f.Proof != broker.NeverSent || f.Reason != contract.ReasonInvalidArguments || !f.Final {
				t.Errorf("failure %+v, want InvalidArguments and NeverSent", f)
			}
		})
	}
	if n := w.requests.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
