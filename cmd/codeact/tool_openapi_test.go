package main

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

const petsDocument = "testdata/pets.openapi.yaml"

// TestImportOpenAPI shows what a user sees: the grants, and what is not in them.
func TestImportOpenAPI(t *testing.T) {
	code, out, errs := codeact(t, "tool", "import", "openapi", petsDocument)
	if code != exitOK {
		t.Errorf("exit %d", code)
	}
	golden(t, "import-openapi.yaml", "", out)
	golden(t, "import-openapi.txt", "", errs)
	closedGrants(t, out)
	if _, again, _ := codeact(t, "tool", "import", "openapi", petsDocument); again != out {
		t.Error("a second import is not the same")
	}
	if strings.Contains(out, "staging") {
		t.Error("another server")
	}
}

// openGrant is what a reviewer does to a closed grant.
func openGrant(text string) string {
	text = strings.ReplaceAll(text, `    notAfter: "2000-01-01T00:00:00Z"`+"\n", "")
	return strings.ReplaceAll(text, "    # capabilities: [auth] #", "    capabilities: [auth] #")
}

// seen is a request as a server got it.
type seen struct{ method, target, version, auth, kind, body string }

// pets answers as its document says.
func pets(t *testing.T, got *[]seen) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		*got = append(*got, seen{r.Method, r.URL.RequestURI(), r.Header.Get("X-Api-Version"), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), string(b)})
		w.Header().Set("Content-Type", "application/json")
		switch r.Method + " " + r.URL.Path {
		case "GET /api/v1/pets":
			_, _ = io.WriteString(w, `[{"id":7,"name":"Rex","status":"no","born":null,"mother":{"id":1,"name":"Lea","status":"sold"},"children":[]}]`)
		case "POST /api/v1/pets":
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"id":8,"name":"Ada","status":"available"}`)
		case "PUT /api/v1/pets/8", "POST /api/v1/batch":
			w.WriteHeader(http.StatusNoContent)
		case "GET /api/v1/pets/8/label":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "Ada, 8")
		case "POST /api/v1/search":
			_, _ = io.WriteString(w, `{"Ada":1}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/api/v1"
}

const petsRun = `---
apiVersion: v1
kind: Secret
metadata: {name: pets}
stringData: {token: open-sesame}
---
apiVersion: codeact.dev/v1alpha1
kind: Recipe
metadata: {name: tour}
spec:
  tools: [listPets, createPet, put_pets_petId, getLabel, addPets, search-pets]
  source: |
    function main() {
      const found = tools.call("listPets", {status: ["no", "sold"], limit: 2, bornAfter: "2020-01-31"});
      const made = tools.call("createPet", {name: "Ada", status: "available", born: null, mother: found[0]});
      const same = tools.call("put_pets_petId", {petId: made.id, dryRun: true, query_name: "a&b", name: "Ada", status: "no"});
      const batch = tools.call("addPets", [{name: "Bo", status: "sold"}]);
      const hits = tools.call("search-pets", {text: "a", and: {text: "b"}});
      let refused = "";
      try { tools.call("createPet", {name: "x", status: "gone"}) } catch (e) { refused = e.code || e.name }
      return {label: tools.call("getLabel", {petId: made.id}), same, batch, hits, refused: refused !== ""};
    }
---
apiVersion: codeact.dev/v1alpha1
kind: AgentRun
metadata: {name: monday, namespace: shop}
spec:
  recipe: {name: tour}
  input: {}
`

