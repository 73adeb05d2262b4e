package lint_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/cmd/codeact/lint"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

var update = flag.Bool("update", false, "write the golden files anew")

// findings judges the recipes in a folder, each of which has manifest and program.
func findings(t *testing.T, files map[string]string) []lint.Finding {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		path := filepath.Join("recipes", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := recipefile.Load(t.Context(), "recipes")
	if err != nil {
		t.Fatal(err)
	}
	l, err := lint.New(settings.Default(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return l.Root(t.Context(), root)
}

const head = "version = 1\nname = \"tidy\"\n"

func TestRules(t *testing.T) {
	main := "function main(input) { return 1 }\n"
	tests := map[string]struct {
		manifest, source, schema string
		want                     []string
	}{
		"sound":           {manifest: head, source: main},
		"a declared call": {manifest: head + "tools = [\"a\"]\n", source: "function main() { return tools.call('a', {}) }"},
		"undeclared":      {manifest: head, source: "function main() {\n\treturn tools.call('a', {}) }", want: []string{"main.js:2:9 error ToolNotAllowed"}},
		"never called":    {manifest: head + "tools = [\"a\"]\n", source: main, want: []string{"recipe.toml:3:1 warning ToolNotCalled"}},
		"dynamic":         {manifest: head + "tools = [\"a\"]\n", source: "function main(n) { return tools.call(n, {}) }", want: []string{"main.js:1:27 warning DynamicTool"}},
		"syntax":          {manifest: head, source: "function main( {", want: []string{"main.js:1:17 error SyntaxError"}},
		"forbidden":       {manifest: head, source: "function main() {}\nasync function f() {}", want: []string{"main.js:2:1 error Prohibited"}},
		"no main":         {manifest: head, source: "const main = 1", want: []string{"main.js:1:1 error JavaScriptError"}},
		"too large":       {manifest: head, source: main + "//" + strings.Repeat("x", 65536), want: []string{"main.js:1:1 error SourceTooLarge"}},
		"own limit":       {manifest: head + "[limits]\nsourceBytes = 10\n", source: main, want: []string{"main.js:1:1 error SourceTooLarge"}},
		"limits":          {manifest: head + "[limits]\nchildCalls = 65\n", source: main, want: []string{"recipe.toml:3:2 error LimitsTooHigh"}},
		"beyond the kind": {manifest: head + "[limits]\nchildCalls = 300\n", source: main, want: []string{"recipe.toml:1:1 error Admission", "recipe.toml:3:2 error LimitsTooHigh"}},
		"digest":          {manifest: head + "source_digest = \"sha256:" + strings.Repeat("0", 64) + "\"\n", source: main, want: []string{"recipe.toml:3:1 error DigestMismatch"}},
		"reserved":        {manifest: "version = 1\nname = \"run_code\"\n", source: main, want: []string{"recipe.toml:2:1 error ReservedName"}},
		"calls itself":    {manifest: head + "tools = [\"tidy\"]\n", source: "function main() { return tools.call('tidy', {}) }", want: []string{"recipe.toml:3:1 error Recursive"}},
		"schema":          {manifest: head + "input_schema = \"s.json\"\n", source: main, schema: `{"type": 7}`, want: []string{"s.json:1:1 error SchemaInvalid"}},
		"outside schema":  {manifest: head + "output_schema = \"s.json\"\n", source: main, schema: `{"$ref": "file:///etc/passwd"}`, want: []string{"s.json:1:1 error SchemaInvalid"}},
		"schema no JSON":  {manifest: head + "output_schema = \"s.json\"\n", source: main, schema: `{`, want: []string{"s.json:1:2 error SchemaInvalid"}},
		"unknown key":     {manifest: head + "retries = 1\n", source: main, want: []string{"recipe.toml:3:1 error Manifest"}},
		"everything wrong": {
			manifest: head + "tools = [\"tidy\"]\ninput_schema = \"s.json\"\n", source: "const main = 1", schema: `{"type": 7}`,
			want: []string{"main.js:1:1 error JavaScriptError", "recipe.toml:3:1 error Recursive", "s.json:1:1 error SchemaInvalid"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"a/recipe.toml": tt.manifest, "a/main.js": tt.source}
			if tt.schema != "" {
				files["a/s.json"] = tt.schema
			}
			var got []string
			for _, f := range findings(t, files) {
				if f.Message == "" {
					t.Errorf("%s says nothing", f.Rule)
				}
				got = append(got, fmt.Sprintf("%s:%d:%d %s %s", filepath.Base(f.Path), f.Line, f.Column, f.Level, f.Rule))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecipeAsATool(t *testing.T) {
	found := findings(t, map[string]string{
		"a/recipe.toml": head + "tools = [\"other\"]\n", "a/main.js": "function main() { return tools.call('other', {}) }",
		"b/recipe.toml": "version = 1\nname = \"other\"\n", "b/main.js": "function main() {}",
	})
	if len(found) != 1 || found[0].Rule != "ToolsNotGranted" || found[0].Path != filepath.Join("recipes", "a", "recipe.toml") {
		t.Errorf("findings %+v", found)
	}
}

// many are findings of several kinds, with what a terminal must not be given.
func many(t *testing.T) []lint.Finding {
	return findings(t, map[string]string{
		"a/recipe.toml": head + "tools = [\"a\", \"c\"]\n",
		"a/main.js":     "function main(input) {\n\tconst é = tools.call(\"a\", {});\n  return tools.call(\"\x1b[31mb\u202e\", { é });\n}\n",
		"b/recipe.toml": "version = 1\nname = \"b\"\nsource = \"long name.js\"\n", "b/long name.js": "// " + strings.Repeat("x", 200) + "\nfunction main() { return " + strings.Repeat("1 + ", 40) + "Math.random() + " + strings.Repeat("1 + ", 40) + "1 }\n",
		"c/recipe.toml": "version = 1\nname = \"c\"\nsource = \"../x.js\"\n",
		"d/recipe.toml": "version = 1\nname = \"d\"\n",
	})
}

func TestGolden(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	found := many(t)
	for name, write := range map[string]func(io.Writer, []lint.Finding) error{
		"findings.txt": lint.WriteText, "findings.json": lint.WriteJSON, "findings.sarif": lint.WriteSARIF,
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := write(&b, found); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(here, "testdata", name)
			if *update {
				if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSARIFForCodeScanning holds the file to what code scanning asks for: the
// version, a driver with rules, and results that name a rule, a message, a place
// from 1 in a relative URI, and a fingerprint.
func TestSARIFForCodeScanning(t *testing.T) {
	for name, found := range map[string][]lint.Finding{"some": many(t), "none": nil} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := lint.WriteSARIF(&b, found); err != nil {
				t.Fatal(err)
			}
			checkSARIF(t, b.Bytes(), len(found))
		})
	}
}

type sarif struct {
	Schema  string `json:"$schema"`
	Version string
	Runs    []struct {
		Tool struct {
			Driver struct {
				Name  string
				Rules []struct {
					ID                                      string
					ShortDescription, FullDescription, Help struct{ Text string }
				}
			}
		}
		Results []struct {
			RuleID    string
			RuleIndex int
			Level     string
			Message   struct{ Text string }
			Locations []struct {
				PhysicalLocation struct {
					ArtifactLocation struct{ URI string }
					Region           struct{ StartLine, StartColumn int }
				}
			}
			PartialFingerprints map[string]string
		}
	}
}

func checkSARIF(t *testing.T, text []byte, results int) {
	t.Helper()
	if bytes.Contains(text, []byte(`"results": null`)) || bytes.Contains(text, []byte(`"rules": null`)) {
		t.Error("an empty list is not null")
	}
	var s sarif
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if s.Version != "2.1.0" || !strings.Contains(s.Schema, "sarif-2.1.0") || len(s.Runs) != 1 || s.Runs[0].Tool.Driver.Name == "" {
		t.Fatalf("head %+v", s)
	}
	run := s.Runs[0]
	for _, r := range run.Tool.Driver.Rules {
		if r.ID == "" || r.ShortDescription.Text == "" || r.FullDescription.Text == "" || r.Help.Text == "" {
			t.Errorf("rule %+v", r)
		}
	}
	if len(run.Results) != results {
		t.Errorf("%d results, want %d", len(run.Results), results)
	}
	for _, r := range run.Results {
		if r.RuleIndex >= len(run.Tool.Driver.Rules) || run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID {
			t.Errorf("result %s has the rule %d", r.RuleID, r.RuleIndex)
		}
		if r.Level != "error" && r.Level != "warning" || r.Message.Text == "" || len(r.Locations) != 1 || r.PartialFingerprints["primaryLocationLineHash"] == "" {
			t.Errorf("result %+v", r)
			continue
		}
		at := r.Locations[0].PhysicalLocation
		if u := at.ArtifactLocation.URI; u == "" || strings.ContainsAny(u, " \\") || strings.HasPrefix(u, "/") || strings.Contains(u, "://") {
			t.Errorf("URI %q", u)
		}
		if at.Region.StartLine < 1 || at.Region.StartColumn < 1 {
			t.Errorf("region %+v", at.Region)
		}
	}
}
