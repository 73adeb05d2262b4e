package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestToolDiffFromOpenAPI: nobody is asked, so that no server is there.
func TestToolDiffFromOpenAPI(t *testing.T) {
	text, err := os.ReadFile(petsDocument)
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"--server", "http://pets.shop/api/v1", "--header", "X-Tenant=acme"}
	_, out, _ := codeact(t, append([]string{"tool", "import", "openapi", petsDocument, "--prefix", "shop_"}, flags...)...)
	all := func(old, with string) func(string) string {
		return func(s string) string { return strings.ReplaceAll(s, old, with) }
	}
	tests := map[string]struct {
		document func(string) string
		grants   func(string) string
		args     []string
		wantCode int
		want     []string
		wantErr  string
	}{
		"the same":           {},
		"opened and renamed": {grants: func(s string) string { return swap("name: shop_createPet", "name: adopt")(openGrant(s)) }},
		"the effect is the reviewer's": {
			grants: swap("effect: Effectful", "effect: Idempotent"),
		},
		"another server": {grants: all("http://pets.shop/api/v1", "https://pets.example/api/v1")},
		"another base": {
			grants: all("http://pets.shop/api/v1", "https://pets.example"), wantCode: exitFailed,
			want: []string{`changed /backend/http/url: "/pets" -> "/api/v1/pets"`},
		},
		"another base by --server": {
			grants: all("http://pets.shop/api/v1", "https://pets.example"), args: []string{"--server", "http://x"},
		},
		"a parameter more": {
			document: swap("- {name: bornAfter,", "- {name: sort, in: query, required: true, schema: {type: string}}\n        - {name: bornAfter,"), wantCode: exitFailed,
			want: []string{`added   /inputSchema/properties/sort: {"type":"string"}`, `added   /inputSchema/required: ["sort"]`, `changed /backend/http/url: "/api/v1/pets?status%5B%5D={status}&limit={limit}&bornAfter={bornAfter}" -> "/api/v1/pets?status%5B%5D={status}&limit={limit}&sort={sort}&bornAfter={bornAfter}"`},
		},
		"a member more": {
			document: swap("secret: {type: string, writeOnly: true}", "chip: {type: integer}"), wantCode: exitFailed,
			want: []string{`added   /inputSchema/properties/chip: {"type":"integer"}`, `removed /inputSchema/properties/secret: {"type":"string"}`, `added   /outputSchema/$defs/NewPet/allOf/1/properties/chip`},
		},
		"a summary": {
			document: swap("summary: Adds a pet.", "summary: Sells a pet."), wantCode: exitFailed,
			want: []string{`ToolGrant shop-createpet (tool shop_createPet) differs from `, `changed /description: "Adds a pet." -> "Sells a pet."`},
		},
		"a header's value": {
			document: swap(`enum: ["2026-01"]`, `enum: ["2027-01"]`), wantCode: exitFailed,
			want: []string{`changed /backend/http/headers/X-Api-Version: "2026-01" -> "2027-01"`},
		},
		"an operation that is gone": {
			document: swap("  /batch:", "  /batches:"), grants: swap("name: shop_addPets", "name: fill"), wantCode: exitFailed,
			want: []string{`removed /tool: "fill"`},
		},
		"another method": {
			document: swap("    put:\n      description: Replaces", "    patch:\n      operationId: put_pets_petId\n      description: Replaces"), grants: all("shop_", ""), wantCode: exitFailed,
			want: []string{`changed /backend/http/method: "PUT" -> "PATCH"`},
		},
		"what cannot be called any more": {
			document: swap("      summary: Adds pets.", "      summary: Adds pets.\n      security: [{key: []}]"), wantCode: exitFailed,
			want: []string{`changed /tool: "shop_addPets" -> "POST /batch cannot be a tool: its security scheme key asks for a key in the header X-Key`},
		},
		"a token": {
			document: swap("      security: []\n", ""), wantCode: exitFailed, want: []string{`added   /auth: "a bearer token"`},
		},
		"as JSON": {
			document: swap("summary: Adds a pet.", "summary: Sells a pet."), args: []string{"shop-createpet", "-o", "json"}, wantCode: exitFailed,
			want: []string{`"changes":[{"path":"/description","change":"changed","was":"Adds a pet.","is":"Sells a pet."}]`},
		},
		"no document":   {document: func(string) string { return "swagger: '2.0'" }, wantCode: exitUsage, wantErr: "Swagger 2.0"},
		"no such grant": {args: []string{"x"}, wantCode: exitUsage, wantErr: "no ToolGrant x"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			document, grants := string(text), out
			if tc.document != nil {
				document = tc.document(document)
			}
			if tc.grants != nil {
				grants = tc.grants(grants)
			}
			args := append([]string{"tool", "diff", "-f", written(t, grants), "--from-openapi", written(t, document)}, tc.args...)
			code, said, errs := codeact(t, args...)
			if code != tc.wantCode || !strings.Contains(errs, tc.wantErr) || len(tc.want) == 0 && said != "" {
				t.Errorf("exit %d, want %d\n%s%s", code, tc.wantCode, said, errs)
			}
			for _, w := range tc.want {
				if !strings.Contains(said, w) {
					t.Errorf("%s\nwant %s", said, w)
				}
			}
		})
	}
}

// TestToolDiffFromOpenAPIShows is what a user sees of a document that has moved on.
func TestToolDiffFromOpenAPIShows(t *testing.T) {
	text, err := os.ReadFile(petsDocument)
	if err != nil {
		t.Fatal(err)
	}
	_, out, _ := codeact(t, "tool", "import", "openapi", petsDocument)
	moved := strings.NewReplacer(
		"maximum: 100", "maximum: 50", "summary: Adds a pet.", "summary: Adds a pet, and pays for it.",
		"secret: {type: string, writeOnly: true}", "chip: {type: string}", "  /batch:", "  /batches:", `enum: ["2026-01"]`, `enum: ["2027-01"]`,
	).Replace(string(text))
	code, said, _ := codeact(t, "tool", "diff", "-f", written(t, openGrant(out)), "--from-openapi", written(t, moved), "createpet", "listpets", "addpets")
	if code != exitFailed {
		t.Errorf("exit %d", code)
	}
	golden(t, "diff-openapi.txt", "", regexp.MustCompile(`from /\S+:`).ReplaceAllString(said, "from pets.yaml:"))
}
