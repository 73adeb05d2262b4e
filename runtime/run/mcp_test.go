package run

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/test/toolserver/tools"
)

// TestMCPTool runs a program whose tool is behind an MCP server: both calls are
// in one session, which is ended once the report is out.
func TestMCPTool(t *testing.T) {
	var mu sync.Mutex
	methods := map[string]int{}
	h := tools.New(tools.Config{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		methods[r.Method]++
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	defer func() { s.CloseClientConnections(); s.Close() }()

	const source = `function main() {
		const order = tools.call("pay", {sku: "nut-m8", quantity: 2})
		try { tools.call("pay", {sku: "none", quantity: 1}) } catch (e) { return [order.id, e.message] }
	}`
	p := newPod(t, source, contract.EffectIdempotent, never)
	pay := &p.bundle.Tools[0]
	pay.Tool.InputSchema = json.RawMessage(tools.MCPTools[0].InputSchema)
	var err error
	if pay.Digest, err = pay.Tool.Digest(); err != nil {
		t.Fatal(err)
	}
	pay.Backend = contract.Backend{MCP: &contract.MCPBackend{URL: s.URL + "/mcp", Tool: "order"}}
	p.pin()
	if code := p.run(); code != ExitSucceeded {
		t.Fatalf("exit code %d: %s", code, p.log.String())
	}
	e := p.last()
	want := `["order-0001","tool pay: want the sku of an article, a quantity from 1, and an idempotency key"]`
	if got := e.Output; got != want {
		t.Errorf("output %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{"u:2:1 Completed", "u:2:2 Failed ToolFailed"}, states(e.Calls)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	mu.Lock()
	defer mu.Unlock()
	// discover, initialize, initialized, tools/list and two calls
	if diff := cmp.Diff(map[string]int{"POST": 6, "GET": 1, "DELETE": 1}, methods); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
