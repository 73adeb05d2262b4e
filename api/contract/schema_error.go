package contract

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// describeSchema is describe for a schema that is none. Which words JSON Schema has
// for a type is no secret.
func describeSchema(ve *jsonschema.ValidationError) string {
	return strings.Replace(describe(ve), "does not satisfy enum (rule enum)", leaf(ve).Message, 1)
}

// describe names one place in the value and the rule that it breaks. Of several it is
// always the same one: a program may read the message, and its executions are alike.
// Where the library's own message quotes the value, it is worded here.
func describe(ve *jsonschema.ValidationError) string {
	ve = leaf(ve)
	at := ve.InstanceLocation
	if at == "" {
		at = "/"
	}
	rule := ruleOf(ve.KeywordLocation)
	msg := ve.Message
	switch rule {
	case "enum", "const", "pattern", "format", "multipleOf":
		msg = "does not satisfy " + rule
	case "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum":
		// "must be <= 10 but found 11": the bound is the schema's, the rest is not.
		msg, _, _ = strings.Cut(msg, " but found ")
	case "additionalProperties":
		msg = inOrder(msg)
	}
	return Truncate(fmt.Sprintf("at %s: %s (rule %s)", at, msg, rule), MaxMessageBytes)
}

// leaf is the deepest cause that comes first by its place in the value, and there by
// its place in the schema. The library finds them in the order of Go's maps, which is
// another one each time.
func leaf(ve *jsonschema.ValidationError) *jsonschema.ValidationError {
	if len(ve.Causes) == 0 {
		return ve
	}
	first := leaf(ve.Causes[0])
	for _, c := range ve.Causes[1:] {
		if x := leaf(c); compareErrors(x, first) < 0 {
			first = x
		}
	}
	return first
}

func compareErrors(a, b *jsonschema.ValidationError) int {
	return cmp.Or(comparePointers(a.InstanceLocation, b.InstanceLocation), comparePointers(a.KeywordLocation, b.KeywordLocation), cmp.Compare(a.Message, b.Message))
}

// comparePointers orders two JSON pointers by their segments, and indexes by number.
func comparePointers(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "/"), strings.Split(b, "/"), func(x, y string) int {
		if index(x) && index(y) {
			return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
		}
		return cmp.Compare(x, y)
	})
}

func index(segment string) bool {
	return segment != "" && strings.Trim(segment, "0123456789") == ""
}

// inOrder sorts the names in the library's message about additional properties:
// additionalProperties 'a', 'b' not allowed. A quote inside of a name has a
// backslash before it there.
func inOrder(msg string) string {
	const head, tail = "additionalProperties '", "' not allowed"
	names, ok := strings.CutPrefix(msg, head)
	names, also := strings.CutSuffix(names, tail)
	if !ok || !also {
		return msg
	}
	list := strings.Split(names, "', '")
	slices.Sort(list)
	return head + strings.Join(list, "', '") + tail
}
