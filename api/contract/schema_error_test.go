package contract_test

import (
	"encoding/json"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestSchemaErrorIsTheSame: a program may read why its arguments were refused, so
// that of several reasons it must be told the same one every time.
func TestSchemaErrorIsTheSame(t *testing.T) {
	const value = `{"a":1,"b":2,"c":[0,0,0,0,0,0,0,0,0,0,0],"it's":{"x', 'y":1}}`
	tests := map[string]struct{ schema, want string }{
		"names that are not allowed": {
			`{"properties":{"c":true},"additionalProperties":false}`, `at /: additionalProperties 'a', 'b', 'it\'s' not allowed (rule additionalProperties)`,
		},
		"a name with the library's separator": {
			`{"properties":{"it's":{"additionalProperties":false}}}`, `at /it%27s: additionalProperties 'x\', \'y' not allowed (rule additionalProperties)`,
		},
		"types of several members": {`{"properties":{"b":{"type":"string"},"a":{"type":"string"}}}`, "at /a: expected string, but got number (rule type)"},
		"the value itself is first": {
			`{"properties":{"a":{"type":"string"}},"required":["z"]}`, "at /: missing properties: 'z' (rule required)",
		},
		"items by their number": {`{"properties":{"c":{"items":{"type":"string"}}}}`, "at /c/0: expected string, but got number (rule type)"},
		"the second item before the tenth": {
			`{"properties":{"c":{"prefixItems":[true,true,{"type":"string"}],"items":{"type":"string"}}}}`, "at /c/2: expected string, but got number (rule type)",
		},
		"names":        {`{"propertyNames":{"maxLength":0}}`, "at /a: length must be <= 0, but got 1 (rule maxLength)"},
		"names needed": {`{"dependentRequired":{"b":["y"],"a":["x"]}}`, "at /: property 'x' is required, if 'a' property exists (rule dependentRequired)"},
		"patterns":     {`{"patternProperties":{"b":false,"a":false}}`, "at /a: not allowed (rule a)"},
		"a choice":     {`{"oneOf":[{"required":["y"]},{"required":["x"]}]}`, "at /: missing properties: 'y' (rule required)"},
		"no choice":    {`{"properties":{"b":{"not":{}},"a":{"not":{}}}}`, "at /a: not failed (rule not)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := contract.CompileSchema([]byte(tc.schema))
			if err != nil {
				t.Fatal(err)
			}
			for range 50 {
				if err := s.Validate(json.RawMessage(value)); err == nil || err.Error() != tc.want {
					t.Fatalf("%v, want %s", err, tc.want)
				}
			}
		})
	}
}
