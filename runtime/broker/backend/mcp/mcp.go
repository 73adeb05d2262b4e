// Package mcp reaches tools of MCP servers over streamable HTTP. The SDK keeps the
// session; every HTTP request of it passes a transport of this package, which
// sends the call of a tool at most once, bounds what comes back, and keeps what
// is proven about it.
package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
)

// The keys of _meta: of requests, and of results.
const (
	MetaIdempotencyKey = "codeact.dev/idempotency-key"
	// MetaRun holds the run's namespace, name and uid, for a tool with the
	// capability run.identity.
	MetaRun = "codeact.dev/run"
	// MetaRunLabels holds the run's labels, for a tool with run.labels.
	MetaRunLabels = "codeact.dev/run-labels"
	// MetaReceipt of a result is a string: proof of the effect.
	MetaReceipt = "codeact.dev/receipt"
	// MetaMedia of a result is an object with the marker and the geometry of the
	// pictures in its content.
	MetaMedia = "codeact.dev/media"
)

// Sessions are the sessions of one run: one for each server, credential and CA
// bundle. They are opened by the first call that needs them.
type Sessions struct {
	bundle contract.Bundle
	creds  egress.Credentials

	mu    sync.Mutex
	slots map[key]*slot
	over  bool
	// closing are sessions that were given up while the run goes on.
	closing sync.WaitGroup
}

// slot is the place of one session: its turn is held while the session opens or
// lists its tools.
type slot struct {
	all     *Sessions
	key     key
	tool    string
	turn    chan struct{}
	session *session
}

// NewSessions returns the sessions of a run, none of them open.
func NewSessions(b contract.Bundle, creds egress.Credentials) *Sessions {
	return &Sessions{bundle: b, creds: creds, slots: map[key]*slot{}}
}

// Backend reaches one tool of one MCP server.
type Backend struct {
	slot    *slot
	tool    contract.PinnedTool
	output  *contract.Schema
	headers http.Header    // of projected capabilities
	meta    map[string]any // as above
}

// Backend returns the backend of a pinned tool with an MCP backend. A URL that
// is not plain http or https, or that carries a credential, is an error.
func (s *Sessions) Backend(t contract.PinnedTool) (*Backend, error) {
	if t.Backend.MCP == nil {
		return nil, fmt.Errorf("tool %s has no MCP backend", t.Tool.Name)
	}
	u, err := url.Parse(t.Backend.MCP.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the URL of tool %s is not an http or https address", t.Tool.Name)
	}
	if u.User != nil || u.Fragment != "" {
		return nil, fmt.Errorf("the URL of tool %s carries a user, password or fragment", t.Tool.Name)
	}
	b := &Backend{tool: t, meta: projected(s.bundle, t)}
	if b.headers, err = egress.Headers(s.bundle, t); err != nil {
		return nil, err
	}
	if b.output, err = contract.CompileSchema(t.Tool.OutputSchema); err != nil {
		return nil, fmt.Errorf("output schema of tool %s: %w", t.Tool.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := keyOf(t)
	if b.slot = s.slots[k]; b.slot == nil {
		b.slot = &slot{all: s, key: k, tool: t.Tool.Name, turn: make(chan struct{}, 1)}
		s.slots[k] = b.slot
	}
	return b, nil
}

// projected is the part of a call's _meta that the tool's capabilities give it.
func projected(b contract.Bundle, t contract.PinnedTool) map[string]any {
	meta := map[string]any{}
	if t.Has(contract.CapabilityRunIdentity) {
		meta[MetaRun] = map[string]string{"namespace": b.Run.Namespace, "name": b.Run.Name, "uid": b.Run.UID}
	}
	if t.Has(contract.CapabilityRunLabels) {
		labels := b.Labels
		if labels == nil {
			labels = map[string]string{}
		}
		meta[MetaRunLabels] = labels
	}
	return meta
}

// Close ends every session, and tells their servers so. It takes no longer than
// two seconds, or ctx; afterwards every call fails before anything is sent.
func (s *Sessions) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeFor)
	defer cancel()
	s.mu.Lock()
	s.over = true
	for _, sl := range s.slots {
		s.closing.Go(func() { sl.shut(ctx) })
	}
	s.mu.Unlock()
	s.closing.Wait()
}

// later closes a session beside the run. Behind its end nobody waits for that.
func (s *Sessions) later(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		go x.close(context.Background())
		return
	}
	s.closing.Go(func() { x.close(context.Background()) })
}

func (sl *slot) shut(ctx context.Context) {
	select {
	case sl.turn <- struct{}{}:
		defer func() { <-sl.turn }()
	case <-ctx.Done():
		return
	}
	if sl.session != nil {
		sl.session.close(ctx)
		sl.session = nil
	}
}

// Call implements broker.Backend. The call of a tool is sent at most once.
func (b *Backend) Call(ctx context.Context, r broker.Request) (broker.Answer, error) {
	ans, f := b.call(ctx, r)
	if f != nil {
		f.Message = "tool " + r.Tool + ": " + f.Message
		return ans, f
	}
	return ans, nil
}

