package model

import (
	"bytes"
	"encoding/json"

	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// function is a tool as it is offered through either API.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

func functionOf(t loop.ModelTool) function {
	return function{Name: t.Name, Description: t.Description, Parameters: parameters(t.Parameters)}
}

// parameters is a schema with the members that OpenAI refuses an object without.
// Everything else, and the order of it, stays as it was written. A schema that is
// no JSON object is that of any object: the call is checked later anyway.
func parameters(schema json.RawMessage) json.RawMessage {
	schema = bytes.TrimSpace(schema)
	var members map[string]json.RawMessage
	if json.Unmarshal(schema, &members) != nil || members == nil {
		schema, members = json.RawMessage(`{}`), nil
	}
	out := bytes.Clone(schema[:len(schema)-1])
	for _, m := range []struct{ name, value string }{{"type", `"object"`}, {"properties", `{}`}} {
		if _, ok := members[m.name]; ok {
			continue
		}
		if out = bytes.TrimSpace(out); len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, `"`+m.name+`":`+m.value...)
	}
	return append(out, '}')
}
