package v1alpha1

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TextFaults say what is wrong with the program and the input schema of a Recipe
// before anybody looks into them; nil is nothing.
// +kubebuilder:object:generate=false
type TextFaults struct {
	// Source is SourceUnavailable or DigestMismatch.
	Source *contract.Fault
	// InputSchema is SourceUnavailable, or SchemaInvalid for what is no JSON object.
	InputSchema *contract.Fault
}

// Any returns the first of the faults, or nil.
func (f TextFaults) Any() *contract.Fault {
	if f.Source != nil {
		return f.Source
	}
	return f.InputSchema
}

// ConfigMapNames are the names of the ConfigMaps that the recipe takes texts from,
// each once.
func (r *Recipe) ConfigMapNames() []string {
	var out []string
	for _, t := range []*TextSource{r.Spec.SourceFrom, r.Spec.InputSchemaFrom} {
		if t != nil && (len(out) == 0 || out[0] != t.ConfigMapKeyRef.Name) {
			out = append(out, t.ConfigMapKeyRef.Name)
		}
	}
	return out
}

// Effective returns the recipe with its program and input schema inline, and what
// is wrong with these texts: all that judges or pins a recipe does it to this form.
// configMaps are those of the recipe's namespace, by name; one that is not there is
// absent or nil. A text that cannot be had is left out of the result. A recipe
// without references is returned itself.
func (r *Recipe) Effective(configMaps map[string]*corev1.ConfigMap) (*Recipe, TextFaults) {
	var bad TextFaults
	if r.Spec.SourceFrom != nil || r.Spec.InputSchemaFrom != nil {
		r = r.DeepCopy()
	}
	where := "spec.source"
	if ref := r.Spec.SourceFrom; ref != nil {
		r.Spec.SourceFrom = nil
		r.Spec.Source, bad.Source = ref.text(configMaps, contract.Ceilings().SourceBytes)
		where = ref.String() + " (spec.sourceFrom)"
	}
	if ref := r.Spec.InputSchemaFrom; ref != nil {
		r.Spec.InputSchemaFrom = nil
		var text string
		if text, bad.InputSchema = ref.text(configMaps, contract.MaxSchemaBytes); bad.InputSchema == nil {
			r.Spec.InputSchema, bad.InputSchema = ref.schema(text)
		}
	}
	want, got := r.Spec.SourceDigest, r.SourceDigest()
	if bad.Source == nil && want != "" && want != got {
		bad.Source = contract.Faultf(contract.ReasonDigestMismatch,
			"%s has the digest %s, not spec.sourceDigest %s; review the source again or mend the digest", where, got, want)
	}
	return r, bad
}

// String names the text for a person.
func (t *TextSource) String() string {
	return "key " + t.ConfigMapKeyRef.Key + " of ConfigMap " + t.ConfigMapKeyRef.Name
}

// text finds the text, of at most so many bytes. The fault is SourceUnavailable.
func (t *TextSource) text(configMaps map[string]*corev1.ConfigMap, most int64) (string, *contract.Fault) {
	unavailable := func(format string, args ...any) *contract.Fault {
		return contract.Faultf(contract.ReasonSourceUnavailable, format, args...)
	}
	ref := t.ConfigMapKeyRef
	cm := configMaps[ref.Name]
	if cm == nil {
		return "", unavailable("there is no ConfigMap %s in this namespace; its key %s is to hold the text", ref.Name, ref.Key)
	}
	text, ok := cm.Data[ref.Key]
	if _, binary := cm.BinaryData[ref.Key]; !ok && binary {
		return "", unavailable("%s is binary data; a text in UTF-8 stands in data", t)
	}
	switch {
	case !ok:
		return "", unavailable("ConfigMap %s has no key %s", ref.Name, ref.Key)
	case int64(len(text)) > most:
		return "", unavailable("%s has %d bytes, more than %d", t, len(text), most)
	case !utf8.ValidString(text):
		return "", unavailable("%s is not UTF-8", t)
	case text == "":
		return "", unavailable("%s is empty", t)
	}
	return text, nil
}

// schema returns the JSON of the text without blanks.
func (t *TextSource) schema(text string) (*apiextensionsv1.JSON, *contract.Fault) {
	x, err := contract.DecodeJSON([]byte(text))
	switch {
	case err != nil:
		return nil, contract.Faultf(contract.ReasonSchemaInvalid, "%s is not JSON: %v", t, err)
	case !contract.WellFormed([]byte(text)):
		return nil, contract.Faultf(contract.ReasonSchemaInvalid, "%s is not JSON: half of a surrogate pair", t)
	}
	if _, ok := x.(map[string]any); !ok {
		return nil, contract.Faultf(contract.ReasonSchemaInvalid, "%s is JSON, but no object as an input schema is", t)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return nil, contract.Faultf(contract.ReasonSchemaInvalid, "%s is not JSON: %v", t, err)
	}
	return &apiextensionsv1.JSON{Raw: b.Bytes()}, nil
}

// ManifestBytes is the size of what the manifest says beside its program and
// tests, as JSON, in bytes; a text in a ConfigMap does not count.
func (r *Recipe) ManifestBytes() int64 {
	s := RecipeSpec{
		ToolName: r.Spec.ToolName, Description: r.Spec.Description, InputSchema: r.Spec.InputSchema,
		OutputSchema: r.Spec.OutputSchema, Tools: r.Spec.Tools, Limits: r.Spec.Limits,
	}
	var n counter
	e := json.NewEncoder(&n)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return 0 // a schema that is no JSON is refused as that
	}
	return int64(n)
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}
