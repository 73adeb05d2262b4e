package krm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/lint"
)

// Result is an entry of results, as the specification of KRM functions has it.
type Result struct {
	// Message begins with the line and the column where they are known.
	Message string `json:"message"`
	// Severity is "error" or "warning".
	Severity lint.Level `json:"severity"`
	// ResourceRef is the configuration where the mistake is one of it.
	ResourceRef *Ref `json:"resourceRef,omitempty"`
	// Field is what it is about in the configuration.
	Field *Field `json:"field,omitempty"`
	// File is the file of a recipe.
	File *File `json:"file,omitempty"`
	// Tags are the linter's rule, and line and column counted from 1.
	Tags map[string]string `json:"tags,omitempty"`
}

// Ref names an object.
type Ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// Field is a place in an object.
type Field struct {
	Path string `json:"path"`
}

// File is a file, seen from the working folder.
type File struct {
	Path string `json:"path"`
}

// resultOf words a finding of the linter.
func resultOf(f lint.Finding) Result {
	r := Result{
		Message: f.Message, Severity: f.Level, File: &File{Path: f.Path}, Tags: map[string]string{"rule": f.Rule},
	}
	if f.Line > 0 {
		r.Message = fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Message)
		r.Tags["line"], r.Tags["column"] = strconv.Itoa(f.Line), strconv.Itoa(f.Column)
	}
	return r
}

// failure is an error of the call itself.
func failure(format string, args ...any) Result {
	return Result{Severity: lint.Error, Message: contract.Truncate(fmt.Sprintf(format, args...), contract.MaxMessageBytes)}
}

// failed reports whether a result is an error.
func failed(results []Result) bool {
	return slices.ContainsFunc(results, func(r Result) bool { return r.Severity == lint.Error })
}

// text is the result in one line, for people: a terminal takes nothing in it for more
// than text.
func (r *Result) text() string {
	s := r.Message
	if r.Field != nil {
		s = r.Field.Path + ": " + s
	}
	var b strings.Builder
	for _, c := range s {
		if unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) {
			fmt.Fprintf(&b, `\u%04x`, c)
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}
