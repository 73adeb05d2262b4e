package toolimport

import (
	"strings"
	"unicode"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// maxLine bounds text of a source in a comment or message, in bytes.
const maxLine = 300

// oneLine makes text of a source fit for a comment and a terminal: nothing in it
// can end the line, or change how the rest of it looks.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
	return contract.Truncate(strings.TrimSpace(s), maxLine)
}
