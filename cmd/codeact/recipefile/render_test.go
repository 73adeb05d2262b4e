package recipefile

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

func whole() *v1alpha1.Recipe {
	calls := int64(0)
	r := &v1alpha1.Recipe{}
	r.Name, r.Namespace, r.Labels = "look-up", "team-a", map[string]string{"b": "2", "a": "yes"}
	r.Spec = v1alpha1.RecipeSpec{
		ToolName: "look_up", Description: "Looks up.\nThen: tidies.\n", Tools: []string{"b", "a"},
		Source:       "function main(input) {\n\treturn \"é\"; // tab\n\n  return `\n   x`;\n}\n",
		Limits:       &contract.Limits{ChildCalls: &calls, WallClockMs: 5},
		InputSchema:  &apiextensionsv1.JSON{Raw: []byte(`{"type":"object","properties":{"on":{"const":"yes"},"n":{"maximum":9007199254740993}}}`)},
		OutputSchema: &apiextensionsv1.JSON{Raw: []byte(`true`)},
		Tests: []contract.Fixture{
			{
				Name: "yes", Input: []byte(`{"id":9007199254740993}`), Expect: contract.FixtureEnd{Output: []byte(`null`)},
				Calls: []contract.FixtureCall{
					{Tool: "a", Args: []byte(`{"on":"yes"}`), Returns: []byte(`"x\ny"`)},
					{Tool: "b", Fails: &contract.FixtureFailure{Reason: contract.ReasonToolFailed, Message: "gone"}},
				},
			},
			{Name: "refuses: no id", Expect: contract.FixtureEnd{Reason: contract.ReasonInvalidInput}},
		},
	}
	r.Spec.SourceDigest = r.SourceDigest()
	return r
}

func TestRenderGolden(t *testing.T) {
	got, err := Render(whole())
	if err != nil {
		t.Fatal(err)
	}
	const path = "testdata/recipe.yaml"
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRenderTexts writes and reads back what YAML makes difficult.
func TestRenderTexts(t *testing.T) {
	for _, s := range []string{
		"x", "x\n", "x\n\n", "x\n\n\ny", "\nx\n", "\n\n x\n", "  x\n y\n", "\tx\n", " \n x\n", "x \n", "x\n  \n", "x\n \ny\n", "x\t\n",
		"x\r\ny\r\n", "x\ry", "\u2028\n", "a\u0085b\n", "\x7f\n", "---\nx\n", "...\n", "# x\n", "- x\n", "yes", "null", "1e3", "'", "\"\n", "\\\n", "%x\n",
		"{{ x }}\n", "\u00a0x\n", "😀\n", "\n", " ", "a: b", "a: b\n", "!x", "&x", "*x", "@x", "`x`", "|", ">", "\t", "\x00\n", "\x1b[31m\n",
	} {
		r := whole()
		r.Spec.Source, r.Spec.Description = s, s
		r.Spec.SourceDigest = r.SourceDigest()
		text, err := Render(r)
		if err != nil {
			t.Errorf("%q: %v\n%s", s, err, text)
			continue
		}
		var got v1alpha1.Recipe
		if err := yaml.UnmarshalStrict(text, &got); err != nil || got.Spec.Source != s || got.Spec.Description != s {
			t.Errorf("%q: %v, %q", s, err, got.Spec.Source)
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add("function main() {\n\treturn 1;\n}\n")
	f.Add(" \n x\n\n")
	f.Fuzz(func(t *testing.T, s string) {
		r := whole()
		r.Spec.Source = s
		r.Spec.SourceDigest = r.SourceDigest()
		text, err := Render(r)
		if err != nil {
			return // refused, not written wrongly
		}
		var got v1alpha1.Recipe
		if err := yaml.Unmarshal(text, &got); err != nil || got.Spec.Source != s {
			t.Errorf("%q: %v, %q", s, err, got.Spec.Source)
		}
	})
}
