// Package check judges a program before anything runs: its size, its syntax,
// and the uses of what the sandbox does not offer, each with line and column.
// It reads the syntax tree, never text: a forbidden word in a string, a comment
// or a property name is no matter. It needs no JavaScript engine, so that
// controllers and command lines give the sandbox's verdicts.
//
// QuickJS compiles the program all the same before it runs and has the last
// word; the little that only it can tell, such as the names of Unicode
// properties, has no line and column.
package check

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Info is what the check learns of a source that it accepts.
type Info struct {
	// ToolNames are the literal names in calls of tools.call, sorted, each once.
	ToolNames []string
	// Dynamic says that tools is also used in another way: with a name that is
	// no literal, or as a value that is passed on.
	Dynamic bool
	// HasMain says that the top level declares a plain function named main.
	HasMain bool
}

// Source checks the text of a program, which may have at most maxBytes bytes of
// UTF-8. The error is a *contract.Fault with Reason SourceTooLarge,
// SyntaxError or Prohibited; the latter two carry line and column, from 1,
// columns in characters. A syntax error comes before forbidden names, whatever
// their order; forbidden syntax is reported if it stands before the error.
func Source(src string, maxBytes int64) (Info, error) {
	if n := int64(len(src)); n > maxBytes {
		return Info{}, contract.Faultf(contract.ReasonSourceTooLarge, "the source has %d bytes, more than limits.sourceBytes, %d", n, maxBytes)
	}
	p := newParser(src)
	bad := p.parse()
	if f := p.forms.first; bad != nil && (f == nil || f.pos > bad.pos) {
		return Info{}, fault(src, bad)
	}
	if !p.awaitBound {
		for _, pos := range p.awaits {
			p.forms.add(pos, "await is not available; tools.call answers directly")
		}
	}
	if first := earliest(p.forms.first, p.names.first); first != nil {
		return Info{}, fault(src, first)
	}
	return Info{
		ToolNames: slices.Sorted(maps.Keys(p.toolNames)),
		Dynamic:   p.toolUses > p.toolCalls,
		HasMain:   p.mainPlain,
	}, nil
}

func newParser(src string) *parser {
	p := &parser{coverInit: -1, lastYield: -1, toolNames: map[string]bool{}, toolSites: map[int]Call{}}
	p.src = src
	return p
}

func earliest(a, b *problem) *problem {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	if b.pos < a.pos {
		return b
	}
	return a
}

func fault(src string, p *problem) *contract.Fault {
	return contract.Faultf(p.reason, "%s", p.message).At(position(src, p.pos))
}

// parse reads the whole source and answers its first syntax error, if any.
func (p *parser) parse() (bad *problem) {
	defer func() {
		if r := recover(); r != nil {
			pr, ok := r.(problem)
			if !ok { // a mistake of ours must not end the process that checks
				pr = problem{contract.ReasonSyntaxError, p.tok.pos, "the source cannot be read from here on"}
			}
			bad = &pr
		}
	}()
	if i := strings.IndexByte(p.src, 0); i >= 0 {
		syntaxError(i, "the source has a NUL character")
	}
	if i := invalidUTF8(p.src); i >= 0 {
		syntaxError(i, "the source is not UTF-8")
	}
	p.lineStart = true
	if strings.HasPrefix(p.src, "#!") {
		p.skipLine()
	}
	p.pushFunction(function{})
	p.pushScope(true)
	p.advance()
	p.directives(true)
	for p.tok.kind != tEOF {
		p.statement(true)
	}
	return nil
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(s string) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}
