package tools

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/mcp"
)

// TestMCP calls the tools of the MCP endpoint as the runtime does.
func TestMCP(t *testing.T) {
	for _, path := range []string{"/mcp", "/mcp-stateless"} {
		t.Run(path, func(t *testing.T) {
			s := httptest.NewServer(New(Config{}))
			defer func() { s.CloseClientConnections(); s.Close() }()
			all := mcp.NewSessions(contract.Bundle{Operator: contract.OperatorPolicy{AllowLoopback: true}}, nil)
			defer all.Close(context.Background())
			answers := map[string]string{}
			for _, d := range MCPTools {
				p := contract.PinnedTool{
					Tool:    contract.Tool{Name: d.Name, Description: d.Description, InputSchema: json.RawMessage(d.InputSchema), OutputSchema: json.RawMessage(d.OutputSchema)},
					Backend: contract.Backend{MCP: &contract.MCPBackend{URL: s.URL + path, Tool: d.Name}},
				}
				b, err := all.Backend(p)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				ans, err := b.Call(ctx, broker.Request{ID: "u:1:1", Tool: d.Name, Arguments: json.RawMessage(`{"sku":"nut-m8","quantity":2}`), MaxBytes: 1000})
				cancel()
				answers[d.Name] = string(ans.Body) + " " + ans.Receipt
				if err != nil {
					answers[d.Name] = err.Error()
				}
				if d.Name == "show" && (ans.Media == nil || len(ans.Media.Pictures) != 1 || ans.Media.Geometry.Width != 1) {
					t.Errorf("media %+v", ans.Media)
				}
			}
			want := map[string]string{
				"order": `{"id":"order-0001","sku":"nut-m8","quantity":2,"requests":1} order-0001`,
				"show":  `{"shown":true} `,
				"fail":  "tool fail: it fails, as it was asked to",
			}
			if diff := cmp.Diff(want, answers); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}
