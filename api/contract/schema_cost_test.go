package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// chain makes n definitions, each made of the next one's name by format.
func chain(n int, format, last string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"a%d":%s,`, i, strings.ReplaceAll(format, "@", fmt.Sprintf(`{"$ref":"#/$defs/a%d"}`, i+1)))
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/a0","$defs":{%s"a%d":%s}}`, b.String(), n, last)
}

// TestSchemaCost: no schema and no value of a legal size keeps a process busy or
// ends it by its stack.
func TestSchemaCost(t *testing.T) {
	deep := func(open, end string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(end, n) }
	items := make([]int, 100_000)
	for i := range items {
		items[i] = i
	}
	many, err := json.Marshal(items)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ schema, value, want string }{
		"references that double":  {chain(60, `{"allOf":[@,@]}`, `{}`), `1`, "too much work"},
		"that fail":               {chain(60, `{"anyOf":[@,@]}`, `{"type":"string"}`), `1`, "too much work"},
		"of an older draft":       {`{"$schema":"http://json-schema.org/draft-07/schema#",` + chain(60, `{"oneOf":[@,@]}`, `{}`)[1:], `1`, "too much work"},
		"wide and flat":           {chain(2, `{"anyOf":[`+strings.Repeat(`@,`, 1500)+`@]}`, `false`), `1`, "too much work"},
		"with every level":        {`{"$defs":{"n":{"allOf":[{"items":{"$ref":"#/$defs/n"}},{"items":{"$ref":"#/$defs/n"}}]}},"$ref":"#/$defs/n"}`, deep("[", "]", 100), "too much work"},
		"a stack without end":     {chain(3000, `@`, `{"items":{"$ref":"#/$defs/a0"}}`), deep("[", "]", 5000), "too deeply"},
		"unique items":            {`{"properties":{"a":{"uniqueItems":true}}}`, `{"a":` + string(many) + `}`, "uniqueItems"},
		"a schema nested deeply":  {strings.Repeat(`{"not":`, 5000) + "true" + strings.Repeat("}", 5000), `1`, "nested more than"},
		"more than compiles soon": {`{"allOf":[` + strings.Repeat(`{},`, 20_000) + `{}]}`, `1`, "more than 4096"},
		"as large as may be":      {`{"allOf":[` + strings.Repeat(`{},`, 4000) + `{}]}`, `1`, ""},
		"patterns without end":    {`{"allOf":[` + strings.Repeat(`{"pattern":"^[a-f]{1,400}$"},`, 1000) + `{}]}`, `1`, "instructions together"},
		"a reference to itself":   {`{"$ref":"#"}`, `1`, "infinite loop"},
		"many items":              {`{"items":{"type":"integer","minimum":0}}`, string(many), ""},
		"a tree":                  {`{"$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`, strings.Repeat(`{"n":`, 1000) + "{}" + strings.Repeat("}", 1000), ""},
		"a thousand unique items": {`{"uniqueItems":true}`, strings.ReplaceAll(fmt.Sprint(items[:1000]), " ", ","), ""},
		"fifty alternatives":      {`{"items":{"anyOf":[` + strings.Repeat(`{"const":"x"},`, 50) + `{"type":"integer"}]}}`, strings.ReplaceAll(fmt.Sprint(items[:300]), " ", ","), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bounded(t)
			s, err := CompileSchema(json.RawMessage(tc.schema))
			if err == nil {
				err = s.Validate(json.RawMessage(tc.value))
			}
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %.300v, want %q", err, tc.want)
			}
		})
	}
}

// TestSchemaIsShared: validations of one schema side by side do not pay for each
// other.
func TestSchemaIsShared(t *testing.T) {
	s, err := CompileSchema(json.RawMessage(`{"items":{"type":"integer"}}`))
	if err != nil {
		t.Fatal(err)
	}
	value := json.RawMessage("[" + strings.Repeat("1,", 20_000) + "1]")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				if err := s.Validate(value); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
