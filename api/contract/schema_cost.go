package contract

import (
	"errors"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// A schema is a tenant's, and so may the value be. The library bounds neither the
// work of a validation (twenty definitions that each refer twice to the next one
// are a million evaluations, forty are a trillion) nor its recursion, and a Go
// stack that overflows ends the process. What is below bounds both.

const (
	// maxSchemaDepth bounds the nesting of a schema's text.
	maxSchemaDepth = 256
	// maxSchemaObjects bounds the objects of a schema's text: the library takes the
	// second power of them to compile it, 20,000 empty properties 30 s.
	maxSchemaObjects = 4096
	// maxFrames bounds the recursion of a validation: the depth of the value times
	// the number of objects in the schema, each of which may refer to the next.
	maxFrames = 50_000
	// A validation may cost baseUnits, and unitsPerByte for each byte of the value.
	// A unit is about one schema that is held against one value, 1 to 3 us.
	baseUnits, unitsPerByte = 50_000, 4
	// maxPairs bounds the pairs of items that uniqueItems compares.
	maxPairs = 4_000_000
)

// errTooDear leaves a validation as a panic: the library has no other way out.
var errTooDear = errors.New("the schema asks for too much work: too many combinations of subschemas")

// meter counts the work of one validation at a time.
type meter struct{ units, most int }

// Compile implements jsonschema.ExtCompiler: every schema of the text is metered.
func (m *meter) Compile(_ jsonschema.CompilerContext, schema map[string]any) (jsonschema.ExtSchema, error) {
	x := &metered{meter: m, unique: schema["uniqueItems"] == true}
	for _, v := range schema { // what is no keyword counts, too: that is harmless
		switch v := v.(type) {
		case []any:
			x.fixed += len(v)
		case map[string]any:
			x.fixed += len(v)
		}
		x.fixed++
	}
	if p, ok := schema["pattern"].(string); ok {
		_, x.pattern, _ = compilePattern(p)
	}
	if m, ok := schema["patternProperties"].(map[string]any); ok {
		for p := range m {
			_, size, _ := compilePattern(p)
			x.keys += size
		}
	}
	return x, nil
}

// metered is one schema. It is asked after its own subschemas, so it pays for
// those that failed early and were not asked themselves.
type metered struct {
	*meter
	fixed  int
	unique bool
	// pattern is the size of its pattern, keys of those for keys together.
	pattern, keys int
}

// Validate implements jsonschema.ExtSchema.
func (x *metered) Validate(_ jsonschema.ValidationContext, v any) error {
	n := 0
	switch v := v.(type) {
	case string:
		n = len(v) * x.pattern / stepsPerUnit
	case []any:
		n = len(v)
		if x.unique {
			n += n * n / 32 // a pair takes less than a schema
		}
	case map[string]any:
		n = len(v)
		if x.keys > 0 {
			for k := range v {
				n += (1 + len(k)) * x.keys / stepsPerUnit
			}
		}
	}
	if x.units += 1 + x.fixed + n; x.units > x.most {
		panic(errTooDear)
	}
	return nil
}

// shape is what bounds a validation before it begins. The longest is that of its
// strings, keys included, in bytes.
type shape struct{ depth, objects, pairs, longest int }

func shapeOf(x any) (s shape) {
	add := func(child any) {
		c := shapeOf(child)
		s.depth, s.objects, s.pairs = max(s.depth, c.depth), s.objects+c.objects, s.pairs+c.pairs
		s.longest = max(s.longest, c.longest)
	}
	switch x := x.(type) {
	case string:
		s.longest = len(x)
	case []any:
		for _, v := range x {
			add(v)
		}
		s.depth++
		s.pairs += len(x) * len(x) / 2
	case map[string]any:
		for k, v := range x {
			add(v)
			s.longest = max(s.longest, len(k))
		}
		s.depth++
		s.objects++
	}
	return s
}

// hasUnique reports whether a schema's text asks for unique items anywhere.
func hasUnique(x any) bool {
	switch x := x.(type) {
	case []any:
		return slices.ContainsFunc(x, hasUnique)
	case map[string]any:
		for k, v := range x {
			if k == "uniqueItems" && v == true || hasUnique(v) {
				return true
			}
		}
	}
	return false
}
