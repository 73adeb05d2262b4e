package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Use says on which way the values of a schema are.
type Use bool

// The ways: to the server, where properties that are readOnly have no place, and
// back, where those that are writeOnly have none.
const (
	ForRequest  Use = false
	ForResponse Use = true
)

// maxSchemas bounds how many schemas one operation's are made of.
const maxSchemas = 8192

// Schemas makes JSON Schema 2020-12 of a document's schemas. What they refer to
// becomes $defs, which all that one Schemas made have in common.
type Schemas struct {
	d     *Document
	use   Use
	count int
	bytes int               // of what is taken over, see weigh
	names map[string]string // of definitions, by reference
	defs  map[string]any
	// Lost says what could not be taken over; the schemas accept more without it.
	Lost []string
}

// NewSchemas returns one without definitions.
func (d *Document) NewSchemas(u Use) *Schemas {
	return &Schemas{d: d, use: u, names: map[string]string{}, defs: map[string]any{}}
}

// Text is the whole schema whose root was made by s; nil for one that accepts
// everything.
func (s *Schemas) Text(root any) (json.RawMessage, error) {
	m, ok := root.(map[string]any)
	if root == true || ok && len(m) == 0 {
		return nil, nil
	}
	if ok && len(s.defs) > 0 {
		m = maps.Clone(m)
		m["$defs"] = s.defs
		root = m
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// Make makes one schema; x is one of the document.
func (s *Schemas) Make(x any) (any, error) { return s.make(x, nil, 0) }

// taken are the keywords whose values are taken over as they are.
var taken = []string{
	"title", "description", "type", "enum", "const", "default", "format", "deprecated", "required",
	"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
	"minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "minProperties", "maxProperties",
	"dependentRequired", "contentEncoding", "contentMediaType",
}

// single, many and named are the keywords that hold a schema, a list of them, and
// some by names.
var (
	single = []string{"additionalProperties", "items", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties"}
	many   = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	named  = []string{"properties", "patternProperties", "dependentSchemas"}
)

// strange are keywords that change what a reference means, or are one of another
// sort. An anchor alone means nothing.
var strange = []string{"$id", "$dynamicRef", "$recursiveRef"}

// make takes the names of properties that a schema around this one hides.
func (s *Schemas) make(x any, hidden []string, depth int) (any, error) {
	if b, ok := x.(bool); ok {
		return b, nil
	}
	in := object(x)
	if s.count++; s.count > maxSchemas || depth > maxDepth {
		return nil, errors.New("its schema is too large")
	}
	if in == nil {
		return nil, errors.New("a schema is neither an object nor a boolean")
	}
	if !s.weigh(in) {
		return nil, errors.New("its schema is too large")
	}
	out := map[string]any{}
	if ref, ok := in["$ref"].(string); ok {
		def, err := s.define(ref, depth)
		if err != nil {
			return nil, err
		}
		out["$ref"] = "#/$defs/" + def
		if s.d.old { // what stands beside a reference does not count
			return nullable(out, boolean(in["nullable"])), nil
		}
	}
	for _, k := range strange {
		if _, there := in[k]; there {
			return nil, fmt.Errorf("its schema has %s, which is not read", k)
		}
	}
	for _, k := range taken {
		if v, there := in[k]; there {
			out[k] = v
		}
	}
	if r := list(out["required"]); r != nil {
		out["required"] = distinct(r)
	}
	s.pattern(in, out)
	own := s.hidden(in, new(steps))
	slices.Sort(own)
	own = slices.Compact(own)
	if s.count += len(own); s.count > maxSchemas {
		return nil, errors.New("its schema is too large")
	}
	hidden = append(slices.Clone(hidden), own...)
	if err := s.parts(in, out, hidden, depth); err != nil {
		return nil, err
	}
	hide(out, hidden)
	bounds(out) // documents of 3.1 have the booleans of 3.0, too
	if s.d.old {
		return nullable(out, boolean(in["nullable"])), nil
	}
	return out, nil
}

func (s *Schemas) parts(in, out map[string]any, hidden []string, depth int) (err error) {
	for _, k := range single {
		if v, there := in[k]; there {
			if out[k], err = s.make(v, nil, depth+1); err != nil {
				return err
			}
		}
	}
	for _, k := range many {
		if _, there := in[k]; !there {
			continue
		}
		made := []any{}
		for _, v := range list(in[k]) {
			inherited := hidden
			if k == "prefixItems" {
				inherited = nil
			}
			m, err := s.make(v, inherited, depth+1)
			if err != nil {
				return err
			}
			made = append(made, m)
		}
		out[k] = made
	}
	for _, k := range named {
		if _, there := in[k]; !there {
			continue
		}
		made := map[string]any{}
		of := object(in[k])
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if k == "properties" && slices.Contains(hidden, name) {
				continue
			}
			if made[name], err = s.make(of[name], nil, depth+1); err != nil {
				return err
			}
		}
		out[k] = made
	}
	return nil
}

// define makes a definition of what a reference leads to, once.
func (s *Schemas) define(ref string, depth int) (string, error) {
	if name, ok := s.names[ref]; ok {
		return name, nil
	}
	x, err := s.d.at(ref)
	if err != nil {
		return "", err
	}
	name := refName(ref)
	for n := 2; ; n++ {
		if _, there := s.defs[name]; !there {
			break
		}
		name = fmt.Sprintf("%s_%d", refName(ref), n)
	}
	s.names[ref], s.defs[name] = name, true // for those that refer to themselves
	s.defs[name], err = s.make(x, nil, depth+1)
	return name, err
}

// pattern takes over a pattern that the runtime can match.
func (s *Schemas) pattern(in, out map[string]any) {
	p, there := in["pattern"]
	if !there {
		return
	}
	text, err := contract.Canonical(map[string]any{"pattern": p})
	if err == nil {
		_, err = contract.CompileSchema(text)
	}
	if err != nil {
		s.Lost = append(s.Lost, fmt.Sprintf("the pattern %.80q is not checked: it is not one of RE2", p))
		return
	}
	out["pattern"] = p
}

// hidden are the properties that have no place on this way.
func (s *Schemas) hidden(in map[string]any, n *steps) []string {
	if !n.another() {
		return nil
	}
	word := "readOnly"
	if s.use == ForResponse {
		word = "writeOnly"
	}
	var out []string
	for name, x := range object(in["properties"]) {
		p, err := s.d.follow(x)
		if err == nil && (boolean(p[word]) || !s.d.old && boolean(object(x)[word])) {
			out = append(out, name)
		}
	}
	for _, x := range list(in["allOf"]) {
		if p, err := s.d.follow(x); err == nil {
			out = append(out, s.hidden(p, n)...)
		}
	}
	return out
}

// hide takes hidden properties out of what a schema that was made requires.
func hide(out map[string]any, hidden []string) {
	if r := list(out["required"]); len(hidden) > 0 && len(r) > 0 {
		r = slices.DeleteFunc(slices.Clone(r), func(x any) bool { return slices.Contains(hidden, str(x)) })
		out["required"] = r
		if len(r) == 0 {
			delete(out, "required")
		}
	}
}

// distinct drops names that are there twice, which JSON Schema forbids.
func distinct(names []any) []any {
	out := []any{}
	for _, x := range names {
		if s, ok := x.(string); !ok || !slices.ContainsFunc(out, func(y any) bool { return y == s }) {
			out = append(out, x)
		}
	}
	return out
}

// bounds makes numbers of the exclusive bounds of 3.0, which are booleans.
func bounds(out map[string]any) {
	for exclusive, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		b, old := out[exclusive].(bool)
		if !old {
			continue
		}
		delete(out, exclusive)
		if v, there := out[bound]; b && there {
			out[exclusive] = v
			delete(out, bound)
		}
	}
}

// nullable lets null pass where 3.0 says so. That an enum has to name it then is
// known to few documents.
func nullable(out map[string]any, is bool) any {
	if !is {
		return out
	}
	if t := str(out["type"]); t != "" && out["allOf"] == nil && out["anyOf"] == nil && out["oneOf"] == nil && out["not"] == nil && out["const"] == nil {
		out["type"] = []any{t, "null"}
		if e := list(out["enum"]); e != nil && !slices.Contains(e, nil) {
			out["enum"] = append(slices.Clone(e), nil)
		}
		return out
	}
	whole := map[string]any{"anyOf": []any{out, map[string]any{"type": "null"}}}
	if text := strings.TrimSpace(str(out["description"])); text != "" {
		whole["description"] = text
		delete(out, "description")
	}
	return whole
}
