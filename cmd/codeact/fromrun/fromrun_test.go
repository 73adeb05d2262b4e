package fromrun

import (
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/codeact-dev/codeact-operator/cmd/codeact/recipefile"
	"github.com/codeact-dev/codeact-operator/runtime/replay"
)

// TestManifestOfHostileNames has names in a transcript that would be more of the manifest
// than a name.
func TestManifestOfHostileNames(t *testing.T) {
	hostile := "x\"]\nsource = \"other.js\" #\x7f\x00\u2028'''\\"
	p := replay.Program{Source: "function main() {}", Input: []byte(`{}`), Calls: []replay.Call{{Tool: hostile, Result: []byte(`1`)}}}
	p.End = replay.End{Known: true, Value: []byte(`null`)}
	for _, run := range []string{"", "r", "n/", "/r", "n/../r", "n/r\nsource = \"other.js\"", "n/\x1b[2J"} {
		if _, err := Make("a", replay.Record{Run: run}, p); err == nil || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("run %q: %v", run, err)
		}
	}
	d, err := Make("a", replay.Record{Run: "n/r"}, p)
	if err != nil {
		t.Fatal(err)
	}
	files, err := d.Files()
	if err != nil {
		t.Fatal(err)
	}
	if files[0].Path != recipefile.ManifestName {
		t.Fatalf("the first file is %s", files[0].Path)
	}
	var m map[string]any
	if err := toml.Unmarshal([]byte(files[0].Text), &m); err != nil {
		t.Fatalf("%v\n%s", err, files[0].Text)
	}
	if got := m["tools"].([]any); len(got) != 1 || got[0] != hostile || m["source"] != nil {
		t.Errorf("the manifest has the tools %q and the source %v", got, m["source"])
	}
}
