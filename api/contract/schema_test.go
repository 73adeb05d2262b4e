package contract

import (
	"strings"
	"testing"
)

func TestCompileSchema(t *testing.T) {
	tests := map[string]struct {
		text    string
		wantErr string
	}{
		"none":                             {text: ""},
		"true":                             {text: "true"},
		"an object":                        {text: `{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`},
		"an older draft":                   {text: `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`},
		"no JSON":                          {text: `{`, wantErr: "not JSON"},
		"a type that is none":              {text: `{"type":"objekt"}`, wantErr: "invalid"},
		"a pattern that is none":           {text: `{"pattern":"("}`, wantErr: "invalid"},
		"a file":                           {text: `{"$ref":"file:///etc/passwd"}`, wantErr: "external reference"},
		"an address":                       {text: `{"$ref":"http://schemas.example/x"}`, wantErr: "external reference"},
		"a relative reference":             {text: `{"$ref":"other.json"}`, wantErr: "external reference"},
		"a schema dialect from elsewhere":  {text: `{"$schema":"https://schemas.example/meta"}`, wantErr: "external reference"},
		"an id that makes a ref external":  {text: `{"$id":"http://schemas.example/a","$ref":"b"}`, wantErr: "external reference"},
		"a reference to what is not there": {text: `{"$ref":"#/$defs/none"}`, wantErr: "invalid"},
		"a type that there is not":         {text: `{"properties":{"a":{"type":"text"}}}`, wantErr: `at /properties/a/type: value must be one of "array", "boolean", "integer"`},
		"a bound that nobody can reach":    {text: `{"minimum":1e9999999}`, wantErr: "beyond what a double can hold"},
		"too large":                        {text: `"` + strings.Repeat("x", MaxSchemaBytes) + `"`, wantErr: "more than"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := CompileSchema([]byte(tc.text))
			if (err != nil) != (tc.wantErr != "") {
				t.Fatalf("error %v, want %q", err, tc.wantErr)
			}
			if err == nil {
				return
			}
			f, ok := AsFault(err)
			if !ok || f.Reason != ReasonSchemaInvalid || !strings.Contains(f.Message, tc.wantErr) {
				t.Errorf("error %v, want SchemaInvalid with %q", err, tc.wantErr)
			}
			if len(f.Message) > MaxMessageBytes {
				t.Errorf("the message has %d bytes", len(f.Message))
			}
		})
	}
}

func TestValidate(t *testing.T) {
	const schema = `{"type":"object","required":["q"],"additionalProperties":false,"properties":{
		"q":{"type":"string","maxLength":3,"pattern":"^[a-z]+$"},
		"n":{"type":"integer","maximum":10},
		"even":{"type":"number","multipleOf":2},
		"few":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":5},
		"set":{"uniqueItems":true},
		"k":{"enum":["red","blue"]},
		"list":{"type":"array","items":{"type":"number"}}}}`
	tests := map[string]struct{ value, wantErr string }{
		"fits":               {value: `{"q":"abc","n":1,"k":"red","list":[1,2.5]}`},
		"a whole float":      {value: `{"q":"a","n":1.0}`},
		"no JSON":            {value: `{"q":`, wantErr: "not JSON"},
		"two values":         {value: `{"q":"a"} {}`, wantErr: "not JSON"},
		"missing":            {value: `{}`, wantErr: "at /: "},
		"of another type":    {value: `{"q":1}`, wantErr: "at /q: "},
		"too long":           {value: `{"q":"abcd"}`, wantErr: "rule maxLength"},
		"too large":          {value: `{"q":"a","n":11}`, wantErr: "at /n: "},
		"in a list":          {value: `{"q":"a","list":[1,"2"]}`, wantErr: "at /list/1: "},
		"beyond":             {value: `{"q":"a","x":1}`, wantErr: "rule additionalProperties"},
		"the largest":        {value: `{"q":"a","few":0.5,"list":[1.7976931348623157e308,5e-324,1e+00308]}`},
		"a large exponent":   {value: `{"q":"a","list":[1e400]}`, wantErr: "beyond what a double can hold"},
		"a huge exponent":    {value: `{"q":"a","n":1e9999999}`, wantErr: "beyond what a double can hold"},
		"a tiny exponent":    {value: `{"q":"a","few":1e-9999999}`, wantErr: "beyond what a double can hold"},
		"no exponent at all": {value: `{"q":"a","even":1E+99999999999999999999}`, wantErr: "beyond what a double can hold"},
		"huge in a set":      {value: `{"q":"a","set":[1e9999999,1e9999998]}`, wantErr: "beyond what a double can hold"},
		"a secret number":    {value: `{"q":"a","n":1234567}`, wantErr: "must be <= 10 (rule maximum)"},
		"another":            {value: `{"q":"a","few":1234567}`, wantErr: "must be < 5 (rule exclusiveMaximum)"},
		"one more":           {value: `{"q":"a","few":-1234567}`, wantErr: "must be > 0 (rule exclusiveMinimum)"},
		"and one more":       {value: `{"q":"a","even":1234567}`, wantErr: "does not satisfy multipleOf"},
		"a secret pattern":   {value: `{"q":"S3C"}`, wantErr: "does not satisfy pattern"},
		"a secret of a list": {value: `{"q":"a","k":"S3C"}`, wantErr: "does not satisfy enum"},
	}
	s, err := CompileSchema([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := s.Validate([]byte(tc.value))
			if (err != nil) != (tc.wantErr != "") {
				t.Fatalf("error %v, want %q", err, tc.wantErr)
			}
			if err == nil {
				return
			}
			if !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error %q, want %q in it", err, tc.wantErr)
			}
			if strings.Contains(err.Error(), "S3C") || strings.Contains(err.Error(), "1234567") {
				t.Errorf("the error quotes the value: %q", err)
			}
		})
	}
	var none *Schema
	if err := none.Validate([]byte(`[1]`)); err != nil {
		t.Errorf("without a schema: %v", err)
	}
	if err := none.Validate([]byte(`[1`)); err == nil {
		t.Error("without a schema, no JSON is still no JSON")
	}
}
