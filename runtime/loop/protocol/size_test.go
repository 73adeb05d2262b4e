package protocol

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// kinds are ten tools as they are declared in practice, small and large.
var kinds = []struct{ name, description, in, out string }{
	{"get", "Returns one record by its id, or null when there is none.", `"id":{"type":"string"}`, `"id":{"type":"string"},"name":{"type":"string"},"status":{"type":"string"}`},
	{"list", "Lists the records that match, the newest first, one page at a time.", `"filter":{"type":"string","description":"words that occur in the name"},"limit":{"type":"integer","minimum":1,"maximum":100},"cursor":{"type":"string"}`, `"items":{"type":"array","items":{"type":"object"}},"next":{"type":"string"}`},
	{"create", "Creates a record and returns its id.", `"name":{"type":"string","maxLength":120},"status":{"enum":["open","held","closed"]},"tags":{"type":"array","items":{"type":"string"}}`, `"id":{"type":"string"}`},
	{"update", "Changes the given fields of a record; the others stay as they are.", `"id":{"type":"string"},"name":{"type":"string"},"status":{"enum":["open","held","closed"]}`, `"changed":{"type":"boolean"}`},
	{"delete", "Deletes a record for good.", `"id":{"type":"string"},"reason":{"type":"string"}`, `"deleted":{"type":"boolean"}`},
	{"count", "Counts the records by a field.", `"by":{"enum":["status","owner","month"]}`, `"counts":{"type":"object","additionalProperties":{"type":"integer"}}`},
	{"notify", "Sends a message to the owner of a record by mail.", `"id":{"type":"string"},"subject":{"type":"string"},"text":{"type":"string"}`, `"messageId":{"type":"string"}`},
	{"history", "Returns who changed a record, and when.", `"id":{"type":"string"},"since":{"type":"string","format":"date-time"}`, `"changes":{"type":"array","items":{"type":"object","properties":{"at":{"type":"string"},"by":{"type":"string"}}}}`},
	{"export", "Writes the records that match to a file and returns where it is.", `"filter":{"type":"string"},"format":{"enum":["csv","json"]}`, `"url":{"type":"string"},"bytes":{"type":"integer"}`},
	{"assign", "Gives a record to another owner.", `"id":{"type":"string"},"owner":{"type":"string"}`, `"previous":{"type":"string"}`},
}

func manyTools(n int) []contract.Tool {
	of := []string{"order", "invoice", "customer", "ticket", "shipment", "contract", "product", "employee", "device", "project"}
	var tools []contract.Tool
	for i := range n {
		k := kinds[i%len(kinds)]
		tools = append(tools, contract.Tool{
			Name: of[i/len(kinds)] + "_" + k.name, Description: k.description,
			InputSchema:  json.RawMessage(`{"type":"object","properties":{` + k.in + `},"additionalProperties":false}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{` + k.out + `}}`),
		})
	}
	return tools
}

// native is the same tools as definitions for native function calling, which have
// no place for what a tool returns.
func native(t *testing.T, tools []contract.Tool) []byte {
	t.Helper()
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	type definition struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	var list []definition
	for _, tool := range tools {
		list = append(list, definition{"function", function{tool.Name, tool.Description, tool.InputSchema}})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The system text stays about as large as native definitions of the same tools,
// but for its own contract and for the return schemas that only it can show.
// `go test -run PromptSize -v` prints the figures; a token is taken for 4 bytes.
func TestPromptSize(t *testing.T) {
	size := func(n int) string { return fmt.Sprintf("%6d bytes, about %5d tokens", n, n/4) }
	for _, n := range []int{10, 100} {
		tools := manyTools(n)
		in := PromptInput{Finalize: contract.FinalizeDirect, Limits: contract.DefaultLimits(), MaxSteps: contract.DefaultMaxSteps}
		in.Catalogue = catalogue(t, contract.MaxCatalogueBytes, tools...)
		text, full := len(Render(in)), catalogue(t, 1<<30, tools...)
		without := catalogue(t, len(full.Text)-1, tools...)
		other := len(native(t, tools))
		t.Logf("%3d tools, step %s", n, in.Catalogue.Step)
		t.Logf("  system text             %s", size(text))
		t.Logf("  of it the contract      %s", size(text-len(in.Catalogue.Text)))
		t.Logf("  catalogue in full       %s", size(len(full.Text)))
		t.Logf("  without return schemas  %s", size(len(without.Text)))
		t.Logf("  native definitions      %s", size(other))
		if len(in.Catalogue.Names) != n {
			t.Errorf("%d of %d tools are shown", len(in.Catalogue.Names), n)
		}
		if len(without.Text) > other {
			t.Errorf("%d tools without return schemas have %d bytes, more than %d of the native definitions", n, len(without.Text), other)
		}
	}
}
