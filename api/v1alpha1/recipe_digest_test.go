package v1alpha1_test

import (
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// TestManifestDigest holds the digest of a recipe without tests to the one that it
// had before recipes could have any, and shows what the digest covers of tests.
func TestManifestDigest(t *testing.T) {
	digest := func(tests ...contract.Fixture) string {
		r := &v1alpha1.Recipe{Spec: v1alpha1.RecipeSpec{Source: "function main() { return 1 }", Tools: []string{"b", "a"}, Tests: tests}}
		r.Name = "one"
		d, err := r.ManifestDigest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	const before = "sha256:bc7aeb491eca56d73a94cce1b621794b16ca5652ff71862878a0c67229ec0def"
	if got := digest(); got != before {
		t.Errorf("without tests: %s, want %s", got, before)
	}
	a := contract.Fixture{Name: "a", Expect: contract.FixtureEnd{Output: []byte(`{"x": 1, "y": 2}`)}}
	b := contract.Fixture{Name: "b", Input: []byte(`null`)}
	one := digest(a, b)
	respelt := a
	respelt.Expect.Output = []byte(`{"y":2,"x":1}`)
	if digest(b, respelt) != one {
		t.Error("the order of tests, or of members, changes the digest")
	}
	for what, tests := range map[string][]contract.Fixture{
		"no tests": nil, "one of two": {a}, "another output": {{Name: "a", Expect: contract.FixtureEnd{Output: []byte(`{"x":1,"y":3}`)}}, b},
		"any output": {{Name: "a"}, b},
	} {
		if digest(tests...) == one {
			t.Errorf("%s: the digest is the same", what)
		}
	}
	if digest(contract.Fixture{Name: "a", Expect: contract.FixtureEnd{Output: []byte(`null`)}}) == digest(contract.Fixture{Name: "a"}) {
		t.Error("null as output is any output")
	}
}
