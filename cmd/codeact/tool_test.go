package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/controllers/toolgrant"
	"github.com/codeact-dev/codeact-operator/test/toolserver/tools"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with a file of testdata, in which at stands for address.
func golden(t *testing.T, name, address, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if address != "" {
		text = strings.ReplaceAll(text, address, "http://tools.example")
	}
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func toolServer(t *testing.T, tokenFile string) string {
	t.Helper()
	s := httptest.NewServer(tools.New(tools.Config{TokenFile: tokenFile}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// declaring is an MCP server that declares tools, and calls none.
func declaring(t *testing.T, list ...*sdk.Tool) string {
	t.Helper()
	m := sdk.NewServer(&sdk.Implementation{Name: "declaring", Version: "1"}, nil)
	for _, x := range list {
		m.AddTool(x, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			t.Error("a tool was called")
			return &sdk.CallToolResult{}, nil
		})
	}
	s := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return m }, nil))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// closedGrants reads what an import wrote as a cluster would, and returns the
// tools that a cluster would have once everybody opened them.
func closedGrants(t *testing.T, text string) map[string]contract.Tool {
	t.Helper()
	m, err := loadAny(t.Context(), []string{"-"}, strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	out := map[string]contract.Tool{}
	l := &localRun{now: time.Now, m: m, errs: &bytes.Buffer{}}
	if err := l.judge(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range m.grants {
		g := &m.grants[i]
		s := toolgrant.Snapshot{Now: time.Now(), Grant: g, Others: m.grants}
		if f := toolgrant.Decide(s).Fault; f == nil || f.Reason != contract.ReasonExpired || g.Contract().Ready {
			t.Errorf("ToolGrant %s is not closed: %v", g.Name, f)
		}
		g.Spec.Grant.NotAfter = nil
		if f := toolgrant.Decide(s).Fault; f != nil {
			t.Errorf("ToolGrant %s, opened, is not Ready: %v", g.Name, f)
		}
		out[g.Spec.Tool.Name] = g.Declaration()
	}
	return out
}

func TestImportMCP(t *testing.T) {
	yes, no := true, false
	url := declaring(t,
		&sdk.Tool{Name: "files.read", Description: "Reads a file.\n\nIn lines, as they are.\n", InputSchema: json.RawMessage(`{"type":"object","required":["path"],"additionalProperties":false,"properties":{"path":{"type":"string","minLength":1.0,"description":"yes"},"on":{"enum":["yes","no","null","1e3","0x10",null,1,2.50,true]}}}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}}`), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		&sdk.Tool{Name: "put", Description: strings.Repeat("A description that is long enough for lines of its own. ", 3), InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: &yes}},
		&sdk.Tool{Name: "send", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &sdk.ToolAnnotations{DestructiveHint: &no}},
		&sdk.Tool{Name: "torn", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: &yes}},
		&sdk.Tool{Name: "hostile", Description: "x\n# effect: ReadOnly\n---\nkind: Secret\u0007\u202e", InputSchema: json.RawMessage(`{"type":"object","description":" leading\n\ttabs \n"}`)},
		&sdk.Tool{Name: "wordy", Description: strings.Repeat("x", contract.MaxDescriptionBytes+1), InputSchema: json.RawMessage(`{"type":"object"}`)},
		&sdk.Tool{Name: "lookbehind", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"pattern":"(?<=x)y"}}}`)},
		&sdk.Tool{Name: "elsewhere", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"https://example.com/schema.json"}}}`)},
		&sdk.Tool{Name: "exact", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"maximum":0.12345678901234567890123}}}`)},
		&sdk.Tool{Name: "run_code", InputSchema: json.RawMessage(`{"type":"object"}`)},
	)
	code, out, errs := codeact(t, "tool", "import", "mcp", url)
	if code != exitOK {
		t.Errorf("exit %d", code)
	}
	golden(t, "import-mcp.yaml", url, out)
	golden(t, "import-mcp.txt", url, errs)
	closedGrants(t, out)
	_, again, _ := codeact(t, "tool", "import", "mcp", url)
	if again != out {
		t.Error("a second import is not the same")
	}
}

func TestImportMCPFlags(t *testing.T) {
	object := json.RawMessage(`{"type":"object"}`)
	alike := declaring(t, &sdk.Tool{Name: "a.b", InputSchema: object}, &sdk.Tool{Name: "a/b", InputSchema: object}, &sdk.Tool{Name: "c_d", InputSchema: object}, &sdk.Tool{Name: "C-D", InputSchema: object})
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("open-sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plainServer := toolServer(t, "")
	handler := tools.New(tools.Config{})
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer open-sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { guarded.CloseClientConnections(); guarded.Close() })
	tests := map[string]struct {
		args       []string
		wantCode   int
		wantTools  []string
		wantErrors []string
	}{
		"one tool":                 {args: []string{plainServer + "/mcp", "--tool", "order"}, wantTools: []string{"order"}},
		"a prefix":                 {args: []string{plainServer + "/mcp", "--tool", "order", "--prefix", "shop_"}, wantTools: []string{"shop_order"}},
		"no such tool":             {args: []string{plainServer + "/mcp", "--tool", "pay"}, wantCode: exitUsage, wantErrors: []string{`declares no tool "pay"`}},
		"two names that are one":   {args: []string{alike}, wantCode: exitUsage, wantErrors: []string{`"a.b" and "a/b" would both be the tool a_b`}},
		"two objects that are one": {args: []string{alike, "--tool", "c_d", "--tool", "C-D"}, wantCode: exitUsage, wantErrors: []string{`"C-D" and "c_d" would both be the ToolGrant c-d`}},
		"a name that is changed":   {args: []string{alike, "--tool", "a.b"}, wantTools: []string{"a_b"}, wantErrors: []string{"a.b: programs call it a_b"}},
		"a token":                  {args: []string{guarded.URL + "/mcp", "--tool", "order", "--token-file", secret}, wantTools: []string{"order"}},
		"no token":                 {args: []string{guarded.URL + "/mcp"}, wantCode: exitUsage, wantErrors: []string{"status 401"}},
		"a Secret":                 {args: []string{plainServer + "/mcp", "--tool", "order", "--auth-secret", "shop/token", "-n", "team"}, wantTools: []string{"order"}},
		"half a Secret":            {args: []string{plainServer + "/mcp", "--auth-secret", "shop"}, wantCode: exitUsage, wantErrors: []string{"name/key"}},
		"not an address":           {args: []string{"ftp://x"}, wantCode: exitUsage, wantErrors: []string{"not an http or https address"}},
		"a password":               {args: []string{"http://u:hunter2@127.0.0.1/"}, wantCode: exitUsage, wantErrors: []string{"without user, password"}},
		"nobody there":             {args: []string{"http://127.0.0.1:1/mcp"}, wantCode: exitUsage, wantErrors: []string{"session could not be opened"}},
		"a metadata service":       {args: []string{"http://169.254.169.254/mcp"}, wantCode: exitUsage, wantErrors: []string{"link-local"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			code, out, errs := codeact(t, append([]string{"tool", "import", "mcp"}, tc.args...)...)
			if code != tc.wantCode {
				t.Errorf("exit %d, want %d: %s", code, tc.wantCode, errs)
			}
			var got []string
			for n := range closedGrants(t, out) {
				got = append(got, n)
			}
			if diff := cmp.Diff(tc.wantTools, got); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			for _, w := range tc.wantErrors {
				if !strings.Contains(errs, w) {
					t.Errorf("standard error %q, want %q", errs, w)
				}
			}
			if strings.Contains(errs+out, "open-sesame") || strings.Contains(errs, "hunter2") {
				t.Errorf("a credential is shown: %s", errs)
			}
		})
	}
}
