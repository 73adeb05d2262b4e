package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// written puts text into a file.
func written(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestToolDiff(t *testing.T) {
	url := toolServer(t, "")
	_, out, _ := codeact(t, "tool", "import", "mcp", url+"/mcp")
	tests := map[string]struct {
		edit     func(string) string
		args     []string
		wantCode int
		want     string
		wantErr  string
	}{
		"the same":            {edit: swap("", ""), wantCode: exitOK},
		"a description":       {edit: swap("Orders an article.", "Orders."), wantCode: exitFailed, want: `changed /description: "Orders." -> "Orders an article."`},
		"a schema":            {edit: swap("minimum: 1", "minimum: 2"), wantCode: exitFailed, want: "changed /inputSchema/properties/quantity/minimum: 2 -> 1"},
		"a spelling":          {edit: swap("minimum: 1", "minimum: 1.0"), wantCode: exitOK},
		"a tool that is gone": {edit: swap("tool: order", "tool: pay"), wantCode: exitFailed, want: `removed /tool: "order"`},
		"as JSON":             {edit: swap("minimum: 1", "minimum: 2"), args: []string{"order", "-o", "json"}, wantCode: exitFailed, want: `"parts":["inputSchema"],"changes":[{"path":"/inputSchema/properties/quantity/minimum","change":"changed","was":2,"is":1}]`},
		"another grant":       {edit: swap("minimum: 1", "minimum: 2"), args: []string{"show"}, wantCode: exitOK},
		"no such grant":       {edit: swap("", ""), args: []string{"pay"}, wantCode: exitUsage, wantErr: "hold no ToolGrant pay"},
		"an address":          {edit: swap("", ""), args: []string{"http://127.0.0.1:1/mcp"}, wantCode: exitUsage, wantErr: "give it by --server"},
		"nobody there":        {edit: swap("", ""), args: []string{"--server", "http://127.0.0.1:1/mcp"}, wantCode: exitUsage, want: "could not be opened"},
		"nothing to compare":  {edit: func(string) string { return "" }, wantCode: exitUsage, wantErr: "nothing to compare"},
		"a token for nobody":  {edit: swap("", ""), args: []string{"--token-file", "elsewhere.example=FILE"}, wantCode: exitUsage, wantErr: "no grant is asked for at elsewhere.example"},
		"a token for all":     {edit: swap("", ""), args: []string{"--token-file", "FILE"}, wantCode: exitUsage, wantErr: "as HOST=FILE"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			token := written(t, "open-sesame")
			args := []string{"tool", "diff", "-f", written(t, tc.edit(out))}
			for _, a := range tc.args {
				args = append(args, strings.Replace(a, "FILE", token, 1))
			}
			code, said, errs := codeact(t, args...)
			if code != tc.wantCode || !strings.Contains(said, tc.want) || !strings.Contains(errs, tc.wantErr) {
				t.Errorf("exit %d, want %d\n%s%s", code, tc.wantCode, said, errs)
			}
			if tc.wantCode == exitOK && said != "" {
				t.Errorf("without a difference it says %s", said)
			}
		})
	}
}

