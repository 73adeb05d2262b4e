package contract

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestFormats holds what the page says: these formats are asserted in both drafts,
// and one that nobody knows is a comment.
func TestFormats(t *testing.T) {
	tests := map[string]struct{ good, bad string }{
		"date-time":             {good: "2026-03-01T12:00:00Z", bad: "2026-03-01 12:00"},
		"date":                  {good: "2026-03-01", bad: "2026-02-30"},
		"time":                  {good: "12:00:00Z", bad: "25:00:00Z"},
		"duration":              {good: "P1DT2H", bad: "1 day"},
		"email":                 {good: "a@example.com", bad: "example.com"},
		"hostname":              {good: "api.example.com", bad: "-x-.example"},
		"ipv4":                  {good: "192.0.2.1", bad: "192.0.2.256"},
		"ipv6":                  {good: "2001:db8::1", bad: "2001:db8::g"},
		"uri":                   {good: "https://example.com/a", bad: "/a"},
		"uri-reference":         {good: "/a", bad: "\\\\a"},
		"iri":                   {good: "https://example.com/ä", bad: "ä"},
		"iri-reference":         {good: "/ä", bad: "\\\\a"},
		"uri-template":          {good: "https://example.com/{id}", bad: "https://example.com/{id"},
		"uuid":                  {good: "123e4567-e89b-12d3-a456-426614174000", bad: "123e4567"},
		"json-pointer":          {good: "/a/0", bad: "a/0"},
		"relative-json-pointer": {good: "1/a", bad: "/a"},
		"regex":                 {good: "^a+$", bad: "(?=a)"},
		"int32":                 {good: "anything"},
	}
	for _, draft := range []string{"https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"} {
		for format, tc := range tests {
			t.Run(draft+" "+format, func(t *testing.T) {
				s, err := CompileSchema(fmt.Appendf(nil, `{"$schema":%q,"format":%q}`, draft, format))
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Validate(fmt.Appendf(nil, "%q", tc.good)); err != nil {
					t.Errorf("%s: %v", tc.good, err)
				}
				if tc.bad == "" {
					return
				}
				err = s.Validate(fmt.Appendf(nil, "%q", tc.bad))
				if err == nil || err.Error() != "at /: does not satisfy format (rule format)" {
					t.Errorf("%s: %v", tc.bad, err)
				}
			})
		}
	}
}

