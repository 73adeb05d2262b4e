package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestToolDiff(t *testing.T) {
	url := toolServer(t, "")
	_, out, _ := codeact(t, "tool", "import", "mcp", url+"/mcp")
	tests := map[string]struct {
		edit     func(string) string
		args     []string
		wantCode int
		want     string
	}{
		"the same":            {edit: swap("", ""), wantCode: exitOK},
		"a description":       {edit: swap("Orders an article.", "Orders."), wantCode: exitFailed, want: `+"Orders an article."`},
		"a schema":            {edit: swap("minimum: 1", "minimum: 2"), wantCode: exitFailed, want: `+      "minimum": 1`},
		"a tool that is gone": {edit: swap("tool: order", "tool: pay"), wantCode: exitFailed, want: "no such tool"},
		"as JSON":             {edit: swap("minimum: 1", "minimum: 2"), args: []string{"-o", "json"}, wantCode: exitFailed, want: `"parts":["inputSchema"]`},
		"nobody there":        {edit: swap("", ""), args: []string{"http://127.0.0.1:1/mcp"}, wantCode: exitUsage, want: "could not be opened"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "grants.yaml")
			if err := os.WriteFile(file, []byte(tc.edit(out)), 0o600); err != nil {
				t.Fatal(err)
			}
			code, said, errs := codeact(t, append([]string{"tool", "diff", "-f", file}, tc.args...)...)
			if code != tc.wantCode || !strings.Contains(said, tc.want) {
				t.Errorf("exit %d, want %d\n%s%s", code, tc.wantCode, said, errs)
			}
		})
	}
}
