package openapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

func read(t *testing.T, text string) *Document {
	t.Helper()
	d, err := Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRead(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+2) + strings.Repeat("]", maxDepth+2)
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 8), ", "))
	}
	tests := map[string]struct {
		text    string
		wantErr string
	}{
		"3.0":                  {text: "openapi: 3.0.4"},
		"3.1 as a number":      {text: "openapi: 3.1"},
		"JSON":                 {text: `{"openapi":"3.1.0","info":{"title":"\ud83d\ude00 \/"}}`},
		"almost JSON":          {text: `{openapi: "3.1.0"}`},
		"3.2":                  {text: "openapi: 3.2.0", wantErr: `openapi is "3.2.0": OpenAPI 3.0 and 3.1 are read`},
		"no version":           {text: "info: {}", wantErr: "OpenAPI 3.0 and 3.1 are read"},
		"Swagger":              {text: "swagger: '2.0'", wantErr: "Swagger 2.0"},
		"a list":               {text: "[]", wantErr: "not an object"},
		"nothing":              {text: "", wantErr: "empty"},
		"neither":              {text: "a: [", wantErr: "neither YAML nor JSON"},
		"a key twice":          {text: "openapi: 3.0.0\nopenapi: 3.1.0", wantErr: "twice"},
		"a key that is a list": {text: "openapi: 3.0.0\n? [a]\n: b", wantErr: "a key that is no text"},
		"too deep":             {text: "openapi: 3.0.0\nx: " + deep, wantErr: "nested more than"},
		"too deep in JSON":     {text: `{"openapi":"3.0.0","x":` + deep + `}`, wantErr: "nested more than"},
		"a billion laughs":     {text: "openapi: 3.0.0\n" + laughs.String(), wantErr: "values"},
		"an alias of itself":   {text: "openapi: 3.0.0\nx: &x [*x]", wantErr: ""},
		"too large":            {text: "openapi: 3.0.0\n#" + strings.Repeat("x", MaxBytes), wantErr: "more than 16777216 bytes"},
		"not a number":         {text: "openapi: 3.0.0\nx: .nan", wantErr: "JSON does not have"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]byte(tc.text))
			if name == "an alias of itself" {
				if err == nil {
					t.Error("it ends")
				}
				return
			}
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
		})
	}
}

