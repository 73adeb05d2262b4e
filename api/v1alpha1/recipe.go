package v1alpha1

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// DefaultInputSchema is the input schema of a Recipe that has none.
const DefaultInputSchema = `{"type":"object"}`

// EffectiveToolName is what the recipe is called as a tool.
func (r *Recipe) EffectiveToolName() string {
	if r.Spec.ToolName != "" {
		return r.Spec.ToolName
	}
	return r.Name
}

// RecipeTools returns the tool names of the recipes of a namespace, each with the
// name of its recipe: of several, the first by name.
func RecipeTools(namespace string, recipes []Recipe) map[string]string {
	out := map[string]string{}
	for i := range recipes {
		r := &recipes[i]
		if r.Namespace != namespace {
			continue
		}
		tool := r.EffectiveToolName()
		if of, ok := out[tool]; !ok || r.Name < of {
			out[tool] = r.Name
		}
	}
	return out
}

// InputSchema returns the JSON text of the effective input schema.
func (r *Recipe) InputSchema() json.RawMessage {
	if s := rawJSON(r.Spec.InputSchema); s != nil {
		return s
	}
	return json.RawMessage(DefaultInputSchema)
}

// OutputSchema returns the JSON text of the output schema, empty without one.
func (r *Recipe) OutputSchema() json.RawMessage { return rawJSON(r.Spec.OutputSchema) }

// SourceDigest returns the digest of exactly the bytes of the source.
func (r *Recipe) SourceDigest() string { return contract.Digest([]byte(r.Spec.Source)) }

// ManifestDigest returns the digest of all that the recipe is to its users: its
// effective name, description, source, schemas, tools, limits and tests. Two
// spellings of one recipe have one digest; a recipe without tests has the one that
// it had before there were any.
func (r *Recipe) ManifestDigest() (string, error) {
	b, err := contract.Canonical(struct {
		ToolName     string             `json:"toolName"`
		Description  string             `json:"description"`
		SourceDigest string             `json:"sourceDigest"`
		InputSchema  json.RawMessage    `json:"inputSchema"`
		OutputSchema json.RawMessage    `json:"outputSchema,omitempty"`
		Tools        []string           `json:"tools"`
		Limits       *contract.Limits   `json:"limits,omitempty"`
		Tests        []contract.Fixture `json:"tests,omitempty"`
	}{
		r.EffectiveToolName(), r.Spec.Description, r.SourceDigest(), r.InputSchema(), r.OutputSchema(),
		slices.Sorted(slices.Values(r.Spec.Tools)), r.Spec.Limits,
		slices.SortedFunc(slices.Values(r.Spec.Tests), func(a, b contract.Fixture) int { return strings.Compare(a.Name, b.Name) }),
	})
	if err != nil {
		return "", err
	}
	return contract.Digest(b), nil
}
