package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// ask sends one request and returns what its error means; nil is an answer.
func ask(t *testing.T, c *http.Client, url string) *broker.Failure {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ctx, sent := Watch(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		return Failed(err, sent())
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return nil
}

var loopback = contract.OperatorPolicy{AllowLoopback: true}

func TestClientIsClosed(t *testing.T) {
	c := Client(Target{})
	tr := c.Transport.(*door).transport
	if tr.Proxy != nil || c.Jar != nil || !tr.DisableKeepAlives || !tr.DisableCompression || tr.Protocols.HTTP2() {
		t.Error("the client takes a proxy, keeps cookies or connections, decompresses or speaks HTTP/2")
	}
}

func TestAddressIsRefused(t *testing.T) {
	var reached atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer s.Close()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"127.0.0.1": kindLoopback, "localhost": kindLoopback, "[::ffff:127.0.0.1]": kindLoopback, "0.0.0.0": kindUnspecified,
		"[::]": kindUnspecified, "169.254.169.254": kindLinkLocal, "[fd00:ec2::254]": kindMetadata, "[fe80::1]": kindLinkLocal,
		"224.0.0.1": kindMulticast, "255.255.255.255": kindBroadcast, "[64:ff9b::7f00:1]": kindLoopback, "[2002:7f00:1::]": kindLoopback,
	} {
		f := ask(t, Client(Target{}), "http://"+host+":"+port)
		if f == nil || f.Proof != broker.NeverSent || f.Reason != "" || !f.Final || f.Message != "its address is a "+want+" one, which the operator does not allow" {
			t.Errorf("%s: failure %+v", host, f)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
	if f := ask(t, Client(Target{Policy: loopback}), s.URL); f != nil || reached.Load() != 1 {
		t.Errorf("failure %v, though loopback is allowed", f)
	}
}

// names is a name server that answers each question for an IPv4 address with the
// next of its addresses, and stays with the last.
type names struct {
	mu    sync.Mutex
	addrs [][4]byte
	asked int
}

func (n *names) next() [4]byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	a := n.addrs[min(n.asked, len(n.addrs)-1)]
	n.asked++
	return a
}

// answer makes the response to a message with one question (RFC 1035, 4.1).
func (n *names) answer(question []byte) []byte {
	end := 12 // of the header
	for end < len(question) && question[end] != 0 {
		end += 1 + int(question[end])
	}
	end += 5 // the root, type and class
	if end > len(question) {
		return nil
	}
	out := append([]byte{}, question[:end]...)
	copy(out[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}) // a response, no error, one question
	if question[end-3] == 1 {                                 // A
		a := n.next()
		out[7] = 1
		out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, a[0], a[1], a[2], a[3])
	}
	return out
}

// resolver asks a name server of the test's own.
func (n *names) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			k, from, err := p.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = p.WriteTo(n.answer(buf[:k]), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", p.LocalAddr().String())
	}}
}

// TestRebinding: a name that shows a harmless address whenever somebody looks,
// and another one when it is dialled, is refused by what is dialled.
func TestRebinding(t *testing.T) {
	var reached atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer s.Close()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n := &names{addrs: [][4]byte{{203, 0, 113, 7}, {127, 0, 0, 1}}}
	r := n.resolver(t)
	seen, err := r.LookupNetIP(t.Context(), "ip4", "tool.example.")
	if err != nil || len(seen) != 1 || checkAddr(seen[0], contract.OperatorPolicy{}) != nil {
		t.Fatalf("the first look shows %v, %v", seen, err)
	}
	url := "http://tool.example.:" + port
	f := ask(t, newClient(Target{}, r), url)
	if f == nil || f.Proof != broker.NeverSent || !f.Final || !strings.Contains(f.Message, kindLoopback) || reached.Load() != 0 {
		t.Errorf("failure %+v, %d requests arrived", f, reached.Load())
	}
	// The same name does lead there: without the check, it would have arrived.
	if f := ask(t, newClient(Target{Policy: loopback}, r), url); f != nil || reached.Load() != 1 {
		t.Errorf("failure %+v, %d requests arrived", f, reached.Load())
	}
	// Every request looks anew, so a name that turns later is refused, too.
	n = &names{addrs: [][4]byte{{127, 0, 0, 1}, {169, 254, 169, 254}}}
	c := newClient(Target{Policy: loopback}, n.resolver(t))
	if f := ask(t, c, url); f != nil {
		t.Errorf("failure %+v", f)
	}
	if f := ask(t, c, url); f == nil || f.Proof != broker.NeverSent || !strings.Contains(f.Message, kindLinkLocal) {
		t.Errorf("failure %+v, want that of a link-local address", f)
	}
}

func TestErrorsAreRecognised(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := Client(Target{}).Do(req)
	if err == nil {
		_ = res.Body.Close()
	}
	var a *AddressError
	if !errors.As(err, &a) || a.Kind != kindLoopback || a.Proxy {
		t.Errorf("error %v", err)
	}
}
