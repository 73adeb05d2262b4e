package check

import (
	"maps"
	"slices"
)

// Call is one use of tools in a source.
type Call struct {
	// Tool is the literal name of tools.call("name", ...), empty for another use.
	Tool string
	// Dynamic says that the use is another one: the name is no literal, or tools is
	// passed on as a value. Which tools it reaches, nobody can tell from the text.
	Dynamic bool
	// Line and Column are where tools stands, from 1; columns count characters.
	Line, Column int
}

// Calls lists the uses of tools in a source that Source accepts, in the order of
// the text. Of another source it lists none: it is judged by Source first.
func Calls(src string, maxBytes int64) []Call {
	if _, err := Source(src, maxBytes); err != nil {
		return nil
	}
	p := newParser(src)
	if p.parse() != nil {
		return nil
	}
	at := slices.Sorted(maps.Keys(p.toolSites))
	out := make([]Call, 0, len(at))
	for _, pos := range at {
		c := p.toolSites[pos]
		c.Line, c.Column = position(src, pos)
		out = append(out, c)
	}
	return out
}
