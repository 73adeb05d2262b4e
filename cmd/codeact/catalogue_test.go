package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const catalogueManifests = `
apiVersion: codeact.dev/v1alpha1
kind: ToolGrant
metadata: {name: place}
spec:
  tool:
    name: place
    description: Orders <pieces> & more.
    inputSchema: {type: object, required: [sku]}
    outputSchema: {type: integer, description: "OUTPUT"}
  backend: {http: {url: "http://tools.example/place"}}
---
apiVersion: codeact.dev/v1alpha1
kind: ToolGrant
metadata: {name: lookup}
spec:
  tool: {name: lookup, inputSchema: {type: object, description: "INPUT"}}
  backend: {http: {url: "http://tools.example/lookup"}}
---
apiVersion: codeact.dev/v1alpha1
kind: AgentRun
metadata: {name: monday}
spec:
  code:
    source: "function main() { return 1 }"
    tools: [place, lookup]
`

func TestCatalogue(t *testing.T) {
	const lookup = `{"name":"lookup","description":"","parameters":{"description":"INPUT","type":"object"},`
	const place = `{"name":"place","description":"Orders <pieces> & more.","parameters":{"required":["sku"],"type":"object"},`
	long := strings.Repeat("x", 40_000)
	tests := map[string]struct {
		edit       func(string) string
		wantCode   int
		want       string
		wantErrors string
	}{
		"full": {
			want:       `[` + lookup + `"return_schema":{}},` + place + `"return_schema":{"description":"OUTPUT","type":"integer"}}]`,
			wantErrors: "step: full (2 tools, 273 bytes)\n",
		},
		"without return schemas": {
			edit:       swap("OUTPUT", long),
			want:       `[` + lookup + `"return_schema_omitted":true},` + place + `"return_schema_omitted":true}]`,
			wantErrors: "step: withoutReturnSchemas (2 tools, ",
		},
		"empty":                   {edit: swap("INPUT", long), want: "[]", wantErrors: "step: empty (0 tools, 2 bytes)\n"},
		"a tool without a grant":  {edit: swap("[place, lookup]", "[place, lookup, other]"), wantCode: exitFailed, wantErrors: "the run has no catalogue: ToolsNotGranted: other"},
		"a run of a recipe":       {edit: func(s string) string { return s[:strings.Index(s, "  code:")] + "  recipe: {name: x}\n" }, wantCode: exitUsage, wantErrors: "give a run with spec.code"},
		"a manifest without runs": {edit: func(s string) string { return s[:strings.LastIndex(s, "---")] }, wantCode: exitUsage, wantErrors: "AgentRun"},
		"a program with a fault":  {edit: swap("function main() { return 1 }", "function main( {"), wantCode: exitFailed, wantErrors: "SyntaxError"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := catalogueManifests
			if tc.edit != nil {
				in = tc.edit(in)
			}
			var out, errs bytes.Buffer
			code := run(context.Background(), []string{"catalogue", "-f", "-"}, strings.NewReader(in), &out, &errs)
			if code != tc.wantCode {
				t.Errorf("exit code %d, want %d: %s", code, tc.wantCode, errs.String())
			}
			if d := cmp.Diff(tc.want, out.String()); d != "" {
				t.Error(d)
			}
			if !strings.Contains(errs.String(), tc.wantErrors) {
				t.Errorf("errors %q, want %q", errs.String(), tc.wantErrors)
			}
		})
	}
}