// TestValues: YAML has what JSON does not.
func TestValues(t *testing.T) {
	d := read(t, `openapi: 3.0.0
x: {date: 2024-02-29, hex: 0x10, big: 9007199254740993, float: 1.50, half: .5, yes: yes, on: on, "true": true, 200: ok, none: ~, binary: !!binary aGk=}
base: &base {a: 1, b: 2}
more: {<<: *base, b: 3}
lots: {<<: [*base, {c: 4, a: 9}]}
`)
	want := map[string]any{
		"date": "2024-02-29", "hex": json.Number("16"), "big": json.Number("9007199254740993"), "float": json.Number("1.50"), "half": json.Number("0.5"),
		"yes": "yes", "on": "on", "true": true, "200": "ok", "none": nil, "binary": "aGk=",
	}
	if diff := cmp.Diff(want, d.root["x"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	merged := []any{map[string]any{"a": json.Number("1"), "b": json.Number("3")}, map[string]any{"a": json.Number("1"), "b": json.Number("2"), "c": json.Number("4")}}
	if diff := cmp.Diff(merged, []any{d.root["more"], d.root["lots"]}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReferences(t *testing.T) {
	d := read(t, `openapi: 3.0.0
a/b: {"c~d": [{x: 1}, {y: 2}]}
"e f": {z: 3}
loop: {$ref: "#/pool"}
pool: {$ref: "#/loop"}
`)
	tests := map[string]struct{ ref, want, wantErr string }{
		"escapes":        {ref: "#/a~1b/c~0d/1", want: `{"y":2}`},
		"percent":        {ref: "#/e%20f", want: `{"z":3}`},
		"nothing there":  {ref: "#/x", wantErr: "leads to nothing"},
		"no such item":   {ref: "#/a~1b/c~0d/2", wantErr: "leads to nothing"},
		"no pointer":     {ref: "#x", wantErr: "not a JSON pointer"},
		"a file":         {ref: "other.yaml#/x", wantErr: "leads out of the document"},
		"a server":       {ref: "http://127.0.0.1/x", wantErr: "leads out of the document"},
		"a circle":       {ref: "#/loop", wantErr: "circle"},
		"not an object":  {ref: "#/a~1b/c~0d", wantErr: "an object is missing"},
		"not an escape":  {ref: "#/%zz", wantErr: "not a JSON pointer"},
		"a long one":     {ref: strings.Repeat("x", 1000), wantErr: "xxx"},
		"the whole text": {ref: "#", want: "3.0.0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := d.follow(map[string]any{"$ref": tc.ref})
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) || len(err.Error()) > 300 {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			text, _ := json.Marshal(got)
			if err != nil || !strings.Contains(string(text), tc.want) {
				t.Errorf("%s, %v, want %s", text, err, tc.want)
			}
		})
	}
}

const schemas = `openapi: %s
components:
  schemas:
    Tree: {type: object, properties: {left: {$ref: "#/components/schemas/Tree"}}}
    A: {$ref: "#/components/schemas/B"}
    B: {$ref: "#/components/schemas/A"}
    Loop: {allOf: [{$ref: "#/components/schemas/Loop"}, {type: object}]}
    Id: {type: object, required: [id], properties: {id: {type: integer, readOnly: true}, pass: {type: string, writeOnly: true}}}
    Old: {type: string, readOnly: true}
  parameters:
    Tree: {schema: {type: integer}}
x: %s
`

func TestSchemas(t *testing.T) {
	tests := map[string]struct {
		version string // 3.0.3 without it
		use     Use
		schema  string
		want    string
		wantErr string
		lost    int
	}{
		"anything":                {schema: `{}`, want: ``},
		"anything in 3.1":         {version: "3.1.0", schema: `true`, want: ``},
		"what means nothing":      {schema: `{type: string, example: x, xml: {}, x-y: 1, externalDocs: {}, discriminator: {propertyName: a}}`, want: `{"type":"string"}`},
		"nullable":                {schema: `{type: string, nullable: true}`, want: `{"type":["string","null"]}`},
		"nullable enum":           {schema: `{type: string, nullable: true, enum: [a]}`, want: `{"enum":["a",null],"type":["string","null"]}`},
		"nullable enum with null": {schema: `{type: string, nullable: true, enum: [a, null]}`, want: `{"enum":["a",null],"type":["string","null"]}`},
		"nullable composition":    {schema: `{nullable: true, description: D, allOf: [{type: string}]}`, want: `{"anyOf":[{"allOf":[{"type":"string"}]},{"type":"null"}],"description":"D"}`},
		"nullable reference":      {schema: `{nullable: true, $ref: "#/components/schemas/Old"}`, want: `{"$defs":{"Old":{"type":"string"}},"anyOf":[{"$ref":"#/$defs/Old"},{"type":"null"}]}`},
		"nullable in 3.1":         {version: "3.1.0", schema: `{type: string, nullable: true}`, want: `{"type":"string"}`},
		"exclusive":               {schema: `{minimum: 1, exclusiveMinimum: true, maximum: 2, exclusiveMaximum: false}`, want: `{"exclusiveMinimum":1,"maximum":2}`},
		"exclusive in 3.1":        {version: "3.1.0", schema: `{exclusiveMinimum: 1}`, want: `{"exclusiveMinimum":1}`},
		"beside a reference":      {schema: `{$ref: "#/components/schemas/Old", minLength: 3}`, want: `{"$defs":{"Old":{"type":"string"}},"$ref":"#/$defs/Old"}`},
		"beside a reference, 3.1": {version: "3.1.0", schema: `{$ref: "#/components/schemas/Old", minLength: 3}`, want: `{"$defs":{"Old":{"type":"string"}},"$ref":"#/$defs/Old","minLength":3}`},
		"a circle":                {schema: `{$ref: "#/components/schemas/Tree"}`, want: `{"$defs":{"Tree":{"properties":{"left":{"$ref":"#/$defs/Tree"}},"type":"object"}},"$ref":"#/$defs/Tree"}`},
		"two of one name":         {schema: `{anyOf: [{$ref: "#/components/schemas/Tree"}, {$ref: "#/components/parameters/Tree/schema"}, {$ref: "#/components/parameters/Tree"}]}`, want: `{"$defs":{"Tree":{"properties":{"left":{"$ref":"#/$defs/Tree"}},"type":"object"},"Tree_2":{},"schema":{"type":"integer"}},"anyOf":[{"$ref":"#/$defs/Tree"},{"$ref":"#/$defs/schema"},{"$ref":"#/$defs/Tree_2"}]}`},
		"read only":               {schema: `{$ref: "#/components/schemas/Id"}`, want: `{"$defs":{"Id":{"properties":{"pass":{"type":"string"}},"type":"object"}},"$ref":"#/$defs/Id"}`},
		"write only":              {use: ForResponse, schema: `{$ref: "#/components/schemas/Id"}`, want: `{"$defs":{"Id":{"properties":{"id":{"type":"integer"}},"required":["id"],"type":"object"}},"$ref":"#/$defs/Id"}`},
		"read only beside":        {schema: `{allOf: [{$ref: "#/components/schemas/Id"}, {required: [id, name], properties: {name: {}}}]}`, want: `{"$defs":{"Id":{"properties":{"pass":{"type":"string"}},"type":"object"}},"allOf":[{"$ref":"#/$defs/Id"},{"properties":{"name":{}},"required":["name"]}]}`},
		"read only by reference":  {schema: `{properties: {o: {$ref: "#/components/schemas/Old"}}, required: [o]}`, want: `{"properties":{}}`},
		"keywords of 3.1":         {version: "3.1.0", schema: `{if: {const: 1}, then: true, prefixItems: [{type: "null"}], patternProperties: {"^x": false}, $comment: c, examples: [1]}`, want: `{"if":{"const":1},"patternProperties":{"^x":false},"prefixItems":[{"type":"null"}],"then":true}`},
		"a pattern":               {schema: `{pattern: "^a+$"}`, want: `{"pattern":"^a+$"}`},
		"a pattern that is lost":  {schema: `{pattern: "(?=a)"}`, want: ``, lost: 1},
		"a property of a keyword": {schema: `{properties: {$ref: {type: string}, $id: {type: string}, nullable: {type: boolean}}}`, want: `{"properties":{"$id":{"type":"string"},"$ref":{"type":"string"},"nullable":{"type":"boolean"}}}`},
		"required twice":          {schema: `{required: [a, b, a]}`, want: `{"required":["a","b"]}`},
		"an anchor":               {version: "3.1.0", schema: `{$anchor: x, $recursiveAnchor: true}`, want: ``},
		"an id":                   {version: "3.1.0", schema: `{$id: "http://x/y"}`, wantErr: "$id"},
		"dynamic":                 {version: "3.1.0", schema: `{$dynamicRef: "#x"}`, wantErr: "$dynamicRef"},
		"elsewhere":               {schema: `{items: {$ref: "x.yaml"}}`, wantErr: "leads out"},
		"no schema":               {schema: `{items: 7}`, wantErr: "neither an object nor a boolean"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.version == "" {
				tc.version = "3.0.3"
			}
			d := read(t, fmt.Sprintf(schemas, tc.version, tc.schema))
			s := d.NewSchemas(tc.use)
			root, err := s.Make(d.root["x"])
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := s.Text(root)
			if err != nil || string(text) != tc.want || len(s.Lost) != tc.lost {
				t.Errorf("%v, lost %q\n%s\n%s", err, s.Lost, text, tc.want)
			}
			if _, err := contract.CompileSchema(text); err != nil {
				t.Errorf("it does not compile: %v", err)
			}
		})
	}
}

func TestFlatten(t *testing.T) {
	tests := map[string]struct {
		version, schema string
		want            *Flat // nil is not flat
	}{
		"an object":       {schema: `{type: object, description: D, required: [a], properties: {a: {type: string}}}`, want: &Flat{Description: "D", Properties: map[string]any{"a": map[string]any{"type": "string"}}, Required: []string{"a"}}},
		"parts":           {schema: `{allOf: [{$ref: "#/components/schemas/Id"}, {required: [id, b], properties: {b: {}}}]}`, want: &Flat{Properties: map[string]any{"pass": map[string]any{"type": "string"}, "b": map[string]any{}}, Required: []string{"b"}}},
		"twice":           {schema: `{allOf: [{properties: {a: {type: string}}}, {properties: {a: {minLength: 1}}}]}`, want: &Flat{Properties: map[string]any{"a": map[string]any{"allOf": []any{map[string]any{"type": "string"}, map[string]any{"minLength": json.Number("1")}}}}}},
		"closed":          {schema: `{type: object, additionalProperties: false}`, want: &Flat{Properties: map[string]any{}, Closed: true}},
		"a map":           {schema: `{type: object, additionalProperties: {type: string}}`, want: &Flat{Properties: map[string]any{}, Additional: map[string]any{"type": "string"}}},
		"beside a ref":    {version: "3.1.0", schema: `{$ref: "#/components/schemas/Tree", required: [left]}`, want: &Flat{Properties: map[string]any{"left": map[string]any{"$ref": "#/$defs/Tree"}}, Required: []string{"left"}}},
		"parts, closed":   {schema: `{allOf: [{properties: {a: {}}, additionalProperties: false}, {properties: {b: {}}}]}`},
		"a choice":        {schema: `{type: object, oneOf: [{properties: {a: {}}}]}`},
		"a list":          {schema: `{type: array}`},
		"anything":        {schema: `{}`},
		"counted":         {schema: `{type: object, minProperties: 1}`},
		"a circle":        {schema: `{$ref: "#/components/schemas/Loop"}`},
		"a circle of ref": {schema: `{$ref: "#/components/schemas/A"}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.version == "" {
				tc.version = "3.0.3"
			}
			d := read(t, fmt.Sprintf(schemas, tc.version, tc.schema))
			got, ok, err := d.NewSchemas(ForRequest).Flatten(d.root["x"])
			if err != nil || ok != (tc.want != nil) {
				t.Fatalf("flat: %v, %v", ok, err)
			}
			if ok {
				if diff := cmp.Diff(*tc.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestKindOf(t *testing.T) {
	tests := map[string]struct {
		schema string
		want   Kind
	}{
		"text":             {`{type: string}`, ScalarKind},
		"text or null":     {`{type: [integer, "null"]}`, ScalarKind},
		"a list":           {`{type: array, items: {type: string}}`, ListKind},
		"a list of any":    {`{type: array}`, ListKind},
		"a list of lists":  {`{type: array, items: {type: array}}`, OtherKind},
		"an object":        {`{properties: {}}`, OtherKind},
		"a choice":         {`{oneOf: [{type: string}, {type: integer}]}`, ScalarKind},
		"a mixed choice":   {`{anyOf: [{type: string}, {type: array, items: {type: string}}]}`, OtherKind},
		"a part":           {`{allOf: [{$ref: "#/components/schemas/Tree"}]}`, OtherKind},
		"nothing":          {`{}`, AnyKind},
		"a circle":         {`{$ref: "#/components/schemas/A"}`, AnyKind},
		"a circle of part": {`{$ref: "#/components/schemas/Loop"}`, AnyKind},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := read(t, fmt.Sprintf(schemas, "3.1.0", tc.schema))
			if got := d.KindOf(d.root["x"]); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

// TestDoublings: a document whose schemas refer to the next one twice is no work.
func TestDoublings(t *testing.T) {
	for _, k := range []string{"allOf", "oneOf", "anyOf"} {
		var text strings.Builder
		text.WriteString("openapi: 3.0.0\n")
		for i := range 60 {
			fmt.Fprintf(&text, "s%d: {%s: [{$ref: '#/s%d'}, {$ref: '#/s%d'}], properties: {a%d: {readOnly: true}}}\n", i, k, i+1, i+1, i)
		}
		text.WriteString("s60: {type: object}\n")
		d := read(t, text.String())
		x := map[string]any{"$ref": "#/s0"}
		s := d.NewSchemas(ForRequest)
		if _, ok, err := s.Flatten(x); ok || err != nil {
			t.Errorf("%s: flat %v, %v", k, ok, err)
		}
		if _, open := d.Open(x); open {
			t.Errorf("%s: it is open", k)
		}
		_ = d.KindOf(x)
		if _, err := s.Make(x); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
}
