package protocol

import (
	"encoding/json"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/test/toolset"
)

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
// Figures in tokens are those of `make prompt-size`.
func TestPromptSize(t *testing.T) {
	for _, n := range []int{10, 100} {
		tools := toolset.Declare(n)
		in := PromptInput{Finalize: contract.FinalizeDirect, Limits: contract.DefaultLimits(), MaxSteps: contract.DefaultMaxSteps}
		in.Catalogue = catalogue(t, contract.MaxCatalogueBytes, tools...)
		full := catalogue(t, 1<<30, tools...)
		without := catalogue(t, len(full.Text)-1, tools...)
		other := len(native(t, tools))
		if len(in.Catalogue.Names) != n {
			t.Errorf("%d of %d tools are shown", len(in.Catalogue.Names), n)
		}
		if len(without.Text) > other {
			t.Errorf("%d tools without return schemas have %d bytes, more than %d of the native definitions", n, len(without.Text), other)
		}
	}
}
