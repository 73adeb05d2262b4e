package contract

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCheckBackend(t *testing.T) {
	const schema = `{"type":"object","required":["id"],"properties":{"id":{},"q":{}},"additionalProperties":false}`
	ca := &CABundle{ConfigMap: "c", Key: "k"}
	tests := map[string]struct {
		schema  string
		backend Backend
		wantErr []string
	}{
		"fixed POST":                      {schema: schema, backend: Backend{HTTP: &HTTPBackend{URL: "http://a/x"}}},
		"no schema":                       {backend: Backend{HTTP: &HTTPBackend{URL: "http://a/x?q={q}", Method: MethodGet}}},
		"boolean schema":                  {schema: "true", backend: Backend{HTTP: &HTTPBackend{URL: "http://a/x", Method: MethodGet}}},
		"GET names all":                   {schema: schema, backend: Backend{HTTP: &HTTPBackend{URL: "http://a/{id}?q={q}", Method: MethodGet}}},
		"PUT names some":                  {schema: schema, backend: Backend{HTTP: &HTTPBackend{URL: "http://a/{id}", Method: MethodPut}}},
		"own headers":                     {schema: schema, backend: Backend{HTTP: &HTTPBackend{URL: "http://a/", Headers: []HTTPHeader{{"Accept", "x"}, {"X-A", "1"}}}}},
		"https with CA":                   {schema: schema, backend: Backend{HTTP: &HTTPBackend{URL: "https://a/x"}, CA: ca}},
		"MCP":                             {backend: Backend{MCP: &MCPBackend{URL: "https://a/mcp"}, CA: ca}},
		"nothing":                         {},
		"malformed":                       {backend: Backend{HTTP: &HTTPBackend{URL: "http://{a}/"}}, wantErr: []string{"spec.backend.http.url", "fixed"}},
		"GET leaves one out":              {schema: schema, backend: Backend{HTTP: &HTTPBackend{URL: "http://a/{id}", Method: MethodGet}}, wantErr: []string{`"q"`, "GET"}},
		"DELETE leaves one out":           {schema: schema, backend: Backend{HTTP: &HTTPBackend{URL: "http://a/?q={q}", Method: MethodDelete}}, wantErr: []string{`"id"`, "DELETE"}},
		"path argument is not required":   {schema: `{"properties":{"id":{}}}`, backend: Backend{HTTP: &HTTPBackend{URL: "http://a/{id}"}}, wantErr: []string{`"id"`, "required"}},
		"path argument without a schema":  {backend: Backend{HTTP: &HTTPBackend{URL: "http://a/{id}"}}, wantErr: []string{`"id"`, "required"}},
		"query argument is not allowed":   {schema: schema, backend: Backend{HTTP: &HTTPBackend{URL: "http://a/?x={nope}"}}, wantErr: []string{`"nope"`, "does not allow"}},
		"unknown method":                  {backend: Backend{HTTP: &HTTPBackend{URL: "http://a/", Method: "HEAD"}}, wantErr: []string{"method"}},
		"CA without TLS":                  {backend: Backend{HTTP: &HTTPBackend{URL: "http://a/"}, CA: ca}, wantErr: []string{"caBundle"}},
		"a header of the runtime":         {backend: Backend{HTTP: &HTTPBackend{URL: "http://a/", Headers: []HTTPHeader{{"AUTHORIZATION", "x"}}}}, wantErr: []string{"Authorization"}},
		"a header of a proxy":             {backend: Backend{HTTP: &HTTPBackend{URL: "http://a/", Headers: []HTTPHeader{{"Proxy-Authorization", "x"}}}}, wantErr: []string{"runtime"}},
		"a header of the run":             {backend: Backend{HTTP: &HTTPBackend{URL: "http://a/", Headers: []HTTPHeader{{"codeact-run-uid", "x"}}}}, wantErr: []string{"runtime"}},
		"one header in two spellings":     {backend: Backend{HTTP: &HTTPBackend{URL: "http://a/", Headers: []HTTPHeader{{"x-a", "1"}, {"X-A", "2"}}}}, wantErr: []string{"X-A", "twice"}},
		"MCP takes no arguments":          {backend: Backend{MCP: &MCPBackend{URL: "http://a/{id}"}}, wantErr: []string{"mcp.url", "no arguments"}},
		"MCP elsewhere":                   {backend: Backend{MCP: &MCPBackend{URL: "unix:///x"}}, wantErr: []string{"mcp.url"}},
		"MCP with a CA without TLS":       {backend: Backend{MCP: &MCPBackend{URL: "http://a/"}, CA: ca}, wantErr: []string{"caBundle"}},
		"an argument with a wild name":    {schema: `{"properties":{"a b\n":{}}}`, backend: Backend{HTTP: &HTTPBackend{URL: "http://a/", Method: MethodGet}}, wantErr: []string{`"a b\n"`}},
		"schema with numbers as required": {schema: `{"required":[1]}`, backend: Backend{HTTP: &HTTPBackend{URL: "http://a/{id}"}}, wantErr: []string{"required"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := CheckBackend(Tool{Name: "x", InputSchema: json.RawMessage(tc.schema)}, tc.backend)
			if (err != nil) != (tc.wantErr != nil) {
				t.Fatalf("error %v, want one with %q", err, tc.wantErr)
			}
			if err == nil {
				return
			}
			if f, ok := AsFault(err); !ok || f.Reason != ReasonBackendInvalid {
				t.Errorf("error %v is no BackendInvalid", err)
			}
			for _, want := range tc.wantErr {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q, want %q in it", err, want)
				}
			}
		})
	}
}
