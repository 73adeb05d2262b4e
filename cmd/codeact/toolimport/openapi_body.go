package toolimport

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/codeact-dev/codeact-operator/cmd/codeact/openapi"
)

// requestBody is what the backend sends as JSON.
type requestBody struct {
	schema any // of the document; nil is any
	flat   openapi.Flat
	// isFlat says that flat is the whole schema.
	isFlat bool
}

// body is the body of the operation, or nil. A method without one in the backend
// does without it only where the operation does.
func (m *mapping) body() (*requestBody, error) {
	content, required, err := m.op.Body()
	if err != nil || content == nil {
		return nil, err
	}
	if !m.draft.Backend.HTTP.Method.HasBody() {
		if required {
			return nil, fmt.Errorf("it needs a body, and the backend sends none with %s", m.op.Method)
		}
		m.lose("its body is left out: the backend sends none with %s", m.op.Method)
		return nil, nil
	}
	for _, t := range content.Types {
		if !plainJSON(mediaType(t)) {
			continue
		}
		b := &requestBody{schema: content.Schemas[t]}
		if b.schema != nil {
			b.flat, b.isFlat, err = m.in.Flatten(b.schema)
		}
		if err != nil {
			return nil, fmt.Errorf("its request body: %w", err)
		}
		return b, nil
	}
	if !required && len(content.Types) == 0 {
		return nil, nil
	}
	return nil, fmt.Errorf("its body is %s, and the backend sends application/json", strings.Join(content.Types, ", "))
}

// bodyNames are the arguments that are members of the body.
func (m *mapping) bodyNames(b *requestBody) []string {
	switch {
	case b == nil || b.schema == nil:
		return nil
	case b.isFlat:
		return slices.Sorted(maps.Keys(b.flat.Properties))
	}
	names, _ := m.d.Open(b.schema)
	return names
}

// input is the schema of the arguments: those that the URL names and those that
// are the body.
func (m *mapping) input(b *requestBody) (any, error) {
	inURL := len(m.args.properties) > 0
	switch {
	case b == nil:
		if m.draft.Backend.HTTP.Method.HasBody() {
			m.review("the operation takes no body, and the backend sends {}: see that the server takes that")
		}
		return m.object(m.args.properties, m.args.required, false), nil
	case b.isFlat:
		return m.joined(b.flat)
	case !inURL && b.schema == nil:
		return true, nil
	case !inURL:
		return m.in.Make(b.schema)
	}
	if b.schema == nil {
		return m.object(m.args.properties, m.args.required, nil), nil
	}
	if _, open := m.d.Open(b.schema); !open {
		return nil, errors.New("its parameters stand in the URL, and its body is no object beside which they could be arguments")
	}
	root := m.object(m.args.properties, m.args.required, nil)
	made, err := m.in.Make(b.schema)
	root["allOf"] = []any{made}
	return root, err
}

// joined has the arguments of the URL beside the members of the body.
func (m *mapping) joined(f openapi.Flat) (any, error) {
	properties := maps.Clone(m.args.properties)
	required := slices.Clone(m.args.required)
	maps.Copy(properties, f.Properties)
	for _, name := range f.Required {
		required = append(required, name)
	}
	var additional any
	if f.Closed {
		additional = false
	} else if f.Additional != nil {
		additional = f.Additional
	}
	root := m.object(properties, required, additional)
	if f.Description != "" && len(m.args.properties) == 0 {
		root["description"] = f.Description
	}
	return root, nil
}

func (m *mapping) object(properties map[string]any, required []any, additional any) map[string]any {
	out := map[string]any{"type": "object"}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	if len(required) > 0 {
		out["required"] = required
	}
	if additional != nil {
		out["additionalProperties"] = additional
	}
	return out
}
