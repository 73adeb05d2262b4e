package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

const localManifests = `
apiVersion: codeact.dev/v1alpha1
kind: Recipe
metadata: {name: reorder}
spec:
  tools: [lookup]
  inputSchema: {type: object, required: [sku], properties: {sku: {type: string}}}
  source: |
    function main(input) {
      return tools.call("lookup", {sku: input.sku}).quantity;
    }
---
apiVersion: codeact.dev/v1alpha1
kind: ToolGrant
metadata: {name: lookup}
spec:
  tool:
    name: lookup
    effect: ReadOnly
    dependencies: {capabilities: [auth, run.identity]}
    inputSchema: {type: object, required: [sku]}
  backend: {http: {url: "URL"}}
  auth: {secretRef: {name: shop, key: token}}
  grant: {capabilities: [auth, run.identity]}
---
apiVersion: v1
kind: Secret
metadata: {name: shop}
stringData: {token: open-sesame}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: passed-over}
---
apiVersion: codeact.dev/v1alpha1
kind: AgentRun
metadata: {name: monday, namespace: shop}
spec:
  recipe: {name: reorder}
  input: {sku: bolt}
`

// shop is a real tool server; got is the last request that it saw.
func shop(t *testing.T, got *http.Request, body *string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		*got, *body = *r, string(b)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"quantity":3}`)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/lookup"
}

func runCommand(t *testing.T, stdin string, args ...string) (int, execResult, string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(context.Background(), args, strings.NewReader(stdin), &out, &errs)
	var r execResult
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("output is not JSON: %v\n%s", err, out.String())
		}
	}
	return code, r, errs.String()
}

func TestRunLocal(t *testing.T) {
	tests := map[string]struct {
		edit       func(string) string
		args       []string
		wantCode   int
		wantValue  string
		wantReason contract.Reason
		wantLine   int
		wantError  string // on stderr, or in the message
	}{
		"success": {wantCode: exitOK, wantValue: "3"},
		"the input does not match": {
			edit: swap("sku: bolt", "name: bolt"), wantCode: exitFailed, wantReason: contract.ReasonInvalidInput, wantError: "sku",
		},
		"no such recipe": {
			edit: swap("recipe: {name: reorder}", "recipe: {name: other}"), wantCode: exitFailed, wantReason: contract.ReasonRecipeNotFound,
		},
		"a recipe with a fault in its syntax": {
			edit: swap(`return tools`, `return ) tools`), wantCode: exitFailed, wantReason: contract.ReasonRecipeNotReady, wantError: "main.js:2:",
		},
		"code with a fault in its syntax": {
			edit: swap("recipe: {name: reorder}", `code: {source: "\nfunction main( {"}`), wantCode: exitFailed,
			wantReason: contract.ReasonSyntaxError, wantLine: 2,
		},
		"a tool that is not granted": {
			edit: swap("tools: [lookup]", "tools: [lookup, pay]"), wantCode: exitFailed, wantReason: contract.ReasonToolsNotGranted, wantError: "pay",
		},
		"a capability that is not granted": {
			edit: swap("grant: {capabilities: [auth, run.identity]}", "grant: {capabilities: [auth]}"), wantCode: exitFailed,
			wantReason: contract.ReasonToolsNotGranted, wantError: "run.identity",
		},
		"a grant that is not Ready says why": {
			edit: swap("inputSchema: {type: object, required: [sku]}", "inputSchema: {type: thing}"), wantCode: exitFailed,
			wantReason: contract.ReasonToolsNotGranted, wantError: "ToolGrant lookup is not Ready: SchemaInvalid: spec.tool.inputSchema",
		},
		"a Secret that is in no file": {
			edit: swap("metadata: {name: shop}", "metadata: {name: other}"), wantCode: exitFailed, wantReason: contract.ReasonBrokerUnavailable,
			wantError: "tool lookup cannot be called here: no file holds the Secret shop with the key token",
		},
		"a token of a ServiceAccount": {
			edit: swap("secretRef: {name: shop, key: token}", "serviceAccountToken: {audience: shop}"), wantCode: exitFailed,
			wantReason: contract.ReasonBrokerUnavailable, wantError: "the token of a ServiceAccount needs a cluster",
		},
		"a catalogue that is empty": {
			edit: func(s string) string {
				s = swap("inputSchema: {type: object, required: [sku]}", "inputSchema: {description: "+strings.Repeat("x", 40_000)+"}")(s)
				return swap("recipe: {name: reorder}", "code: {source: 'function main() { return 1 }', tools: [lookup]}")(s)
			},
			wantCode: exitOK, wantValue: "1", wantError: "CatalogueEmpty: ",
		},
		"a grant of another namespace": {
			edit: swap("metadata: {name: lookup}", "metadata: {name: lookup, namespace: tools}"), wantCode: exitFailed,
			wantReason: contract.ReasonToolsNotGranted, wantError: "no ToolGrant of this namespace",
		},
		"a grant of another namespace with a secret": {
			edit:     swap("backend:", "allowedNamespaces: {from: All}\n  backend:"),
			wantCode: exitUsage, wantError: "a Secret stays in its namespace",
		},
		"a grant that another namespace offers to this one by its labels": {
			edit: offered("env: dev"), wantCode: exitOK, wantValue: "3",
		},
		"a grant that another namespace offers to others": {
			edit: offered("env: prod"), wantCode: exitFailed, wantReason: contract.ReasonToolsNotGranted, wantError: "no ToolGrant of this namespace",
		},
		"a wrong digest": {
			edit: swap("  tools: [lookup]", "  sourceDigest: sha256:"+strings.Repeat("0", 64)+"\n  tools: [lookup]"), wantCode: exitFailed,
			wantReason: contract.ReasonRecipeNotReady, wantError: "DigestMismatch",
		},
		"no secret": {
			edit: swap("stringData: {token: open-sesame}", "stringData: {}"), wantCode: exitFailed, wantReason: contract.ReasonBrokerUnavailable,
		},
		"a limit": {args: []string{"--limit", "childCalls=0"}, wantCode: exitFailed, wantReason: contract.ReasonCallLimitExceeded},
		"an unknown field": {
			edit: swap("  input: {sku: bolt}", "  inputs: {sku: bolt}"), wantCode: exitUsage, wantError: `unknown field "spec.inputs"`,
		},
		"recipe and code": {
			edit: swap("  input: {sku: bolt}", "  code: {source: x}"), wantCode: exitUsage, wantError: "exactly one of spec.recipe, spec.code and spec.agent",
		},
		"two runs": {
			edit: func(s string) string {
				return s + "---\napiVersion: codeact.dev/v1alpha1\nkind: AgentRun\nmetadata: {name: b}\nspec: {code: {source: x}}\n"
			}, wantCode: exitUsage, wantError: "exactly one AgentRun",
		},
		"no run":   {edit: func(string) string { return "" }, wantCode: exitUsage, wantError: "no AgentRun"},
		"not YAML": {edit: func(string) string { return "a: [" }, wantCode: exitUsage},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var req http.Request
			var body string
			text := strings.ReplaceAll(localManifests, "URL", shop(t, &req, &body))
			if tc.edit != nil {
				text = tc.edit(text)
			}
			code, r, errs := runCommand(t, text, append([]string{"run", "--local", "-f", "-", "-o", "json"}, tc.args...)...)
			if code != tc.wantCode || r.Reason != tc.wantReason {
				t.Fatalf("exit code %d, reason %q (%s)\nstderr: %s", code, r.Reason, r.Message, errs)
			}
			if diff := cmp.Diff(tc.wantValue, string(r.Value)); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
			if tc.wantLine != 0 && r.Line != tc.wantLine {
				t.Errorf("line %d, want %d", r.Line, tc.wantLine)
			}
			if !strings.Contains(errs+r.Message, tc.wantError) {
				t.Errorf("%q does not contain %q", errs+r.Message, tc.wantError)
			}
			if strings.Contains(errs+r.Message, "open-sesame") {
				t.Error("the credential is in a message")
			}
			if tc.wantCode == exitOK && tc.edit == nil {
				checkRequest(t, &req, body)
			}
		})
	}
}

// offered has the grant in another namespace, without its credential, for
// namespaces with the label; the run's own is one of developers.
func offered(label string) func(string) string {
	return func(s string) string {
		for _, x := range [][2]string{
			{"metadata: {name: lookup}", "metadata: {name: lookup, namespace: tools}"},
			{"capabilities: [auth, run.identity]", "capabilities: [run.identity]"},
			{"  auth: {secretRef: {name: shop, key: token}}\n", "  allowedNamespaces: {from: Selector, selector: {matchLabels: {" + label + "}}}\n"},
		} {
			s = swap(x[0], x[1])(s)
		}
		return s + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {env: dev}}\n"
	}
}

// swap replaces text that must be there.
func swap(old, with string) func(string) string {
	return func(s string) string {
		if !strings.Contains(s, old) {
			panic("no " + old)
		}
		return strings.Replace(s, old, with, 1)
	}
}

func checkRequest(t *testing.T, r *http.Request, body string) {
	t.Helper()
	if body != `{"sku":"bolt"}` || r.Method != http.MethodPost {
		t.Errorf("the tool got %s %s", r.Method, body)
	}
	if got := r.Header.Get("Authorization"); got != "Bearer open-sesame" {
		t.Errorf("Authorization has %d bytes", len(got))
	}
	if ns, name := r.Header.Get("Codeact-Run-Namespace"), r.Header.Get("Codeact-Run-Name"); ns != "shop" || name != "monday" {
		t.Errorf("run identity %s/%s", ns, name)
	}
	if key := r.Header.Get("Idempotency-Key"); !strings.HasSuffix(key, ":1:1") {
		t.Errorf("Idempotency-Key %q", key)
	}
}

func TestRunLocalUsage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.yaml")
	if err := os.WriteFile(file, []byte(localManifests), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string][]string{
		"without --local":  {"run", "-f", file},
		"without a file":   {"run", "--local"},
		"no such file":     {"run", "--local", "-f", file + "x"},
		"another format":   {"run", "--local", "-f", file, "-o", "yaml"},
		"an unknown limit": {"run", "--local", "-f", file, "--limit", "x=1"},
		"an argument":      {"run", "--local", "-f", file, "x"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			if code, _, errs := runCommand(t, "", args...); code != exitUsage || errs == "" {
				t.Errorf("exit code %d, stderr %q", code, errs)
			}
		})
	}
}

// TestRunLocalBounds cuts nothing off: half a manifest may be another one.
func TestRunLocalBounds(t *testing.T) {
	text := "# " + strings.Repeat("x", maxManifestBytes) + "\n"
	if code, _, errs := runCommand(t, text, "run", "--local", "-f", "-"); code != exitUsage || !strings.Contains(errs, "more than 16777216 bytes") {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
}
