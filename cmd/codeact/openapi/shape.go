package openapi

import (
	"maps"
	"slices"
)

// Kind says of which sort the values of a schema are.
type Kind int

// The kinds. AnyKind is one that cannot be told.
const (
	AnyKind Kind = iota
	ScalarKind
	ListKind // of scalars
	OtherKind
)

// KindOf says of which kind the values of a document's schema are.
func (d *Document) KindOf(x any) Kind { return d.kind(x, new(steps)) }

func (d *Document) kind(x any, n *steps) Kind {
	m, err := d.follow(x)
	if err != nil || !n.another() {
		return AnyKind
	}
	switch types := typesOf(m); {
	case len(types) == 1 && types[0] == "array":
		if k := d.kind(m["items"], n); k == ScalarKind || k == AnyKind {
			return ListKind
		}
		return OtherKind
	case slices.Contains(types, "array"), slices.Contains(types, "object"), m["properties"] != nil:
		return OtherKind
	case len(types) > 0:
		return ScalarKind
	}
	for _, k := range []string{"allOf", "oneOf", "anyOf"} {
		kind := AnyKind
		for _, part := range list(m[k]) {
			p := d.kind(part, n)
			if p == AnyKind {
				continue
			}
			if kind != AnyKind && kind != p {
				return OtherKind
			}
			kind = p
		}
		if kind != AnyKind {
			return kind
		}
	}
	return AnyKind
}

// typesOf are the types of a schema without null.
func typesOf(m map[string]any) []string {
	var out []string
	for _, t := range append(list(m["type"]), m["type"]) {
		if s := str(t); s != "" && s != "null" {
			out = append(out, s)
		}
	}
	return out
}

// Flat is an object schema without composition.
type Flat struct {
	Description string
	// Properties are schemas that were made; those without a place on the way are
	// missing.
	Properties map[string]any
	Required   []string
	// Closed says that there are no further properties; Additional is the schema
	// of those, or nil.
	Closed     bool
	Additional any
}

// unflat are the keywords of a schema that says more than which properties there
// are.
var unflat = slices.Concat(strange, many[1:], []string{
	"enum", "const", "not", "if", "then", "else", "propertyNames", "unevaluatedProperties", "patternProperties",
	"dependentSchemas", "dependentRequired", "minProperties", "maxProperties",
})

// Flatten makes an object schema without composition of one that has none but
// allOf; ok is false when that cannot be.
func (s *Schemas) Flatten(x any) (f Flat, ok bool, err error) {
	w := &flattener{d: s.d, properties: map[string][]any{}}
	if !w.part(x, 0) || !w.object || w.described > 1 && (w.closed || w.additional != nil) {
		return f, false, nil
	}
	f = Flat{Description: w.description, Properties: map[string]any{}, Closed: w.closed}
	hidden := s.hidden(map[string]any{"allOf": []any{x}}, new(steps))
	for _, name := range slices.Sorted(maps.Keys(w.properties)) {
		if slices.Contains(hidden, name) {
			continue
		}
		all := w.properties[name]
		made := make([]any, len(all))
		for i, p := range all {
			if made[i], err = s.Make(p); err != nil {
				return f, false, err
			}
		}
		f.Properties[name] = made[0]
		if len(made) > 1 {
			f.Properties[name] = map[string]any{"allOf": made}
		}
	}
	for _, name := range w.required {
		if !slices.Contains(hidden, name) && !slices.Contains(f.Required, name) {
			f.Required = append(f.Required, name)
		}
	}
	if w.additional != nil {
		f.Additional, err = s.Make(w.additional)
	}
	return f, true, err
}

type flattener struct {
	d           *Document
	n           steps
	properties  map[string][]any
	required    []string
	description string
	object      bool
	closed      bool
	additional  any
	described   int // how many parts have properties of their own
}

// part takes a schema in, if it can be flat.
func (w *flattener) part(x any, depth int) bool {
	m := object(x)
	if m == nil || !w.n.another() || !few(m) || len(w.required) > maxSchemas {
		return false
	}
	if ref, ok := m["$ref"].(string); ok {
		target, err := w.d.at(ref)
		if err != nil || !w.part(target, depth+1) {
			return false
		}
		if w.d.old {
			return true
		}
	}
	for _, k := range unflat {
		if _, there := m[k]; there {
			return false
		}
	}
	switch types := typesOf(m); {
	case slices.Contains(types, "object"):
		w.object = true
	case len(types) > 0:
		return false
	}
	if d := str(m["description"]); d != "" {
		w.description = d
	}
	w.take(m)
	for _, p := range list(m["allOf"]) {
		before := w.description
		if !w.part(p, depth+1) {
			return false
		}
		if depth == 0 && before != "" {
			w.description = before
		}
	}
	return true
}

func (w *flattener) take(m map[string]any) {
	if own := object(m["properties"]); len(own) > 0 {
		w.object = true
		w.described++
		for name, p := range own {
			w.properties[name] = append(w.properties[name], p)
		}
	}
	for _, name := range list(m["required"]) {
		w.required = append(w.required, str(name))
	}
	a, there := m["additionalProperties"]
	if !there || a == true || a != false && len(object(a)) == 0 {
		return
	}
	if a == false {
		w.closed = true
	} else {
		w.additional = a
	}
	if len(object(m["properties"])) == 0 {
		w.described++ // it speaks of the properties of others
	}
}

// closing are keywords that count or name all properties of an object, so that
// others cannot stand beside them.
var closing = []string{
	"additionalProperties", "unevaluatedProperties", "propertyNames", "patternProperties", "minProperties", "maxProperties",
	"not", "if", "then", "else", "dependentSchemas", "enum", "const",
}

// Open reports whether other properties may stand beside those of an object
// schema, and names those that it has.
func (d *Document) Open(x any) (names []string, open bool) {
	return d.open(x, new(steps))
}

func (d *Document) open(x any, n *steps) (names []string, open bool) {
	m, err := d.follow(x)
	if err != nil || !n.another() {
		return nil, false
	}
	if beside := object(x); beside["$ref"] != nil && len(beside) > 1 && !d.old {
		return nil, false
	}
	if types := typesOf(m); len(types) > 0 && !slices.Contains(types, "object") {
		return nil, false
	}
	for _, k := range closing {
		if v, there := m[k]; there && v != true {
			return nil, false
		}
	}
	names = slices.Sorted(maps.Keys(object(m["properties"])))
	for _, k := range []string{"allOf", "oneOf", "anyOf"} {
		for _, part := range list(m[k]) {
			more, ok := d.open(part, n)
			if !ok {
				return nil, false
			}
			names = append(names, more...)
		}
	}
	return names, true
}

// OnlyValue is the one value that a schema lets pass, which is fixed then, or else
// its default, as text.
func (d *Document) OnlyValue(x any) (value string, fixed, there bool) {
	m, err := d.follow(x)
	if err != nil || d.KindOf(x) != ScalarKind {
		return "", false, false
	}
	v, fixed := m["const"]
	if e := list(m["enum"]); !fixed && len(e) == 1 {
		v, fixed = e[0], true
	}
	if !fixed {
		v = m["default"]
	}
	return text(v), fixed, v != nil
}
