package v1alpha1_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/config/crd"
)

// TestSpecsAreDecodableByType is TestSpecsAreDecodable from the other side: it
// looks at every field of the Go types that reads its JSON in a way of its own, or
// that has less room than the API server's JSON, and at what the CRD says of it.
func TestSpecsAreDecodableByType(t *testing.T) {
	for file, spec := range map[string]any{
		"codeact.dev_toolgrants.yaml": v1alpha1.ToolGrantSpec{},
		"codeact.dev_recipes.yaml":    v1alpha1.RecipeSpec{},
		"codeact.dev_agentruns.yaml":  v1alpha1.AgentRunSpec{},
	} {
		raw, err := crd.Bases.ReadFile("bases/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var d apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(raw, &d); err != nil {
			t.Fatal(err)
		}
		s := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		if seen := readable(t, reflect.TypeOf(spec), s, file+": spec"); seen < 5 {
			t.Errorf("%s: only %d fields were seen", file, seen)
		}
	}
}

// own are the types that read their own JSON, and when nothing passes that they
// cannot read.
var own = map[reflect.Type]func(apiextensionsv1.JSONSchemaProps) bool{
	reflect.TypeFor[apiextensionsv1.JSON](): func(apiextensionsv1.JSONSchemaProps) bool { return true },
	reflect.TypeFor[runtime.RawExtension](): func(apiextensionsv1.JSONSchemaProps) bool { return true },
	reflect.TypeFor[metav1.Time]():          func(s apiextensionsv1.JSONSchemaProps) bool { return s.Format == "date-time" && s.Pattern != "" },
	reflect.TypeFor[metav1.Duration](): func(s apiextensionsv1.JSONSchemaProps) bool {
		return s.Type == "string" && slices.ContainsFunc(s.XValidations, func(v apiextensionsv1.ValidationRule) bool {
			// The rule's duration() reads it as Go does, or the rule fails.
			return strings.HasPrefix(v.Rule, "duration(self)")
		})
	},
	// It takes every number as it is spelled (TestNumber).
	reflect.TypeFor[v1alpha1.Number](): func(s apiextensionsv1.JSONSchemaProps) bool { return s.Type == "number" },
	// It takes every JSON as it is.
	reflect.TypeFor[json.RawMessage](): func(apiextensionsv1.JSONSchemaProps) bool { return true },
	// TestSpecsAreDecodable looks at the quantities in it.
	reflect.TypeFor[corev1.ResourceList](): func(apiextensionsv1.JSONSchemaProps) bool { return true },
}

// readable returns how many fields it has seen.
func readable(t *testing.T, typ reflect.Type, s apiextensionsv1.JSONSchemaProps, path string) int {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if fits, ok := own[typ]; ok {
		if !fits(s) {
			t.Errorf("%s, a %s, has no rule: what Go cannot read passes", path, typ)
		}
		return 1
	}
	if reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		t.Errorf("%s, a %s, reads its own JSON: say in this test when it can", path, typ)
	}
	switch typ.Kind() {
	case reflect.Struct:
		n := 0
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" && f.Anonymous {
				n += readable(t, f.Type, s, path)
				continue
			}
			if p, ok := s.Properties[name]; ok {
				n += readable(t, f.Type, p, path+"."+name)
			}
		}
		return n
	case reflect.Slice:
		if s.Items != nil && s.Items.Schema != nil {
			return readable(t, typ.Elem(), *s.Items.Schema, path+"[]")
		}
	case reflect.Map:
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			return readable(t, typ.Elem(), *s.AdditionalProperties.Schema, path+"{}")
		}
	case reflect.Int32:
		if s.Type != "integer" || s.Format != "int32" && s.Maximum == nil {
			t.Errorf("%s is an int32, and the CRD bounds it nowhere", path)
		}
	case reflect.Int64:
		if s.Type != "integer" || s.Format != "int64" && s.Maximum == nil {
			t.Errorf("%s is an int64, and the CRD bounds it nowhere", path)
		}
	case reflect.String:
		if s.Type != "string" {
			t.Errorf("%s is a string, and the CRD says %q", path, s.Type)
		}
	case reflect.Bool:
		if s.Type != "boolean" {
			t.Errorf("%s is a bool, and the CRD says %q", path, s.Type)
		}
	default:
		t.Errorf("%s is a %s: say in this test when it can be read", path, typ)
	}
	return 1
}
