package toolgrant_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/toolgrant"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

func TestDecideBackend(t *testing.T) {
	const declared = `{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"q":{"type":"string"}}}`
	tests := map[string]struct {
		schema, url string
		wantMessage string // empty: accepted
	}{
		"a fixed URL":                    {schema: declared, url: "https://a.example/x"},
		"a template":                     {schema: declared, url: "https://a.example/x/{id}?q={q}"},
		"a template that is malformed":   {schema: declared, url: "https://a.example/x/{id", wantMessage: "spec.backend.http.url"},
		"arguments in the host":          {schema: declared, url: "https://{id}.example/", wantMessage: "fixed"},
		"a path argument that may lack":  {schema: `{"properties":{"id":{}}}`, url: "https://a.example/x/{id}", wantMessage: `"id"`},
		"a path that leaves its own":     {schema: declared, url: "https://a.example/x/../{id}", wantMessage: "of dots"},
		"the schema's fault comes first": {schema: `{"type":7}`, url: "https://a.example/x/{id", wantMessage: "spec.tool.inputSchema"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := builders.MakeGrant("search", "search").Created(now).Schemas(tc.schema, "").Obj()
			g.Spec.Backend.HTTP.URL = tc.url
			s := toolgrant.Snapshot{Now: now, Grant: g}
			p := toolgrant.Decide(s)
			c := meta.FindStatusCondition(toolgrant.Settle(s, p).Conditions, v1alpha1.ConditionReady)
			if tc.wantMessage == "" {
				if p.Verb != toolgrant.VerbAccept || c == nil || c.Reason != "Ready" {
					t.Errorf("plan %v, Ready %+v", p, c)
				}
				return
			}
			want := contract.ReasonBackendInvalid
			if tc.wantMessage == "spec.tool.inputSchema" {
				want = contract.ReasonSchemaInvalid
			}
			if p.Verb != toolgrant.VerbRefuse || c == nil || c.Reason != string(want) || !strings.Contains(c.Message, tc.wantMessage) {
				t.Errorf("plan %v, Ready %+v, want %s with %q", p, c, want, tc.wantMessage)
			}
		})
	}
}
