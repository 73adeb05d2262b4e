package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// proxy is the one that the environment of this test binary names: net/http reads
// that once. It opens tunnels, forwards, and knows where the names of tools lead.
type proxy struct {
	listener net.Listener
	mu       sync.Mutex
	routes   map[string]string // host and port to address
	refuse   int               // the status of every answer, if any
	hang     bool
	seen     []string // method and target of each request
	auth     []string // Proxy-Authorization and Authorization of each
}

var theProxy proxy

func TestMain(m *testing.M) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	theProxy.listener = l
	go theProxy.serve()
	for k, v := range map[string]string{
		"HTTP_PROXY": "http://" + l.Addr().String(), "HTTPS_PROXY": "http://me:hunter2@" + l.Addr().String(), "NO_PROXY": "direct.example",
		"REQUEST_METHOD": "", "http_proxy": "", "https_proxy": "", "no_proxy": "",
	} {
		if err := os.Setenv(k, v); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func (p *proxy) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.handle(c)
	}
}

func (p *proxy) handle(c net.Conn) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	p.mu.Lock()
	target := req.RequestURI
	p.seen = append(p.seen, req.Method+" "+target)
	p.auth = append(p.auth, req.Header.Get("Proxy-Authorization")+"|"+req.Header.Get("Authorization"))
	refuse, hang, to := p.refuse, p.hang, p.routes[req.Host]
	p.mu.Unlock()
	switch {
	case hang:
		_, _ = io.Copy(io.Discard, r)
		return
	case refuse != 0:
		_, _ = fmt.Fprintf(c, "HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n", refuse)
		return
	}
	up, err := net.Dial("tcp", to)
	if err != nil {
		_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
		return
	}
	defer func() { _ = up.Close() }()
	if req.Method == http.MethodConnect {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(up, r) }()
	} else if err := req.Write(up); err != nil {
		return
	}
	_, _ = io.Copy(c, up)
}

// set readies the proxy for one test.
func (p *proxy) set(routes map[string]string, refuse int, hang bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routes, p.refuse, p.hang, p.seen, p.auth = routes, refuse, hang, nil, nil
}

func (p *proxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.seen...)
}

var proxied = contract.OperatorPolicy{AllowLoopback: true, ProxyFromEnvironment: true}

func TestProxy(t *testing.T) {
	ours := newAuthority(t, "ours")
	ca := file(t, ours.pem)
	secureURL, secured := secure(t, ours.issue(t, nil), nil)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	defer plain.Close()
	routes := map[string]string{
		"tool.example:443": strings.TrimPrefix(secureURL, "https://"), "tool.example": plain.Listener.Addr().String(),
		"other.example:443": strings.TrimPrefix(secureURL, "https://"),
	}
	tests := map[string]struct {
		policy  contract.OperatorPolicy
		url     string
		refuse  int
		want    string // of the failure's message; empty is none
		proof   broker.Proof
		wantVia []string
	}{
		"a tunnel":                  {proxied, "https://tool.example/", 0, "", 0, []string{"CONNECT tool.example:443"}},
		"forwarded":                 {proxied, "http://tool.example/x?y=1", 0, "", 0, []string{"POST http://tool.example/x?y=1"}},
		"another name than its own": {proxied, "https://other.example/", 0, "certificate or TLS", broker.NeverSent, []string{"CONNECT other.example:443"}},
		"a tunnel that is refused":  {proxied, "https://tool.example/", 403, "its proxy refused the connection with status 403", broker.NeverSent, []string{"CONNECT tool.example:443"}},
		"one that fails":            {proxied, "https://nowhere.example/", 0, "its proxy refused the connection with status 502", broker.NeverSent, []string{"CONNECT nowhere.example:443"}},
		"no proxy for that name":    {proxied, "http://direct.example/", 0, "could not be resolved", broker.NeverSent, nil},
		"not allowed":               {loopback, "http://tool.example/", 0, "could not be resolved", broker.NeverSent, nil},
		"metadata":                  {proxied, "http://169.254.169.254/latest", 0, "its address is a link-local one", broker.NeverSent, nil},
		"metadata by name":          {proxied, "http://metadata.google.internal/", 0, "its address is a cloud metadata one", broker.NeverSent, nil},
		"metadata in a tunnel":      {proxied, "https://[fd00:ec2::254]/", 0, "its address is a cloud metadata one", broker.NeverSent, nil},
		"an obscure address":        {proxied, "http://0xa9fea9fe/", 0, "its address is a disguised one", broker.NeverSent, nil},
		"localhost behind it": {contract.OperatorPolicy{ProxyFromEnvironment: true}, "http://a.localhost/", 0,
			"its address is a loopback one", broker.NeverSent, nil},
		"a proxy that is not allowed": {contract.OperatorPolicy{ProxyFromEnvironment: true}, "https://tool.example/", 0,
			"the address of its proxy is a loopback one", broker.NeverSent, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			theProxy.set(routes, tc.refuse, false)
			c := newClient(Target{Policy: tc.policy, HTTPS: true, CAFile: ca}, noNames)
			f := ask(t, c, tc.url)
			switch {
			case (f != nil) != (tc.want != ""):
				t.Fatalf("failure %+v, want %q", f, tc.want)
			case f != nil && (f.Proof != tc.proof || !strings.Contains(f.Message, tc.want) || strings.Contains(f.Message, "hunter2")):
				t.Errorf("failure %+v, want %q", f, tc.want)
			}
			if diff := cmp.Diff(tc.wantVia, theProxy.requests(), cmpEmpty); diff != "" {
				t.Errorf("requests at the proxy (-want +got):\n%s", diff)
			}
		})
	}
	if n := secured.Load(); n != 1 {
		t.Errorf("%d requests came through tunnels, want 1", n)
	}
}

var cmpEmpty = cmp.Transformer("empty", func(s []string) string { return strings.Join(s, "\n") })

// noNames is a resolver that knows no name.
var noNames = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
	return nil, &net.DNSError{Err: "no name server", IsNotFound: true}
}}

// TestProxySeesNoCredential: a tunnel's proxy gets its own credential and not the
// tool's.
func TestProxySeesNoCredential(t *testing.T) {
	ours := newAuthority(t, "ours")
	url, _ := secure(t, ours.issue(t, nil), nil)
	theProxy.set(map[string]string{"tool.example:443": strings.TrimPrefix(url, "https://")}, 0, false)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://tool.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer s3cret")
	res, err := Client(Target{Policy: proxied, HTTPS: true, CAFile: file(t, ours.pem)}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if diff := cmp.Diff([]string{"Basic bWU6aHVudGVyMg==|"}, theProxy.auth); diff != "" {
		t.Errorf("credentials at the proxy (-want +got):\n%s", diff)
	}
}

// TestProxyThatHangs: a tunnel that never opens has sent nothing; a forwarded
// request may have left.
func TestProxyThatHangs(t *testing.T) {
	for url, want := range map[string]broker.Proof{"https://tool.example/": broker.NeverSent, "http://tool.example/": broker.Unproven} {
		theProxy.set(nil, 0, true)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		ctx, sent := Watch(ctx)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := Client(Target{Policy: proxied, HTTPS: true}).Do(req)
		cancel()
		if err == nil {
			_ = res.Body.Close()
			t.Fatal("an answer")
		}
		if f := Failed(err, sent()); f.Proof != want || f.Final {
			t.Errorf("%s: failure %+v, want proof %d", url, f, want)
		}
		if n := len(theProxy.requests()); n != 1 {
			t.Errorf("%s: %d requests", url, n)
		}
	}
}