// TestToolDiffShows is what a user sees of a server that has moved on.
func TestToolDiffShows(t *testing.T) {
	was := declaring(t,
		&sdk.Tool{Name: "find", Description: "Finds.", InputSchema: json.RawMessage(`{"type":"object","required":["q","in"],"properties":{"q":{"type":"string","maxLength":40},"in":{"enum":["a","b"]},"a/b":{}}}`), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		&sdk.Tool{Name: "put", InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`)},
		&sdk.Tool{Name: "tidy", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &sdk.ToolAnnotations{}},
		&sdk.Tool{Name: "same", InputSchema: json.RawMessage(`{"type":"object"}`)},
	)
	_, out, _ := codeact(t, "tool", "import", "mcp", was)
	yes := true
	is := declaring(t,
		&sdk.Tool{Name: "find", Description: "Finds,\nand deletes.\u202e", InputSchema: json.RawMessage(`{"type":"object","required":["in","q","why"],"properties":{"q":{"type":["string","null"]},"in":{"enum":["a","c"]},"why":{"type":"string"},"a/b":{"title":"x"}}}`), Annotations: &sdk.ToolAnnotations{DestructiveHint: &yes}},
		&sdk.Tool{Name: "put", InputSchema: json.RawMessage(`{"type":"object"}`)},
		&sdk.Tool{Name: "tidy", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &sdk.ToolAnnotations{IdempotentHint: true}},
		&sdk.Tool{Name: "same", InputSchema: json.RawMessage(`{"type":"object"}`)},
	)
	file := written(t, out)
	host := strings.TrimPrefix(is, "http://")
	code, said, _ := codeact(t, "tool", "diff", "-f", file, "--server", is)
	if code != exitFailed {
		t.Errorf("exit %d", code)
	}
	golden(t, "diff-mcp.txt", "", strings.ReplaceAll(said, host, "tools.example"))
	_, said, _ = codeact(t, "tool", "diff", "-f", file, "--server", is, "-o", "json")
	golden(t, "diff-mcp.json", "", strings.ReplaceAll(said, host, "tools.example"))
	code, said, _ = codeact(t, "tool", "diff", "-f", file, "--server", is, "--ignore-effect", "tidy", "same")
	if code != exitOK || said != "" {
		t.Errorf("exit %d: %s", code, said)
	}
}

// guardedServer asks for a token, and keeps what it was shown.
func guardedServer(t *testing.T, want string, shown *[]string) string {
	t.Helper()
	m := sdk.NewServer(&sdk.Implementation{Name: "guarded", Version: "1"}, nil)
	m.AddTool(&sdk.Tool{Name: "find", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return m }, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("Authorization")
		if !slices.Contains(*shown, got) {
			*shown = append(*shown, got)
		}
		if got != want {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

const guardedGrant = `---
apiVersion: codeact.dev/v1alpha1
kind: ToolGrant
metadata: {name: NAME, namespace: shop}
spec:
  tool: {name: NAME, inputSchema: {type: object}, dependencies: {capabilities: [auth]}}
  backend: {mcp: {url: "URL", tool: find}}
  auth: {secretRef: {name: NAME, key: token}}
`

// TestToolDiffTokens: each server is shown its own token, and nobody another's.
func TestToolDiffTokens(t *testing.T) {
	secret := func(name, token string) string {
		return "---\napiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: shop}\nstringData: {token: " + token + "}\n"
	}
	tests := map[string]struct {
		secrets       string
		tokens        func(a, b string) []string
		server        bool // b is asked in the place of both
		wantCode      int
		wantA, wantB  []string
		wantInMessage string
	}{
		"no token":              {wantCode: exitUsage, wantA: []string{""}, wantB: []string{""}, wantInMessage: "status 401"},
		"one token":             {tokens: func(a, _ string) []string { return []string{a + "=token-of-a"} }, wantCode: exitUsage, wantA: []string{"Bearer token-of-a"}, wantB: []string{""}},
		"two tokens":            {tokens: func(a, b string) []string { return []string{a + "=token-of-a", b + "=token-of-b"} }, wantA: []string{"Bearer token-of-a"}, wantB: []string{"Bearer token-of-b"}},
		"Secrets of the files":  {secrets: secret("a", "token-of-a") + secret("b", "token-of-b"), wantA: []string{"Bearer token-of-a"}, wantB: []string{"Bearer token-of-b"}},
		"a token over a Secret": {secrets: secret("a", "wrong") + secret("b", "token-of-b"), tokens: func(a, _ string) []string { return []string{a + "=token-of-a"} }, wantA: []string{"Bearer token-of-a"}, wantB: []string{"Bearer token-of-b"}},
		"another server":        {secrets: secret("a", "token-of-a"), server: true, wantCode: exitUsage, wantB: []string{""}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var gotA, gotB []string
			a, b := guardedServer(t, "Bearer token-of-a", &gotA), guardedServer(t, "Bearer token-of-b", &gotB)
			text := strings.NewReplacer("NAME", "a", "URL", a).Replace(guardedGrant) + strings.NewReplacer("NAME", "b", "URL", b).Replace(guardedGrant) + tc.secrets
			args := []string{"tool", "diff", "-f", written(t, text)}
			if tc.tokens != nil {
				for _, x := range tc.tokens(strings.TrimPrefix(a, "http://"), strings.TrimPrefix(b, "http://")) {
					host, token, _ := strings.Cut(x, "=")
					args = append(args, "--token-file", host+"="+written(t, token))
				}
			}
			if tc.server {
				args = append(args, "--server", b)
			}
			code, out, errs := codeact(t, args...)
			if code != tc.wantCode || !strings.Contains(out, tc.wantInMessage) {
				t.Errorf("exit %d, want %d\n%s%s", code, tc.wantCode, out, errs)
			}
			if diff := cmp.Diff([][]string{tc.wantA, tc.wantB}, [][]string{gotA, gotB}); diff != "" {
				t.Errorf("tokens (-want +got):\n%s", diff)
			}
			if strings.Contains(out+errs, "token-of") {
				t.Errorf("a token is shown: %s%s", out, errs)
			}
		})
	}
}

func TestToolDiffOfCluster(t *testing.T) {
	url := toolServer(t, "")
	_, out, _ := codeact(t, "tool", "import", "mcp", url+"/mcp", "-n", "shop")
	m, err := loadAny(t.Context(), []string{"-"}, strings.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for i := range m.grants {
		objects = append(objects, &m.grants[i])
	}
	api := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
	tests := map[string]struct {
		ns      string
		names   []string
		want    int
		wantErr string
	}{
		"one":               {ns: "shop", names: []string{"order"}, want: 1},
		"all":               {ns: "shop", want: len(objects)},
		"another namespace": {ns: "team", want: 0},
		"no such grant":     {ns: "shop", names: []string{"pay"}, wantErr: `"pay" not found`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := grantsOf(t.Context(), api, tc.ns, tc.names)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %s", err, tc.wantErr)
				}
				return
			}
			if err != nil || len(got.grants) != tc.want {
				t.Fatalf("%d grants, want %d: %v", len(got.grants), tc.want, err)
			}
			a, err := (&diffFlags{}).asker(got)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range a.all(t.Context()) {
				if len(d.Changes) > 0 || d.Error != "" {
					t.Errorf("%+v", d)
				}
			}
		})
	}
}
