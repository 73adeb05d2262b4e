package toolimport

import (
	"fmt"
	"mime"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/openapi"
)

// answer is one success as the backend makes a result of it.
type answer struct {
	// form is empty when there is no body.
	form   contract.ResponseForm
	schema any
}

func mediaType(s string) string {
	t, _, err := mime.ParseMediaType(s)
	if err != nil {
		return strings.ToLower(strings.TrimSpace(s))
	}
	return t
}

// plainJSON reports whether the backend's own application/json is meant.
func plainJSON(t string) bool { return t == "application/json" || t == "application/*" || t == "*/*" }

// textual are the media types that become one string.
func textual(t string) bool {
	return strings.HasPrefix(t, "text/") && t != "text/event-stream" ||
		t == "application/xml" || t == "application/yaml" || strings.HasSuffix(t, "+xml") || strings.HasSuffix(t, "+yaml")
}

func (m *mapping) answer(res openapi.Response) (answer, error) {
	if res.Status == "204" || res.Status == "205" {
		return answer{schema: map[string]any{"type": "null"}}, nil
	}
	if len(res.Types) == 0 {
		return answer{schema: true}, nil // what is not described may be there
	}
	for _, of := range []func(string) bool{plainJSON, func(t string) bool { return strings.HasSuffix(t, "+json") }} {
		for _, name := range res.Types {
			t := mediaType(name)
			if !of(t) || res.Schemas[name] == nil && t != "application/json" && plainJSON(t) {
				continue
			}
			if !plainJSON(t) {
				m.header("Accept", t)
			}
			schema, err := m.made(res.Schemas[name])
			if err != nil {
				return answer{}, fmt.Errorf("its response %s: %w", res.Status, err)
			}
			return answer{contract.ResponseJSON, schema}, nil
		}
	}
	for _, name := range res.Types {
		if textual(mediaType(name)) {
			if t := mediaType(name); !strings.HasPrefix(t, "text/") {
				m.header("Accept", t)
			}
			return answer{contract.ResponseText, map[string]any{"type": "string"}}, nil
		}
	}
	return answer{}, fmt.Errorf("its response %s is %s, and a result is JSON or text", res.Status, strings.Join(res.Types, ", "))
}

// made is the schema of a result; true for any.
func (m *mapping) made(x any) (any, error) {
	if x == nil {
		return true, nil
	}
	schema, err := m.out.Make(x)
	if s, ok := schema.(map[string]any); ok && len(s) == 0 {
		return true, err
	}
	return schema, err
}

// header is sent with every call; the first value for a name stays.
func (m *mapping) header(name, value string) {
	h := m.draft.Backend.HTTP
	for _, x := range h.Headers {
		if strings.EqualFold(x.Name, name) {
			return
		}
	}
	h.Headers = append(h.Headers, contract.HTTPHeader{Name: name, Value: value})
}
