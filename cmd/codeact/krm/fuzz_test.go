package krm

import (
	"testing"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// FuzzList puts a Recipe into any list: there is an error, or the output is a list
// that means the same when it is written once more.
func FuzzList(f *testing.F) {
	f.Add([]byte(head + "items: []\n"))
	f.Add([]byte(head + "items:\n# above\n- {apiVersion: codeact.dev/v1alpha1, kind: Recipe, metadata: {name: tidy, labels: {a: b}}}\n- v: |2\n    x\n"))
	f.Add([]byte(head + "items: [&a {b: *a}, !!binary aGk=, ? {x: y} : z]\nresults: [x]\n"))
	f.Add([]byte("? a\n: b\n<<: *c\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := parseList(text)
		if err != nil {
			return
		}
		r := &v1alpha1.Recipe{Spec: v1alpha1.RecipeSpec{Source: " function main() {}\n"}}
		r.Name, r.Labels = "tidy", map[string]string{"a": "1"}
		if bad := l.merge([]*v1alpha1.Recipe{r}); bad != nil {
			return
		}
		out, err := l.render(nil)
		if err != nil {
			return
		}
		again, err := parseList(out)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		twice, err := again.render(nil)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		third, err := parseList(twice)
		if err != nil || !same(again.top, third.top) {
			t.Errorf("%v: %s\nbecame\n%s", err, out, twice)
		}
	})
}
