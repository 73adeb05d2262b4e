package recipetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/codeact-dev/codeact-operator/runtime/fixture"
)

// WriteText writes the report for people: one line for each test, what differs
// under each that failed, and a summary.
func WriteText(w io.Writer, r *Report) error {
	var b bytes.Buffer
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "FAIL  %s\n", plain(p.text))
	}
	for _, x := range r.Recipes {
		for _, t := range x.Tests {
			verdict := "ok  "
			if !t.Passed {
				verdict = "FAIL"
			}
			fmt.Fprintf(&b, "%s  %s/%s  %s  %s\n", verdict, x.Name, plain(t.Name), count(len(t.Calls), "call"), short(t.Duration))
			for _, d := range t.Diffs {
				detail(&b, x, d)
			}
		}
		if len(x.Tests) == 0 && r.Skipped == 0 {
			fmt.Fprintf(&b, "none  %s has no tests\n", x.Name)
		}
	}
	r.summary(&b)
	_, err := w.Write(b.Bytes())
	return err
}

// detail writes one difference.
func detail(b *bytes.Buffer, x Recipe, d fixture.Diff) {
	fmt.Fprintf(b, "      %s\n", plain(d.Title()))
	if d.Want != "" {
		fmt.Fprintf(b, "        want  %s\n", plain(d.Want))
	}
	if d.Got != "" {
		fmt.Fprintf(b, "        got   %s\n", plain(d.Got))
	}
	if d.Kind == fixture.KindReason {
		fmt.Fprintf(b, "        in    %s\n", plain(x.source))
	}
}

// summary writes which tools no test calls, and the counts.
func (r *Report) summary(b *bytes.Buffer) {
	tools, uncalled := 0, 0
	for _, x := range r.Recipes {
		if tools += x.Tools; len(x.Uncalled) > 0 {
			uncalled += len(x.Uncalled)
			fmt.Fprintf(b, "      no test of %s calls %s\n", x.Name, strings.Join(x.Uncalled, ", "))
		}
	}
	fmt.Fprintf(b, "%d passed, %d failed", r.Passed, r.Failed+len(r.Problems))
	if r.Skipped > 0 {
		fmt.Fprintf(b, ", %d not chosen", r.Skipped)
	} else {
		fmt.Fprintf(b, "; %d of %s called", tools-uncalled, count(tools, "declared tool"))
	}
	fmt.Fprintf(b, "; %s\n", short(r.Duration))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func short(d time.Duration) string { return d.Round(time.Millisecond / 10).String() }

// plain keeps what a program or a file says from steering the terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// WriteJSON writes the report for programs.
func WriteJSON(w io.Writer, r *Report) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
