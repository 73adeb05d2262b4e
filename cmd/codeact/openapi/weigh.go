package openapi

import (
	"encoding/json"
	"slices"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// maxSchemaBytes bounds the texts that one operation's schemas are made of: what is
// larger is no schema of a declaration, and a document may have it in every operation.
const maxSchemaBytes = 4 * contract.MaxSchemaBytes

// weighed are the keywords whose values may be of any size.
var weighed = slices.Concat(taken, []string{"pattern"})

// weigh counts what is taken over of one schema, without those within it, and reports
// whether all together is not too much.
func (s *Schemas) weigh(in map[string]any) bool {
	if !few(in) {
		return false
	}
	for _, k := range weighed {
		if s.bytes += weight(in[k], maxSchemaBytes-s.bytes); s.bytes > maxSchemaBytes {
			return false
		}
	}
	for _, k := range named {
		for name := range object(in[k]) {
			s.bytes += len(name)
		}
	}
	return s.bytes <= maxSchemaBytes
}

// few reports whether a schema has no more members than all schemas of an operation
// may be: lists of names are compared with each other.
func few(in map[string]any) bool {
	return len(object(in["properties"])) <= maxSchemas && len(list(in["required"])) <= maxSchemas
}

// weight is about the size of a value as JSON, in bytes; it is not counted further than
// just above most.
func weight(x any, most int) int {
	n := 2
	switch x := x.(type) {
	case string:
		n += len(x)
	case json.Number:
		n += len(x)
	case []any:
		for _, v := range x {
			if n > most {
				break
			}
			n += weight(v, most-n)
		}
	case map[string]any:
		for k, v := range x {
			if n > most {
				break
			}
			n += len(k) + weight(v, most-n)
		}
	}
	return n
}