// TestDrafts holds that a schema is read by the rules of the draft that it names.
func TestDrafts(t *testing.T) {
	const (
		new7    = `"$schema":"http://json-schema.org/draft-07/schema#",`
		new2020 = `"$schema":"https://json-schema.org/draft/2020-12/schema",`
	)
	tests := map[string]struct {
		schema, value string
		wantErr       string // of compiling, with a star before it, or of validating
	}{
		"2020-12 by default, prefixItems":     {schema: `{"prefixItems":[{"type":"string"}],"items":false}`, value: `["a",1]`, wantErr: "at /1"},
		"2020-12, a list in items":            {schema: `{` + new2020 + `"items":[{"type":"string"}]}`, wantErr: "*at /items"},
		"draft-07, a list in items":           {schema: `{` + new7 + `"items":[{"type":"string"}],"additionalItems":false}`, value: `["a",1]`, wantErr: "rule additionalItems"},
		"draft-07, prefixItems is a comment":  {schema: `{` + new7 + `"prefixItems":[{"type":"string"}]}`, value: `[1]`},
		"2020-12, dependentRequired":          {schema: `{"dependentRequired":{"a":["b"]}}`, value: `{"a":1}`, wantErr: "rule dependentRequired"},
		"draft-07, dependencies":              {schema: `{` + new7 + `"dependencies":{"a":["b"]}}`, value: `{"a":1}`, wantErr: "at /: "},
		"2020-12, a reference with neighbors": {schema: `{"$ref":"#/$defs/a","maximum":1,"$defs":{"a":{"type":"integer"}}}`, value: `2`, wantErr: "rule maximum"},
		"draft-07, a reference alone counts":  {schema: `{` + new7 + `"$ref":"#/definitions/a","maximum":1,"definitions":{"a":{"type":"integer"}}}`, value: `2`},
		"draft-07, if then else":              {schema: `{` + new7 + `"if":{"type":"string"},"then":{"minLength":2},"else":{"minimum":2}}`, value: `1`, wantErr: "rule minimum"},
		"2020-12, unevaluatedProperties":      {schema: `{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, value: `{"b":1}`, wantErr: "rule unevaluatedProperties"},
		"contains":                            {schema: `{"contains":{"const":1},"maxContains":1}`, value: `[1,1]`, wantErr: "rule maxContains"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := CompileSchema([]byte(tc.schema))
			if want, ok := strings.CutPrefix(tc.wantErr, "*"); ok {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			err = s.Validate([]byte(tc.value))
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
		})
	}
}

func TestPatternsAreRefused(t *testing.T) {
	tests := map[string]struct{ schema, want string }{
		"lookahead": {
			schema: `{"properties":{"sku":{"pattern":"^(?=A)"}}}`,
			want:   "at /properties/sku/pattern: the pattern is not of RE2 syntax: invalid or unsupported Perl syntax: `(?=` (there is no lookahead and no lookbehind)",
		},
		"lookbehind":         {schema: `{"pattern":"(?<!a)b"}`, want: "there is no lookahead and no lookbehind"},
		"a reference back":   {schema: `{"pattern":"(a)\\1"}`, want: "at /pattern: the pattern is not of RE2 syntax: invalid escape sequence"},
		"of keys":            {schema: `{"patternProperties":{"(?!a)":true}}`, want: "at /patternProperties: the pattern is not of RE2 syntax"},
		"in a definition":    {schema: `{"$defs":{"a/b":{"anyOf":[{"pattern":"("}]}}}`, want: "at /$defs/a~1b/anyOf/0/pattern: the pattern is not of RE2 syntax: missing closing )"},
		"too long":           {schema: `{"pattern":"` + strings.Repeat("a", 3000) + `"}`, want: "at /pattern: the pattern has 3000 bytes, more than 2048"},
		"too large":          {schema: `{"pattern":"` + strings.Repeat("[a-c]{1000}", 180) + `"}`, want: "at /pattern: the pattern is too large"},
		"too many repeats":   {schema: `{"pattern":"(a{100}){100}"}`, want: "invalid repeat count"},
		"a pattern property": {schema: `{"properties":{"pattern":{"type":"string"}},"default":{"pattern":"("},"enum":[{"pattern":"("}]}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := CompileSchema([]byte(tc.schema))
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestPatternCost holds that matching is bounded by the schema and the value together.
func TestPatternCost(t *testing.T) {
	const large = `(x|xx|xxx|xxxx|xxxxx|xxxxxx|xxxxxxx)*(y|yy|yyy|yyyy|yyyyy|yyyyyy|yyyyyyy)*([ab]{100}|[bc]{100}|[cd]{100}|x{200})*z`
	keys := make([]string, 0, 40_000)
	for i := range 40_000 {
		keys = append(keys, fmt.Sprintf(`"xxxxxxxxxx%d":1`, i))
	}
	tests := map[string]struct {
		schema, value, wantErr string
	}{
		"a long string":                {schema: `{"pattern":"^[a-z]*$"}`, value: `"` + strings.Repeat("x", 1<<20-10) + `"`},
		"a long one, a large pattern":  {schema: `{"pattern":"` + large + `"}`, value: `"` + strings.Repeat("x", 1<<20-10) + `"`, wantErr: "too long a string"},
		"many strings, large patterns": {schema: `{"items":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"pattern":"`+large+`|a*"},`, 40), ",") + `]}}`, value: `["` + strings.Repeat(strings.Repeat("x", 10_000)+`","`, 100) + `z"]`, wantErr: "too much work"},
		"many keys, large patterns":    {schema: `{"patternProperties":{"` + large + `":true,"` + large + `a":true}}`, value: `{` + strings.Join(keys, ",") + `}`, wantErr: "too much work"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := CompileSchema([]byte(tc.schema))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			err = s.Validate([]byte(tc.value))
			t.Log(time.Since(start))
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error %.200v, want %q", err, tc.wantErr)
			}
		})
	}
}