// TestImportedOperationsAreCalled goes the whole way of an author: import, open,
// run; the server judges.
func TestImportedOperationsAreCalled(t *testing.T) {
	var got []seen
	url := pets(t, &got)
	_, out, errs := codeact(t, "tool", "import", "openapi", petsDocument, "--server", url, "--auth-secret", "pets/token", "--header", "X-Tenant=acme")
	if !strings.Contains(out, "X-Tenant") {
		t.Fatalf("no X-Tenant: %s", errs)
	}
	if code, r, errs := runCommand(t, out+petsRun, "run", "--local", "-f", "-", "-o", "json"); code != exitFailed || r.Reason != contract.ReasonToolsNotGranted {
		t.Errorf("closed grants: exit %d, %+v: %s", code, r, errs)
	}
	code, r, errs := runCommand(t, openGrant(out)+petsRun, "run", "--local", "-f", "-", "-o", "json")
	if want := `{"label":"Ada, 8","same":null,"batch":null,"hits":{"Ada":1},"refused":true}`; code != exitOK || string(r.Value) != want {
		t.Errorf("exit %d, %s, %+v, want %s\n%s", code, r.Value, r, want, errs)
	}
	const token, json = "Bearer open-sesame", "application/json"
	want := []seen{
		{"GET", "/api/v1/pets?status%5B%5D=no&status%5B%5D=sold&limit=2&bornAfter=2020-01-31", "2026-01", token, "", ""},
		{"POST", "/api/v1/pets", "2026-01", token, json, `{"born":null,"mother":{"born":null,"children":[],"id":7,"mother":{"id":1,"name":"Lea","status":"sold"},"name":"Rex","status":"no"},"name":"Ada","status":"available"}`},
		{"PUT", "/api/v1/pets/8?dryRun=true&name=a%26b", "", token, json, `{"name":"Ada","status":"no"}`},
		{"POST", "/api/v1/batch", "", token, json, `[{"name":"Bo","status":"sold"}]`},
		{"POST", "/api/v1/search", "", token, json, `{"and":{"text":"b"},"text":"a"}`},
		{"GET", "/api/v1/pets/8/label", "", "", "", ""},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(seen{})); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

const orderRun = `---
apiVersion: codeact.dev/v1alpha1
kind: AgentRun
metadata: {name: monday, namespace: shop}
spec:
  code:
    tools: [order]
    source: |
      function main() { return tools.call("order", {sku: "nut-m8", quantity: 2}) }
`

// TestImportedMCPToolIsCalled is the same way for a tool of an MCP server.
func TestImportedMCPToolIsCalled(t *testing.T) {
	url := toolServer(t, "")
	_, out, _ := codeact(t, "tool", "import", "mcp", url+"/mcp", "--tool", "order")
	code, r, errs := runCommand(t, openGrant(out)+orderRun, "run", "--local", "-f", "-", "-o", "json")
	if code != exitOK || !strings.Contains(string(r.Value), "order-0001") || len(r.Calls) != 1 || r.Calls[0].Outcome != "Completed" {
		t.Errorf("exit %d, %s, %+v\n%s", code, r.Value, r, errs)
	}
}

func TestImportOpenAPIFlags(t *testing.T) {
	text, err := os.ReadFile(petsDocument)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args      []string
		stdin     string
		wantCode  int
		wantTools []string
		wantOut   string
		wantErr   string
	}{
		"by operationId":        {args: []string{petsDocument, "--operation", "deletePet"}, wantTools: []string{"deletePet"}},
		"by method and path":    {args: []string{petsDocument, "--operation", "PUT /pets/{petId}"}, wantTools: []string{"put_pets_petId"}},
		"two":                   {args: []string{petsDocument, "--operation", "deletePet", "--operation", "getLabel"}, wantTools: []string{"deletePet", "getLabel"}},
		"one that is left out":  {args: []string{petsDocument, "--operation", "deletePet", "--operation", "hasPet"}, wantCode: exitFailed, wantTools: []string{"deletePet"}, wantErr: "left out: the http backend has no method HEAD"},
		"no such operation":     {args: []string{petsDocument, "--operation", "sellPet"}, wantCode: exitUsage, wantErr: `has no operation "sellPet"`},
		"a server":              {args: []string{petsDocument, "--operation", "deletePet", "--server", "https://pets.shop:8443/"}, wantTools: []string{"deletePet"}, wantOut: "url: https://pets.shop:8443/pets/{petId}"},
		"no server":             {args: []string{petsDocument, "--server", "ftp://pets.shop"}, wantCode: exitUsage, wantErr: "--server: pets.shop is not"},
		"a server with a user":  {args: []string{petsDocument, "--server", "https://u:hunter2@pets.shop"}, wantCode: exitUsage, wantErr: "without user"},
		"a prefix":              {args: []string{petsDocument, "--operation", "deletePet", "--prefix", "shop_", "-n", "team"}, wantTools: []string{"shop_deletePet"}, wantOut: "namespace: team"},
		"a Secret":              {args: []string{petsDocument, "--operation", "pets.get", "--auth-secret", "shop/token"}, wantTools: []string{"pets_get"}, wantOut: "      name: shop\n      key: token"},
		"without credential":    {args: []string{petsDocument, "--operation", "runReport", "--no-auth"}, wantTools: []string{"runReport"}},
		"a header":              {args: []string{petsDocument, "--operation", "search-pets", "--header", "x-tenant=a=b"}, wantTools: []string{"search-pets"}, wantOut: "value: a=b"},
		"half a header":         {args: []string{petsDocument, "--header", "X-Tenant"}, wantCode: exitUsage, wantErr: "NAME=VALUE"},
		"a header of two lines": {args: []string{petsDocument, "--operation", "search-pets", "--header", "X-Tenant=a\nb"}, wantCode: exitFailed, wantErr: "the API server would refuse its grant"},
		"the standard input":    {args: []string{"-", "--operation", "deletePet"}, stdin: string(text), wantTools: []string{"deletePet"}},
		"no such file":          {args: []string{"testdata/none.yaml"}, wantCode: exitUsage, wantErr: "none.yaml"},
		"Swagger":               {args: []string{"-"}, stdin: "swagger: '2.0'", wantCode: exitUsage, wantErr: "Swagger 2.0"},
		"not a document":        {args: []string{"-"}, stdin: "x\x1b[2J: [", wantCode: exitUsage, wantErr: "neither YAML nor JSON"},
		"no operations":         {args: []string{"-"}, stdin: "openapi: 3.1.0\npaths: {}", wantCode: exitFailed, wantErr: "nothing was imported"},
		"a path of nothing":     {args: []string{"-"}, stdin: "openapi: 3.1.0\npaths: {/x: {$ref: '#/y'}, /z: 7}", wantCode: exitFailed, wantErr: "/x: the reference \"#/y\" leads to nothing"},
		"no file":               {wantCode: exitUsage, wantErr: "accepts 1 arg"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), append([]string{"tool", "import", "openapi"}, tc.args...), strings.NewReader(tc.stdin), &out, &errs)
			if code != tc.wantCode || !strings.Contains(errs.String(), tc.wantErr) || !strings.Contains(out.String(), tc.wantOut) {
				t.Errorf("exit %d, want %d\n%s%s", code, tc.wantCode, out.String(), errs.String())
			}
			got := slices.Sorted(maps.Keys(closedGrants(t, out.String())))
			if diff := cmp.Diff(tc.wantTools, got); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			if strings.Contains(errs.String(), "hunter2") || strings.Contains(errs.String(), "\x1b") {
				t.Errorf("%q", errs.String())
			}
		})
	}
}
