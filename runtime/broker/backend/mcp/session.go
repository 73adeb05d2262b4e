package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
)

// key is what tools must have in common to share a session: whoever is behind
// the URL sees one client, with one credential.
type key struct {
	url  string
	auth bool
	cred contract.Auth
	ca   contract.CABundle
	// namespace is where the CA bundle is.
	namespace string
}

func keyOf(t contract.PinnedTool) key {
	k := key{url: t.Backend.MCP.URL, auth: t.Has(contract.CapabilityAuth)}
	if k.auth {
		k.cred, k.namespace = t.Auth, t.Grant.Namespace
	}
	if t.Backend.CA != nil {
		k.ca, k.namespace = *t.Backend.CA, t.Grant.Namespace
	}
	return k
}

// session is one session with one server. It is its own HTTP transport.
type session struct {
	key    key
	tool   string // whose credential is sent when no call is made
	creds  egress.Credentials
	client *http.Client
	// ctx ends with the session, and every request of it.
	ctx context.Context
	end context.CancelFunc
	sdk *sdk.ClientSession

	dirty atomic.Bool // the server's tools changed since they were listed
	deaf  atomic.Bool // the server can no longer say that they change
	asked atomic.Int32
	news  atomic.Int32

	mu      sync.Mutex
	broken  bool
	listed  bool
	tools   map[string]Declaration
	calls   map[string]*exchange // on their way, by progress token
	secrets []sent               // the credentials that it was sent
}

// maxAsked bounds the server's own requests in a session, and maxNews its news
// of changed tools that the SDK gets to see.
const (
	maxAsked = 32
	maxNews  = 100
	// closeFor bounds the end of a session: the server is told (DELETE), and
	// nobody waits longer for what it says.
	closeFor = 2 * time.Second
)

var errOver = errors.New("the session is over")

// newSession returns a session that is not open yet.
func newSession(k key, tool string, policy contract.OperatorPolicy, creds egress.Credentials) *session {
	s := &session{key: k, tool: tool, creds: creds, calls: map[string]*exchange{}}
	t := egress.Target{Policy: policy}
	if u, err := url.Parse(k.url); err == nil {
		t.HTTPS = u.Scheme == "https"
	}
	if k.ca != (contract.CABundle{}) {
		t.CAFile = contract.CAPath(tool)
	}
	s.client = egress.Client(t)
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// start opens the session under ctx. The exchange holds what the wire showed of
// it when that fails.
func (s *session) start(ctx context.Context) (*exchange, error) {
	x := &exchange{tool: s.tool, limit: maxList}
	ctx, cancel := context.WithCancelCause(x.in(ctx))
	x.giveUp = cancel
	defer cancel(nil)
	client := sdk.NewClient(&sdk.Implementation{Name: egress.UserAgent, Version: "1"}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true}, // it would call the tool again
		// It makes the SDK ask for the news, which admits has read by then.
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {},
	})
	client.AddReceivingMiddleware(refuse)
	type opened struct {
		sdk *sdk.ClientSession
		err error
	}
	done := make(chan opened, 1)
	go func() {
		cs, err := client.Connect(ctx, &sdk.StreamableClientTransport{
			Endpoint:     s.key.url,
			HTTPClient:   &http.Client{Transport: s, CheckRedirect: s.client.CheckRedirect},
			MaxEventSize: -1, // events has bounds of its own
		}, nil)
		done <- opened{cs, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return x, o.err
		}
		s.sdk = o.sdk
	case <-ctx.Done():
		// What still becomes of it ends with s.ctx.
		return x, context.Cause(ctx)
	}
	go func() {
		_ = s.sdk.Wait()
		s.breaks()
	}()
	return x, nil
}

// refuse answers the server's own requests: it may ask whether the client is
// there, and nothing else.
func refuse(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case "sampling/createMessage", "elicitation/create", "roots/list":
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client has no such capability"}
		}
		return next(ctx, method, req)
	}
}

// admits reports whether the SDK gets to see a message, and takes from it what
// the session itself wants to know.
func (s *session) admits(m *message, x *exchange) bool {
	switch {
	case m.Method == nil:
		return x != nil && x.take(m)
	case len(m.ID) > 0:
		return s.asked.Add(1) <= maxAsked
	case *m.Method == "notifications/tools/list_changed":
		s.dirty.Store(true)
		return s.news.Add(1) <= maxNews
	case *m.Method == "notifications/progress":
		s.progress(m.Params)
	}
	return false
}

func (s *session) progress(params json.RawMessage) {
	var p struct {
		ProgressToken json.RawMessage `json:"progressToken"`
		Progress      float64         `json:"progress"`
		Total         float64         `json:"total"`
	}
	var token string
	if json.Unmarshal(params, &p) != nil || json.Unmarshal(p.ProgressToken, &token) != nil {
		return
	}
	s.mu.Lock()
	x := s.calls[token]
	s.mu.Unlock()
	if x != nil {
		x.tell(p.Progress, p.Total)
	}
}

// expect has the progress of a call go to its exchange until the returned
// function is called.
func (s *session) expect(token string, x *exchange) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[token] = x
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.calls, token)
	}
}

func (s *session) breaks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = true
}

func (s *session) usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.broken
}

// close ends the session, within closeFor and ctx.
func (s *session) close(ctx context.Context) {
	defer s.end()
	if s.sdk == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.sdk.Close()
	}()
	t := time.NewTimer(closeFor)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-ctx.Done():
	}
}
