package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// WriteText writes findings for people: each with its place, an excerpt of the file
// and a caret below what is meant.
func WriteText(w io.Writer, found []Finding) error {
	var b bytes.Buffer
	for i := range found {
		f := &found[i]
		b.WriteString(f.Path)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
		}
		fmt.Fprintf(&b, ": %s: %s [%s]\n", f.Level, f.Message, f.Rule)
		f.excerpt(&b)
	}
	_, err := io.WriteString(w, strings.Map(visible, b.String()))
	return err
}

// The most characters of a line that are shown, before and after the place.
const before, after = 60, 40

func (f *Finding) excerpt(b *bytes.Buffer) {
	line, ok := f.line()
	if !ok || strings.TrimSpace(line) == "" {
		return
	}
	chars := []rune(strings.ReplaceAll(line, "\t", " "))
	at := min(max(f.Column-1, 0), len(chars))
	from, to := 0, len(chars)
	lead, trail := "", ""
	if at > before {
		from, lead = at-before, "…"
	}
	if to > at+after {
		to, trail = at+after, "…"
	}
	number := fmt.Sprint(f.Line)
	fmt.Fprintf(b, " %s | %s%s%s\n", number, lead, string(chars[from:to]), trail)
	fmt.Fprintf(b, " %s | %s^\n", strings.Repeat(" ", len(number)), strings.Repeat(" ", len([]rune(lead))+at-from))
}

// visible replaces what could command a terminal or turn the order of letters.
func visible(r rune) rune {
	if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
		return unicode.ReplacementChar
	}
	return r
}

// report is the JSON of findings: a contract with its readers.
type report struct {
	Findings []Finding `json:"findings"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
}

// WriteJSON writes findings for programs.
func WriteJSON(w io.Writer, found []Finding) error {
	r := report{Findings: found, Errors: Errors(found)}
	r.Warnings = len(found) - r.Errors
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	return writeJSON(w, r)
}

func writeJSON(w io.Writer, x any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(x)
}
