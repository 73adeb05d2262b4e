package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
)

const objectSchema = `{"type":"object"}`

// bundle allows the tests' servers, which are on loopback.
func bundle() contract.Bundle {
	return contract.Bundle{
		Run:      contract.RunRef{Namespace: "team-a", Name: "r", UID: "u", Generation: 1},
		Labels:   map[string]string{"tier": "a"},
		Operator: contract.OperatorPolicy{AllowLoopback: true},
	}
}

func pinned(url, name string, change ...func(*contract.PinnedTool)) contract.PinnedTool {
	p := contract.PinnedTool{
		Tool:    contract.Tool{Name: name, InputSchema: json.RawMessage(objectSchema)},
		Backend: contract.Backend{MCP: &contract.MCPBackend{URL: url, Tool: name}},
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func effect(e contract.Effect) func(*contract.PinnedTool) {
	return func(p *contract.PinnedTool) { p.Tool.Effect = e }
}

func capable(c ...string) func(*contract.PinnedTool) {
	return func(p *contract.PinnedTool) { p.Tool.Capabilities = c }
}

func sessionsOf(t *testing.T, b contract.Bundle, creds egress.Credentials) *Sessions {
	t.Helper()
	s := NewSessions(b, creds)
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

func backendOf(t *testing.T, s *Sessions, p contract.PinnedTool) *Backend {
	t.Helper()
	b, err := s.Backend(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// request has a generous bound of its value.
func request(p contract.PinnedTool, args string) broker.Request {
	return broker.Request{ID: "u:1:1", Tool: p.Tool.Name, Arguments: json.RawMessage(args), MaxBytes: 262144}
}

// within bounds one call of a test.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func failureOf(t *testing.T, err error) *broker.Failure {
	t.Helper()
	f, ok := errors.AsType[*broker.Failure](err)
	if !ok {
		t.Fatalf("error %v, want a failure", err)
	}
	return f
}

// eventually waits for what another goroutine does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(5 * time.Second)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 5 s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// honest is a server built on the SDK with one tool for each behaviour.
func honest() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "honest", Version: "1"}, nil)
	add := func(name string, h sdk.ToolHandler) {
		s.AddTool(&sdk.Tool{Name: name, Description: "it is " + name, InputSchema: json.RawMessage(objectSchema)}, h)
	}
	add("echo", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: json.RawMessage(r.Params.Arguments)}, nil
	})
	add("meta", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		h := map[string]string{}
		for k := range r.Extra.Header {
			h[k] = r.Extra.Header.Get(k)
		}
		return &sdk.CallToolResult{StructuredContent: map[string]any{"meta": r.Params.Meta, "header": h}}, nil
	})
	add("slow", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Second):
			return &sdk.CallToolResult{}, nil
		}
	})
	add("steps", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 3 {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3})
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil
	})
	return s
}

// served is a handler of an honest server in one of its modes.
func served(t *testing.T, s *sdk.Server, o *sdk.StreamableHTTPOptions) *httptest.Server {
	t.Helper()
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, o))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}
