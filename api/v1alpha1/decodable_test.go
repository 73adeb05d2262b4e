package v1alpha1_test

import (
	"io/fs"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/codeact-dev/codeact-operator/config/crd"
)

// TestSpecsAreDecodable finds the fields that a user may write and whose own
// validation lets more pass than Go's types can read. One object that cannot be
// decoded ends the manager's watch of its kind, in all namespaces.
func TestSpecsAreDecodable(t *testing.T) {
	files, err := fs.Glob(crd.Bases, "bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	for _, name := range files {
		raw, err := crd.Bases.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var d apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(raw, &d); err != nil {
			t.Fatal(err)
		}
		decodable(t, d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"], name+": spec")
	}
}

func decodable(t *testing.T, s apiextensionsv1.JSONSchemaProps, path string) {
	t.Helper()
	if s.Format == "date-time" && s.Pattern == "" {
		t.Errorf("%s is a date-time without a pattern: RFC 3339 in lower case passes and cannot be read", path)
	}
	for name, p := range s.Properties {
		decodable(t, p, path+"."+name)
	}
	if s.Items != nil && s.Items.Schema != nil {
		decodable(t, *s.Items.Schema, path+"[]")
	}
	if s.AdditionalProperties == nil || s.AdditionalProperties.Schema == nil {
		return
	}
	if s.AdditionalProperties.Schema.XIntOrString && len(s.XValidations) == 0 {
		t.Errorf("%s holds quantities without a rule: 1e1.5 passes and cannot be read", path)
	}
	decodable(t, *s.AdditionalProperties.Schema, path+"{}")
}
