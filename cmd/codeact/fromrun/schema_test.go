package fromrun

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

func TestSchema(t *testing.T) {
	tests := map[string]struct{ value, want string }{
		"object": {
			`{"b":1,"a":"x"}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`,
		},
		"empty object":   {`{}`, `{"type":"object","additionalProperties":false}`},
		"null":           {`null`, `{}`},
		"a null inside":  {`{"a":null}`, `{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`},
		"empty list":     {`[]`, `{"type":"array"}`},
		"list":           {`[1,2]`, `{"type":"array","items":{"type":"integer"}}`},
		"numbers":        {`[1,2.5]`, `{"type":"array","items":{"type":"number"}}`},
		"whole numbers":  {`[1,2.0,1e3]`, `{"type":"array","items":{"type":"integer"}}`},
		"mixed":          {`["x",null,true]`, `{"type":"array","items":{"type":["boolean","null","string"]}}`},
		"sometimes only": {`[{"a":1,"b":2},{"a":3}]`, `{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a"],"additionalProperties":false}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Schema(json.RawMessage(tc.value))
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if err := json.Compact(&text, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, text.String()); diff != "" {
				t.Errorf("schema (-want +got):\n%s", diff)
			}
			s, err := contract.CompileSchema(got)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(json.RawMessage(tc.value)); err != nil {
				t.Errorf("it refuses its own value: %v", err)
			}
		})
	}
}
