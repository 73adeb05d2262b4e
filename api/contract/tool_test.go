package contract

import (
	"slices"
	"strings"
	"testing"
)

func TestValidToolName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "A_b-9": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "a b": false, "a.b": false, "é": false, "a\n": false, " a": false, "../a": false,
	} {
		if got := ValidToolName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	for _, n := range ReservedNames() {
		if !ValidToolName(n) || !ReservedName(n) {
			t.Errorf("the reserved name %q is no name", n)
		}
	}
	if ReservedName("search") || ReservedName("Delegate") {
		t.Error("a name that is not reserved is")
	}
	slices.Sort(ReservedNames()) // A caller may do what it likes with its copy.
	if !ReservedName("delegate") {
		t.Error("the list has changed")
	}
}

func TestToolDigest(t *testing.T) {
	digest := func(x Tool) string {
		t.Helper()
		d, err := x.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := Tool{Name: "x", InputSchema: []byte(`{"type":"object"}`), Capabilities: []string{"auth", "run.labels"}}
	same := map[string]Tool{
		"defaults spelled out": {Name: "x", InputSchema: []byte(`{"type":"object"}`), Capabilities: []string{"auth", "run.labels"},
			Kind: KindFunction, Effect: EffectEffectful, CodeAct: CodeActInherit, Profile: ProfileStrict},
		"another order": {Name: "x", InputSchema: []byte(`{"type":"object"}`), Capabilities: []string{"run.labels", "auth"}},
		"other blanks":  {Name: "x", InputSchema: []byte(`{ "type" : "object" }`), Capabilities: []string{"auth", "run.labels"}},
	}
	for name, x := range same {
		if digest(x) != digest(base) {
			t.Errorf("%s: another digest", name)
		}
	}
	other := map[string]func(*Tool){
		"name": func(x *Tool) { x.Name = "y" }, "description": func(x *Tool) { x.Description = "d" },
		"input": func(x *Tool) { x.InputSchema = nil }, "output": func(x *Tool) { x.OutputSchema = []byte("true") },
		"kind": func(x *Tool) { x.Kind = KindOutput }, "effect": func(x *Tool) { x.Effect = EffectReadOnly },
		"codeAct": func(x *Tool) { x.CodeAct = CodeActDeny }, "profile": func(x *Tool) { x.Profile = ProfileLegacy },
		"capabilities": func(x *Tool) { x.Capabilities = nil },
	}
	for name, edit := range other {
		x := base
		edit(&x)
		if digest(x) == digest(base) {
			t.Errorf("%s: the same digest", name)
		}
	}
	if base.Capabilities[0] != "auth" || base.Kind != "" {
		t.Error("the digest changes the tool")
	}
}
