package tools

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// MCPTool is a tool of the MCP endpoint as its server declares it.
type MCPTool struct {
	Name, Description, InputSchema, OutputSchema string
}

// MCPTools are the tools of the MCP endpoint.
//
//	order  as POST /order, with its id as the receipt
//	show   a picture and its geometry, beside a value
//	fail   a result that says that it is an error
var MCPTools = []MCPTool{
	{
		Name: "order", Description: "Orders an article.",
		InputSchema:  `{"type":"object","required":["sku","quantity"],"properties":{"sku":{"type":"string"},"quantity":{"type":"integer","minimum":1}}}`,
		OutputSchema: `{"type":"object","required":["id"]}`,
	},
	{Name: "show", Description: "Shows the shelf.", InputSchema: `{"type":"object"}`},
	{Name: "fail", Description: "Fails.", InputSchema: `{"type":"object"}`},
}

// pixel is a picture of one transparent pixel.
var pixel = []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;")

// mcp is the handler of the MCP endpoint: every session gets the same server.
func (s *server) mcp(stateless bool) http.Handler {
	m := mcp.NewServer(&mcp.Implementation{Name: "toolserver", Version: "1"}, nil)
	run := map[string]func(*mcp.CallToolRequest, string) *mcp.CallToolResult{"order": s.mcpOrder, "show": mcpShow, "fail": mcpFail}
	for _, t := range MCPTools {
		tool := &mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: json.RawMessage(t.InputSchema)}
		if t.OutputSchema != "" {
			tool.OutputSchema = json.RawMessage(t.OutputSchema)
		}
		m.AddTool(tool, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			key, _ := r.Params.Meta["codeact.dev/idempotency-key"].(string)
			h := &http.Request{Header: r.Extra.Header}
			s.ledger.record(Received{
				Path: "/mcp/" + t.Name, Key: key, Bearer: s.bearer(h),
				Run: h.Header.Get("Codeact-Run-Name"), Arguments: string(r.Params.Arguments),
			})
			return run[t.Name](r, key), nil
		})
	}
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return m }, &mcp.StreamableHTTPOptions{Stateless: stateless})
}

func (s *server) mcpOrder(r *mcp.CallToolRequest, key string) *mcp.CallToolResult {
	var in struct {
		SKU      string
		Quantity int64
	}
	if err := json.Unmarshal(r.Params.Arguments, &in); err != nil || articles[in.SKU].SKU == "" || in.Quantity < 1 || key == "" {
		return mcpError("want the sku of an article, a quantity from 1, and an idempotency key")
	}
	out := s.ledger.order(key, orderOf(in.SKU, in.Quantity))
	return &mcp.CallToolResult{StructuredContent: out, Meta: mcp.Meta{"codeact.dev/receipt": out.ID}}
}

func mcpShow(*mcp.CallToolRequest, string) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Meta: mcp.Meta{"codeact.dev/media": map[string]any{
			"marker": contract.MediaMarker, "geometry": map[string]int{"width": 1, "height": 1},
		}},
		Content:           []mcp.Content{&mcp.TextContent{Text: "the shelf"}, &mcp.ImageContent{MIMEType: "image/gif", Data: pixel}},
		StructuredContent: map[string]bool{"shown": true},
	}
}

func mcpFail(*mcp.CallToolRequest, string) *mcp.CallToolResult {
	return mcpError("it fails, as it was asked to")
}

func mcpError(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}
