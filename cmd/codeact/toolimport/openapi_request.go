package toolimport

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/openapi"
)

// arguments are what a call takes, as its input schema is made of them.
type arguments struct {
	properties map[string]any
	required   []any
	query      []string // parts of the URL, in their order
	path       map[string]string
	// optional is how many optional parameters the URL still has room for.
	optional int
	// taken are the names of arguments that are in the body.
	taken []string
}

// request maps parameters and body to URL, headers and input schema.
func (m *mapping) request() error {
	m.args = arguments{properties: map[string]any{}, path: map[string]string{}}
	params, err := m.op.Parameters()
	if err != nil {
		return err
	}
	body, err := m.body()
	if err != nil {
		return err
	}
	m.args.taken = m.bodyNames(body)
	m.args.optional = contract.MaxURLNames
	for _, p := range params {
		if p.In == "path" || p.In == "query" && p.Required {
			m.args.optional--
		}
	}
	for _, p := range params {
		if err := m.parameter(p); err != nil {
			return err
		}
	}
	if err := m.url(); err != nil {
		return err
	}
	root, err := m.input(body)
	if err != nil {
		return err
	}
	if m.draft.Tool.InputSchema, err = m.in.Text(root); err != nil {
		return err
	}
	return checkSchema("input schema", m.draft.Tool.InputSchema)
}

// parameter puts one parameter where the backend can send it. What it cannot send
// is left out when the operation does without it.
func (m *mapping) parameter(p openapi.Parameter) error {
	if p.In == "header" {
		return m.headerParameter(p)
	}
	why := m.unfit(p)
	if why == "" && p.In == "query" && !p.Required {
		if m.args.optional--; m.args.optional < 0 {
			why = fmt.Sprintf("a URL names at most %d arguments", contract.MaxURLNames)
		}
	}
	if why == "" {
		return m.place(p)
	}
	if p.Required || p.In == "path" {
		return fmt.Errorf("its %s parameter %s cannot be sent: %s", p.In, p.Name, why)
	}
	m.lose("its %s parameter %s is left out: %s", p.In, p.Name, why)
	return nil
}

// unfit says why the backend cannot send a parameter, or "".
func (m *mapping) unfit(p openapi.Parameter) string {
	kind := m.d.KindOf(p.Schema)
	switch {
	case p.In == "cookie":
		return "a call carries no cookies"
	case p.Encoded:
		return "it is a text in a media type of its own, and the URL takes plain values"
	case p.In == "path" && p.Style != "simple":
		return fmt.Sprintf("it has the style %s, and the path takes simple values", p.Style)
	case p.In == "path" && (kind == openapi.ListKind || kind == openapi.OtherKind):
		return "it is a list or an object, and the path takes strings, numbers and booleans"
	case kind == openapi.OtherKind:
		return fmt.Sprintf("it is an object (style %s), and the query takes strings, numbers, booleans and lists of them", p.Style)
	case p.In == "query" && kind == openapi.ListKind && (p.Style != "form" || !p.Explode):
		return fmt.Sprintf("it is a list in one value (style %s), and the backend repeats the parameter for each item", p.Style)
	}
	return ""
}

var oddRE = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// place makes an argument of a parameter of path or query.
func (m *mapping) place(p openapi.Parameter) error {
	name := m.argument(p)
	var schema any = map[string]any{}
	if p.Schema != nil {
		var err error
		if schema, err = m.in.Make(p.Schema); err != nil {
			return fmt.Errorf("its %s parameter %s: %w", p.In, p.Name, err)
		}
	}
	if s, ok := schema.(map[string]any); ok && p.Description != "" {
		s["description"] = p.Description
	}
	m.args.properties[name] = schema
	if p.Required || p.In == "path" {
		m.args.required = append(m.args.required, name)
	}
	if p.In == "path" {
		m.args.path[p.Name] = name
		return nil
	}
	m.args.query = append(m.args.query, url.QueryEscape(p.Name)+"={"+name+"}")
	return nil
}

// argument is a name for a parameter that no other argument has.
func (m *mapping) argument(p openapi.Parameter) string {
	base := strings.Trim(oddRE.ReplaceAllString(p.Name, "_"), "_")
	if base == "" {
		base = "value"
	}
	base = base[:min(len(base), maxName)]
	free := func(n string) bool {
		return m.args.properties[n] == nil && !slices.Contains(m.args.taken, n)
	}
	name := base
	if !free(name) {
		name = p.In + "_" + base
	}
	for n := 2; !free(name) || len(name) > maxName; n++ {
		name = fmt.Sprintf("%s_%s_%d", p.In, base[:min(len(base), maxName-12)], n)
	}
	if name != p.Name {
		m.r.say(m.draft.From, "programs call its %s parameter %s %s", p.In, p.Name, name)
	}
	return name
}

// ours are headers that a document may ask for and the runtime sends by itself.
var ours = []string{"accept", "content-type", "authorization", "idempotency-key", "user-agent", "host", "content-length", "accept-encoding", "connection"}

// headerParameter makes a fixed header of a parameter: there are no others.
func (m *mapping) headerParameter(p openapi.Parameter) error {
	key := strings.ToLower(p.Name)
	if slices.Contains(ours, key) {
		return nil
	}
	why := "the headers of a grant are fixed"
	value, there := m.headerValue(key, p)
	if contract.RuntimeHeader(p.Name) {
		there, why = false, "it belongs to the runtime"
	}
	switch {
	case there:
		m.header(p.Name, value)
	case p.Required && !contract.RuntimeHeader(p.Name):
		return fmt.Errorf("it needs the header %s, and %s: give its value by --header '%s=VALUE'", p.Name, why, p.Name)
	case p.Required:
		return fmt.Errorf("it needs the header %s, and %s", p.Name, why)
	default:
		m.lose("its header %s is left out: %s", p.Name, why)
	}
	return nil
}

// headerValue is what a header parameter is set to. A value of the document's own
// is only taken where the operation does not do without it.
func (m *mapping) headerValue(key string, p openapi.Parameter) (string, bool) {
	if value, there := m.o.Headers[key]; there {
		return value, true
	}
	value, fixed, there := m.d.OnlyValue(p.Schema)
	if there = there && p.Required; there && fixed {
		m.review("the header %s is always sent as the document gives it", p.Name)
		return value, true
	}
	if granted, has := m.o.granted[key]; has {
		return granted, true
	}
	if there {
		m.review("the header %s is always sent with the document's default", p.Name)
	}
	return value, there
}

var placeRE = regexp.MustCompile(`\{([^{}]*)\}`)

// url joins server, path and query.
func (m *mapping) url() error {
	address, err := m.address()
	if err != nil {
		return err
	}
	var missing string
	path := placeRE.ReplaceAllStringFunc(m.op.Path, func(s string) string {
		name, there := m.args.path[s[1:len(s)-1]]
		if !there {
			missing = s
		}
		return "{" + name + "}"
	})
	if missing != "" {
		return fmt.Errorf("its path names %s, which is no parameter of it", missing)
	}
	for of, name := range m.args.path {
		if !strings.Contains(m.op.Path, "{"+of+"}") {
			return fmt.Errorf("its path parameter %s does not stand in its path", name)
		}
	}
	text := address + path
	if len(m.args.query) > 0 {
		sep := "?"
		if strings.Contains(text, "?") {
			sep = "&"
		}
		text += sep + strings.Join(m.args.query, "&")
	}
	m.draft.Backend.HTTP.URL = text
	_, err = contract.ParseURLTemplate(text)
	return err
}
