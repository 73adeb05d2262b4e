package main

import (
	"io"
	"net/http"
	"net/http/httptest"
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
