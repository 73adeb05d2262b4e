package toolimport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Closed is the end of every proposed grant: it has passed, so that no run is
// pinned with it, whoever applies the draft as it is.
const Closed = "2000-01-01T00:00:00Z"

// longLine is how long a string may be, in bytes, before it gets lines of its own.
const longLine = 80

// page writes YAML line by line: values by the library, comments by hand, for the
// library moves them.
type page struct {
	b   bytes.Buffer
	err error
}

func (p *page) line(indent int, format string, args ...any) {
	fmt.Fprintf(&p.b, "%s%s\n", strings.Repeat(" ", indent), fmt.Sprintf(format, args...))
}

func (p *page) comment(indent int, text string) {
	for _, l := range wrap(oneLine(text), 96-indent) {
		p.line(indent, "# %s", l)
	}
}

// field writes one key with its value.
func (p *page) field(indent int, key string, value *yaml.Node) {
	m := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{text(key), value}}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(m); err != nil {
		p.err = err
		return
	}
	for l := range strings.Lines(out.String()) {
		if l != "\n" {
			p.b.WriteString(strings.Repeat(" ", indent))
		}
		p.b.WriteString(visible(l))
	}
}

// visible escapes what the library writes as it is although nobody sees it, such
// as marks that change the direction of text: a reviewer must see what is applied.
// Only quoted strings hold such characters (see text).
func visible(line string) string {
	var b strings.Builder
	for _, r := range line {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// schema writes a JSON Schema.
func (p *page) schema(indent int, key string, s json.RawMessage) {
	if len(s) == 0 {
		return
	}
	x, err := contract.DecodeJSON(s)
	if err != nil {
		p.err = err
		return
	}
	p.field(indent, key, node(x))
}

// YAML returns the draft as a document of a manifest.
func (d Draft) YAML() ([]byte, error) {
	p := &page{}
	p.comment(0, "From "+d.From)
	for _, r := range d.Review {
		p.comment(0, "REVIEW: "+r)
	}
	p.line(0, "apiVersion: codeact.dev/v1alpha1\nkind: ToolGrant\nmetadata:")
	p.field(2, "name", text(d.Object))
	if d.Namespace != "" {
		p.field(2, "namespace", text(d.Namespace))
	}
	p.line(0, "spec:\n  tool:")
	p.field(4, "name", text(d.Tool.Name))
	if d.Tool.Description != "" {
		p.field(4, "description", text(d.Tool.Description))
	}
	p.comment(4, "REVIEW: guessed from "+d.Guess)
	p.line(4, "effect: %s", d.Tool.Effect)
	p.schema(4, "inputSchema", d.Tool.InputSchema)
	p.schema(4, "outputSchema", d.Tool.OutputSchema)
	if d.Auth != nil {
		p.line(4, "dependencies:\n      capabilities: [auth]")
	}
	p.backend(d.Backend)
	if d.Auth != nil {
		p.line(2, "auth:\n    secretRef:")
		p.field(6, "name", text(d.Auth.Name))
		p.field(6, "key", text(d.Auth.Key))
	}
	p.grant(d)
	return p.b.Bytes(), p.err
}

func (p *page) backend(b contract.Backend) {
	p.line(2, "backend:")
	if m := b.MCP; m != nil {
		p.line(4, "mcp:")
		p.field(6, "url", text(m.URL))
		p.field(6, "tool", text(m.Tool))
		return
	}
	h := b.HTTP
	p.line(4, "http:")
	p.line(6, "method: %s", h.Method)
	p.field(6, "url", text(h.URL))
	if len(h.Headers) > 0 {
		p.line(6, "headers:")
		for _, x := range h.Headers {
			p.line(8, "- name: %s", x.Name)
			p.field(10, "value", text(x.Value))
		}
	}
	if h.Response == contract.ResponseText {
		p.line(6, "response: %s", h.Response)
	}
}

// grant writes the authority, which is none, and how to give some.
func (p *page) grant(d Draft) {
	p.line(2, "grant:")
	p.comment(4, "CLOSED: notAfter has passed, so no run gets this tool. To open it, look at every REVIEW, "+
		"then move notAfter to the day on which this review shall be repeated (or drop it), and take in what is needed of the lines below.")
	p.line(4, "notAfter: %q", Closed)
	if d.Auth != nil {
		p.line(4, "# capabilities: [auth] # needed: without it no run gets a tool that is sent a credential")
	}
	p.line(4, "# recipes: [NAME] # only runs of these Recipes; every run of the namespace without it")
	p.line(4, "# maxCallsPerRun: 10")
	p.line(4, "# constraints:")
	p.line(4, "# - expression: %s", example(d.Tool.InputSchema))
	p.line(4, "#   message: what must hold for every call")
}

// example is a constraint over the first argument that can be written as one.
func example(schema json.RawMessage) string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(schema, &s) // a schema of another form has no such arguments
	var names []string
	for n := range s.Properties {
		if n != "" && len(n) <= maxName && strings.Trim(n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return "size(args) <= 3"
	}
	return "has(args." + slices.Min(names) + ")"
}

// first are the keywords of a schema that a reader wants to see before others.
var first = []string{"$schema", "type", "description", "title", "format", "enum", "const", "required", "additionalProperties", "properties", "items"}

func rank(key string) int {
	if i := slices.Index(first, key); i >= 0 {
		return i
	}
	if key == "$defs" {
		return len(first) + 1
	}
	return len(first)
}

// node turns decoded JSON into YAML, with its keys in a fixed order.
func node(x any) *yaml.Node {
	switch x := x.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode}
		keys := make([]string, 0, len(x))
		for k := range x {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, func(a, b string) int {
			if d := rank(a) - rank(b); d != 0 {
				return d
			}
			return strings.Compare(a, b)
		})
		for _, k := range keys {
			n.Content = append(n.Content, text(k), node(x[k]))
		}
		if len(keys) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		short := 0
		for _, v := range x {
			n.Content = append(n.Content, node(v))
			short += len(fmt.Sprint(v)) + 2
			if _, ok := v.(map[string]any); ok {
				short = longLine
			}
		}
		if short < longLine {
			n.Style = yaml.FlowStyle
		}
		return n
	case string:
		return text(x)
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: x.String()}
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(x)}
}

// words are booleans and null to readers of YAML 1.1, and strings to its writer.
var words = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

// text is a string: as a block where it has lines, or is long, and can be one.
func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	odd := strings.ContainsFunc(s, func(r rune) bool {
		return r != '\n' && (!unicode.IsPrint(r) || r == unicode.ReplacementChar)
	})
	block := strings.Contains(s, "\n") || len(s) > longLine
	switch {
	case slices.Contains(words, strings.ToLower(s)), odd, block && (s[0] == ' ' || s[0] == '\n' || strings.Contains(s, " \n") || strings.HasSuffix(s, " ")):
		n.Style = yaml.DoubleQuotedStyle
	case block:
		n.Style = yaml.LiteralStyle
	}
	return n
}

// wrap breaks one line at its blanks.
func wrap(s string, width int) []string {
	var out []string
	line := ""
	for w := range strings.FieldsSeq(s) {
		if line != "" && len(line)+1+len(w) > width {
			out = append(out, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	return append(out, line)
}