func (b *Backend) call(ctx context.Context, r broker.Request) (broker.Answer, *broker.Failure) {
	if a := bytes.TrimSpace(r.Arguments); len(a) == 0 || a[0] != '{' {
		return broker.Answer{}, &broker.Failure{Proof: broker.NeverSent, Final: true, Message: "an MCP tool takes its arguments as one JSON object"}
	}
	s, tools, f := b.slot.ready(ctx)
	if f != nil {
		return broker.Answer{}, f
	}
	declared, there := tools[b.tool.Backend.MCP.Tool]
	differs := drift(b.tool.Tool, declared, there)
	if differs != "" && !b.slot.all.bundle.Operator.WarnOnDrift {
		return broker.Answer{}, &broker.Failure{Proof: broker.NeverSent, Reason: contract.ReasonDeclarationDrift, Final: true, Message: differs}
	}
	x, err := b.send(ctx, s, r)
	ans, f := b.outcome(s, x, err, r)
	ans.Drifted = differs != ""
	if f != nil && f.Proof != broker.NeverSent && ctx.Err() == nil && x.answer == nil {
		b.slot.drop(s) // it may be gone; the next call opens another one
	}
	return ans, f
}

// send sends the call and waits for what comes of it.
func (b *Backend) send(ctx context.Context, s *session, r broker.Request) (*exchange, error) {
	x := &exchange{
		method: methodCall, tool: b.tool.Tool.Name, header: b.headers.Clone(), limit: responseLimit(r.MaxBytes),
		resume: b.tool.Tool.Defaulted().Effect != contract.EffectEffectful, progress: r.Progress,
	}
	x.header.Set(headerIdempotency, r.ID)
	egress.TraceContext(ctx, b.tool, x.header)
	p := &sdk.CallToolParams{Meta: sdk.Meta{MetaIdempotencyKey: r.ID}, Name: b.tool.Backend.MCP.Tool, Arguments: json.RawMessage(r.Arguments)}
	maps.Copy(p.Meta, b.meta)
	if r.Progress != nil {
		p.SetProgressToken(r.ID)
		defer s.expect(r.ID, x)()
	}
	ctx, cancel := context.WithCancelCause(x.in(ctx))
	x.giveUp = cancel
	defer cancel(nil)
	defer x.over()
	_, err := s.sdk.CallTool(ctx, p)
	return x, err
}

// responseLimit is the bound of one HTTP response, in bytes: a value, the text
// that repeats it with its quotes escaped, the pictures, and what is around them.
func responseLimit(value int64) int64 { return 4*value + contract.MaxMediaBytes + 256<<10 }

// ready returns the open session and the tools of its server. Nothing was called
// when it fails.
func (sl *slot) ready(ctx context.Context) (*session, map[string]Declaration, *broker.Failure) {
	select {
	case sl.turn <- struct{}{}:
		defer func() { <-sl.turn }()
	case <-ctx.Done():
		return nil, nil, &broker.Failure{Proof: broker.NeverSent, Message: "its session did not open in time"}
	}
	if sl.session != nil && !sl.session.usable() {
		sl.giveUp()
	}
	fresh := sl.session == nil
	for {
		f := sl.open(ctx)
		if f == nil {
			f = sl.session.declared(ctx)
		}
		if f == nil {
			return sl.session, sl.session.tools, nil
		}
		sl.giveUp()
		if fresh || ctx.Err() != nil {
			return nil, nil, f
		}
		fresh = true // the server may have forgotten a session that it knew once
	}
}

func (sl *slot) open(ctx context.Context) *broker.Failure {
	if sl.session != nil {
		return nil
	}
	sl.all.mu.Lock()
	over := sl.all.over
	sl.all.mu.Unlock()
	if over {
		return &broker.Failure{Proof: broker.NeverSent, Reason: contract.ReasonBrokerUnavailable, Message: "the run is over"}
	}
	s := newSession(sl.key, sl.tool, sl.all.bundle.Operator, sl.all.creds)
	x, err := s.start(ctx)
	if err != nil {
		s.end()
		return unopened("its session could not be opened", x, err)
	}
	sl.session = s
	return nil
}

// declared reads the server's tools if that has not been done, or if they may
// have changed since.
func (s *session) declared(ctx context.Context) *broker.Failure {
	changed := s.dirty.Swap(false)
	if s.listed && !changed && !s.deaf.Load() {
		return nil
	}
	tools, x, err := s.list(ctx)
	if err != nil {
		s.dirty.Store(true)
		return unopened("its declaration could not be compared", x, err)
	}
	s.listed, s.tools = true, tools
	return nil
}

// drop gives the session up, unless another one has taken its place.
func (sl *slot) drop(s *session) {
	s.breaks()
	select {
	case sl.turn <- struct{}{}:
		defer func() { <-sl.turn }()
	default:
		return // who has the turn looks at usable
	}
	if sl.session == s {
		sl.giveUp()
	}
}

// giveUp closes the session beside the run. The turn is held.
func (sl *slot) giveUp() {
	s := sl.session
	if s == nil {
		return
	}
	sl.session = nil
	sl.all.later(s)
}
