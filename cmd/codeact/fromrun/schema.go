package fromrun

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// maxDepth bounds how deep a schema is inferred; below it anything passes.
const maxDepth = 32

// schema is as much of JSON Schema as one value shows.
type schema struct {
	// Type is a name, or several; nil for any value.
	Type                 any                `json:"type,omitempty"`
	Properties           map[string]*schema `json:"properties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	AdditionalProperties *bool              `json:"additionalProperties,omitempty"`
	Items                *schema            `json:"items,omitempty"`
}

// infer is the schema of the values that stand in one place: of the elements of a
// list, more than one. Of null alone nothing is known.
func infer(values []any, depth int) *schema {
	types := map[string]bool{}
	var objects []map[string]any
	var elements []any
	for _, v := range values {
		switch x := v.(type) {
		case map[string]any:
			types["object"] = true
			objects = append(objects, x)
		case []any:
			types["array"] = true
			elements = append(elements, x...)
		case json.Number:
			types[numberType(x)] = true
		case string:
			types["string"] = true
		case bool:
			types["boolean"] = true
		case nil:
			types["null"] = true
		}
	}
	s := &schema{}
	if types["number"] {
		delete(types, "integer")
	}
	if depth > maxDepth || len(types) == 0 || len(types) == 1 && types["null"] {
		return s
	}
	if names := slices.Sorted(maps.Keys(types)); len(names) == 1 {
		s.Type = names[0]
	} else {
		s.Type = names
	}
	if len(objects) > 0 {
		s.object(objects, depth)
	}
	if len(elements) > 0 {
		s.Items = infer(elements, depth+1)
	}
	return s
}

// object takes over the members of objects: those that all have are required.
func (s *schema) object(objects []map[string]any, depth int) {
	s.AdditionalProperties = new(bool)
	members := map[string][]any{}
	for _, o := range objects {
		for k, v := range o {
			members[k] = append(members[k], v)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(members)) {
		if s.Properties == nil {
			s.Properties = map[string]*schema{}
		}
		s.Properties[k] = infer(members[k], depth+1)
		if len(members[k]) == len(objects) {
			s.Required = append(s.Required, k)
		}
	}
}

func numberType(n json.Number) string {
	if !strings.ContainsAny(string(n), ".eE") {
		return "integer"
	}
	if f, err := n.Float64(); err == nil && f == math.Trunc(f) {
		return "integer"
	}
	return "number"
}

// Schema infers a JSON Schema from one value, as indented JSON.
func Schema(value json.RawMessage) (json.RawMessage, error) {
	x, err := contract.DecodeJSON(value)
	if err != nil {
		return nil, err
	}
	return indented(infer([]any{x}, 0))
}
