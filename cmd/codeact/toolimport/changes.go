package toolimport

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/mcp"
)

// Kinds of a Change.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Change is one field in which a grant and its source differ.
type Change struct {
	// Path is a JSON pointer; its first token is a part of the grant, such as
	// inputSchema.
	Path string `json:"path"`
	// Change is Added, Removed or Changed, from the grant to the source.
	Change string `json:"change"`
	// Was is what the grant has, Is what the source has; nil is nothing.
	Was any `json:"was,omitempty"`
	Is  any `json:"is,omitempty"`
}

// String is one line: the path, and the values in compact JSON.
func (c Change) String() string {
	text := fmt.Sprintf("%-7s %s: ", c.Change, oneLine(c.Path))
	switch c.Change {
	case Added:
		return text + brief(c.Is)
	case Removed:
		return text + brief(c.Was)
	}
	return text + brief(c.Was) + " -> " + brief(c.Is)
}

func brief(x any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(x); err != nil {
		return "?"
	}
	return oneLine(b.String())
}

// Changes compares decoded JSON, with its numbers as json.Number. What is named is
// as deep as it can be; lists of plain values, such as required, are compared by
// what they hold.
func Changes(path string, was, is any) []Change {
	switch a := was.(type) {
	case map[string]any:
		if b, ok := is.(map[string]any); ok {
			return changedMembers(path, a, b)
		}
	case []any:
		if b, ok := is.([]any); ok {
			return changedItems(path, a, b)
		}
	}
	if same(was, is) {
		return nil
	}
	return []Change{{Path: path, Change: Changed, Was: was, Is: is}}
}

func changedMembers(path string, was, is map[string]any) []Change {
	var out []Change
	names := map[string]bool{}
	for k := range was {
		names[k] = true
	}
	for k := range is {
		names[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(names)) {
		at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(k)
		a, had := was[k]
		b, has := is[k]
		switch {
		case !had:
			out = append(out, Change{Path: at, Change: Added, Is: b})
		case !has:
			out = append(out, Change{Path: at, Change: Removed, Was: a})
		default:
			out = append(out, Changes(at, a, b)...)
		}
	}
	return out
}

func changedItems(path string, was, is []any) []Change {
	if !plainItems(was) || !plainItems(is) {
		var out []Change
		for i := range max(len(was), len(is)) {
			at := fmt.Sprintf("%s/%d", path, i)
			switch {
			case i >= len(was):
				out = append(out, Change{Path: at, Change: Added, Is: is[i]})
			case i >= len(is):
				out = append(out, Change{Path: at, Change: Removed, Was: was[i]})
			default:
				out = append(out, Changes(at, was[i], is[i])...)
			}
		}
		return out
	}
	var out []Change
	in := func(l []any, x any) bool {
		return slices.ContainsFunc(l, func(y any) bool { return same(x, y) })
	}
	for _, x := range was {
		if !in(is, x) {
			out = append(out, Change{Path: path, Change: Removed, Was: x})
		}
	}
	for _, x := range is {
		if !in(was, x) {
			out = append(out, Change{Path: path, Change: Added, Is: x})
		}
	}
	if len(out) == 0 && !slices.EqualFunc(was, is, same) {
		return []Change{{Path: path, Change: Changed, Was: was, Is: is}}
	}
	return out
}

// plainItems reports whether a list holds neither objects nor lists.
func plainItems(l []any) bool {
	return !slices.ContainsFunc(l, func(x any) bool {
		switch x.(type) {
		case map[string]any, []any:
			return true
		}
		return false
	})
}

// same compares values that are no objects or lists.
func same(a, b any) bool {
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	switch a := a.(type) {
	case map[string]any, []any:
		return false
	case json.Number:
		n, ok := b.(json.Number)
		return ok && mcp.SameNumber(a, n)
	}
	return a == b
}
