package recipefile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// Render writes a Recipe as YAML, always in the same bytes: the fields in the order
// of their declaration, the keys of schemas sorted, the program as it is written.
// What is read back from the text is the Recipe again, or there is an error.
func Render(r *v1alpha1.Recipe) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "apiVersion: %s\nkind: Recipe\nmetadata:\n", v1alpha1.GroupVersion)
	fields := []field{{"name", r.Name, true}, {"namespace", r.Namespace, r.Namespace != ""}, {"labels", r.Labels, len(r.Labels) > 0}}
	if err := write(&b, fields); err != nil {
		return nil, err
	}
	b.WriteString("spec:\n")
	s := r.Spec
	err := write(&b, []field{
		{"toolName", s.ToolName, s.ToolName != ""},
		{"description", s.Description, s.Description != ""},
		{"tools", s.Tools, len(s.Tools) > 0},
		{"limits", s.Limits, s.Limits != nil},
		{"inputSchema", s.InputSchema, s.InputSchema != nil},
		{"outputSchema", s.OutputSchema, s.OutputSchema != nil},
		{"sourceDigest", s.SourceDigest, s.SourceDigest != ""},
		{"source", s.Source, true},
		{"tests", s.Tests, len(s.Tests) > 0},
	})
	if err != nil {
		return nil, err
	}
	return b.Bytes(), same(r, b.Bytes())
}

// same reads the text back.
func same(r *v1alpha1.Recipe, text []byte) error {
	var got v1alpha1.Recipe
	if err := yaml.UnmarshalStrict(text, &got); err != nil {
		return err
	}
	was, err := r.ManifestDigest()
	if err != nil {
		return err
	}
	is, err := got.ManifestDigest()
	if err != nil {
		return err
	}
	if was != is || got.Name != r.Name || got.Namespace != r.Namespace || got.Spec.SourceDigest != r.Spec.SourceDigest ||
		!equality.Semantic.DeepEqual(got.Labels, r.Labels) {
		return fmt.Errorf("the Recipe has something that YAML cannot hold")
	}
	return nil
}

type field struct {
	name  string
	value any
	set   bool
}

func write(b *bytes.Buffer, fields []field) error {
	for _, f := range fields {
		if !f.set {
			continue
		}
		if text, ok := f.value.(string); ok {
			fmt.Fprintf(b, "  %s: %s\n", f.name, scalar(text))
			continue
		}
		text, err := yaml.Marshal(map[string]any{f.name: f.value})
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if line != "\n" {
				b.WriteString("  ")
			}
			b.WriteString(line)
		}
	}
	return nil
}

// scalar writes a string of a field that is indented by two: lines as a literal
// block, whatever YAML might take for something else between quotation marks.
func scalar(s string) string {
	if !strings.Contains(s, "\n") {
		text, err := yaml.Marshal(s)
		if line := strings.TrimSuffix(string(text), "\n"); err == nil && !strings.Contains(line, "\n") {
			return line
		}
		return quoted(s)
	}
	if !literal(s) {
		return quoted(s)
	}
	head, body := "|", s
	if s[0] == ' ' || s[0] == '\t' || s[0] == '\n' {
		head += "2" // the block would take its indentation from the text otherwise
	}
	switch trimmed := strings.TrimRight(s, "\n"); len(s) - len(trimmed) {
	case 0:
		head += "-"
		body += "\n"
	case 1:
	default:
		head += "+"
	}
	var b strings.Builder
	b.WriteString(head + "\n")
	for line := range strings.Lines(body) {
		if line != "\n" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// literal reports whether a block can hold the text as it is.
func literal(s string) bool {
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
		case r < ' ' || r >= 0x7f && r <= 0x9f, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff, r == utf8.RuneError:
			return false
		}
	}
	return strings.Trim(s, "\n \t") != ""
}

// quoted writes the string as JSON does, which YAML reads as well.
func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // a string is always JSON
		return ""
	}
	return strings.NewReplacer("\x7f", `\u007f`, "\ufeff", `\ufeff`, "\u0085", `\u0085`).Replace(strings.TrimSuffix(b.String(), "\n"))
}
