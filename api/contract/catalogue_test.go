package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

func TestCatalogue(t *testing.T) {
	tool := func(name, in, out string) contract.Tool {
		return contract.Tool{Name: name, Description: "a <b> & c\u2028", InputSchema: json.RawMessage(in), OutputSchema: json.RawMessage(out)}
	}
	tests := map[string]struct {
		tools    []contract.Tool
		max      int
		wantStep contract.CatalogueStep
		wantText string
	}{
		"none": {max: 2, wantStep: contract.CatalogueFull, wantText: "[]"},
		"in full, sorted, keys of schemas sorted": {
			tools: []contract.Tool{tool("b", `{"type": "object", "minProperties": 1}`, ""), tool("a", "", `{"type":"null"}`)}, max: 300,
			wantStep: contract.CatalogueFull,
			wantText: `[{"name":"a","description":"a <b> & c\u2028","parameters":{},"return_schema":{"type":"null"}},` +
				`{"name":"b","description":"a <b> & c\u2028","parameters":{"minProperties":1,"type":"object"},"return_schema":{}}]`,
		},
		"without return schemas": {
			tools: []contract.Tool{tool("a", "", `{"description":"`+strings.Repeat("x", 200)+`"}`)}, max: 200,
			wantStep: contract.CatalogueWithoutReturnSchemas,
			wantText: `[{"name":"a","description":"a <b> & c\u2028","parameters":{},"return_schema_omitted":true}]`,
		},
		"empty": {tools: []contract.Tool{tool("a", "", "")}, max: 80, wantStep: contract.CatalogueEmpty, wantText: "[]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := contract.NewCatalogue(tc.tools, tc.max)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.wantText, string(c.Text)); d != "" || c.Step != tc.wantStep {
				t.Errorf("step %s, want %s; %s", c.Step, tc.wantStep, d)
			}
			if (len(c.Names) == 0) != (string(c.Text) == "[]") {
				t.Errorf("names %v", c.Names)
			}
			if d := cmp.Diff(&contract.PinnedCatalogue{Step: tc.wantStep, Digest: contract.Digest([]byte(tc.wantText))}, c.Pinned()); d != "" {
				t.Error(d)
			}
		})
	}
	if _, err := contract.NewCatalogue([]contract.Tool{tool("a", "{", "")}, 100); err == nil {
		t.Error("a schema that is not JSON is shown")
	}
}
