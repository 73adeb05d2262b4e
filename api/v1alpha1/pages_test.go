package v1alpha1_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/codeact-dev/codeact-operator/config/crd"
)

// theirs are fields whose inside is Kubernetes' own and documented there.
var theirs = []string{"conditions", "resources", "tolerations", "runSelector", "selector", "nodeSelector"}

// TestPagesNameEveryField holds each kind's page to its CRD.
func TestPagesNameEveryField(t *testing.T) {
	for name, file := range map[string]string{
		"recipe": "recipes", "toolgrant": "toolgrants", "agentrun": "agentruns",
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := crd.Bases.ReadFile("bases/codeact.dev_" + file + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			var d apiextensionsv1.CustomResourceDefinition
			if err := yaml.Unmarshal(raw, &d); err != nil {
				t.Fatal(err)
			}
			known := quoted(t, name+".md")
			// Limits are the same in every kind; the recipe's page names them.
			limits := quoted(t, "recipe.md")
			root := d.Spec.Versions[0].Schema.OpenAPIV3Schema
			for _, part := range []string{"spec", "status"} {
				walk(root.Properties[part], part, func(path, field string) {
					if strings.Contains(path, ".limits.") && limits[field] {
						return
					}
					if !known[field] {
						t.Errorf("%s.md does not name %s", name, path)
					}
				})
			}
		})
	}
}

func walk(s apiextensionsv1.JSONSchemaProps, path string, visit func(path, field string)) {
	for field, p := range s.Properties {
		visit(path+"."+field, field)
		if slices.Contains(theirs, field) {
			continue
		}
		walk(p, path+"."+field, visit)
		if p.Items != nil && p.Items.Schema != nil {
			walk(*p.Items.Schema, path+"."+field, visit)
		}
	}
}

// TestPagesNameEveryReason holds the three pages together to the taxonomy.
func TestPagesNameEveryReason(t *testing.T) {
	known := map[string]bool{}
	for _, page := range []string{"recipe.md", "toolgrant.md", "agentrun.md"} {
		for word := range quoted(t, page) {
			known[word] = true
		}
	}
	for file, pattern := range map[string]string{
		"../contract/reason.go": `Reason = "(\w+)"`,
		"conditions.go":         `(?:Reason|Condition)\w+\s+= "(\w+)"`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Fatalf("%s has no reasons any more: mend this test", file)
		}
		for _, m := range found {
			if !known[m[1]] {
				t.Errorf("no page names %s (%s)", m[1], file)
			}
		}
	}
}

var (
	codeRE = regexp.MustCompile("`[^`\n]+`")
	wordRE = regexp.MustCompile(`\w+`)
)

// quoted are the words of a page that are set as code, in a line or a block.
func quoted(t *testing.T, page string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	inBlock := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "```") {
			inBlock = !inBlock
			continue
		}
		parts := codeRE.FindAllString(line, -1)
		if inBlock {
			parts = []string{line}
		}
		for _, p := range parts {
			for _, w := range wordRE.FindAllString(p, -1) {
				out[w] = true
			}
		}
	}
	return out
}
