package recipetest

import (
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/codeact-dev/codeact-operator/runtime/fixture"
)

// The elements of JUnit's XML, as far as GitLab and Jenkins both read them.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		ClassName string        `xml:"classname,attr"`
		File      string        `xml:"file,attr,omitempty"`
		Time      string        `xml:"time,attr"`
		Failure   *junitProblem `xml:"failure"`
		Error     *junitProblem `xml:"error"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the report as JUnit XML: a suite for each recipe, and one for
// what could not be read.
func WriteJUnit(w io.Writer, r *Report) error {
	out := junitSuites{
		Name: "codeact recipe test", Tests: r.Passed + r.Failed + len(r.Problems), Failures: r.Failed, Errors: len(r.Problems), Time: seconds(r.Duration),
	}
	for _, x := range r.Recipes {
		out.Suites = append(out.Suites, x.junit())
	}
	if len(r.Problems) > 0 {
		out.Suites = append(out.Suites, r.unread())
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (x *Recipe) junit() junitSuite {
	s := junitSuite{Name: x.Name, Tests: len(x.Tests)}
	var took time.Duration
	for _, t := range x.Tests {
		took += t.Duration
		c := junitCase{Name: t.Name, ClassName: x.Name, File: filepath.ToSlash(x.source), Time: seconds(t.Duration)}
		if !t.Passed {
			s.Failures++
			c.Failure = failureOf(t)
		}
		s.Cases = append(s.Cases, c)
	}
	s.Time = seconds(took)
	return s
}

func failureOf(t fixture.Result) *junitProblem {
	p := &junitProblem{Message: t.Diffs[0].Title(), Type: string(t.Diffs[0].Kind)}
	var b strings.Builder
	for _, d := range t.Diffs {
		fmt.Fprintf(&b, "%s\n  want  %s\n  got   %s\n", d.Title(), d.Want, d.Got)
	}
	p.Text = b.String()
	return p
}

func (r *Report) unread() junitSuite {
	s := junitSuite{Name: "recipes that cannot be read", Tests: len(r.Problems), Errors: len(r.Problems), Time: seconds(0)}
	for _, p := range r.Problems {
		kind := string(p.Reason)
		if kind == "" {
			kind = "Manifest"
		}
		s.Cases = append(s.Cases, junitCase{
			Name: p.Path, ClassName: "recipe", File: filepath.ToSlash(p.Path), Time: seconds(0),
			Error: &junitProblem{Message: p.Message, Type: kind, Text: p.text},
		})
	}
	return s
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
