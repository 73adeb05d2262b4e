package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Operation is one operation of a document.
type Operation struct {
	// ID is its operationId, which may be empty.
	ID string
	// Method is in upper case; Path is as in the document.
	Method, Path         string
	Summary, Description string
	Deprecated           bool

	d          *Document
	node, item map[string]any
}

// Key names the operation by its method and path.
func (o Operation) Key() string { return o.Method + " " + o.Path }

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// Operations returns the operations, ordered by path and method, and what is wrong
// with paths of which there are none.
func (d *Document) Operations() ([]Operation, []error) {
	var out []Operation
	var wrong []error
	paths := object(d.root["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if !strings.HasPrefix(path, "/") {
			continue // an extension
		}
		item, err := d.item(paths[path])
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", path, err))
			continue
		}
		for _, m := range methods {
			node := object(item[m])
			if node == nil {
				continue
			}
			if len(out) == maxOperations {
				return out, append(wrong, fmt.Errorf("the document has more than %d operations; the others are not read", maxOperations))
			}
			out = append(out, Operation{
				ID: str(node["operationId"]), Method: strings.ToUpper(m), Path: path,
				Summary: strings.TrimSpace(str(node["summary"])), Description: strings.TrimSpace(str(node["description"])),
				Deprecated: boolean(node["deprecated"]), d: d, node: node, item: item,
			})
		}
	}
	return out, wrong
}

// item is a path item; what stands beside its reference counts, too.
func (d *Document) item(x any) (map[string]any, error) {
	beside := object(x)
	item, err := d.follow(x)
	if err != nil || len(beside) < 2 || beside["$ref"] == nil {
		return item, err
	}
	item = maps.Clone(item)
	maps.Copy(item, beside)
	delete(item, "$ref")
	return item, nil
}

// Parameter is one parameter of an operation.
type Parameter struct {
	// In is path, query, header or cookie.
	Name, In, Description string
	Required              bool
	// Style and Explode have their defaults filled in.
	Style   string
	Explode bool
	// Schema is one of the document; nil is any.
	Schema any
	// Encoded says that its value is a text in a media type, such as JSON.
	Encoded bool
}

// Bounds of one operation.
const (
	maxParameters = 512
	maxAddress    = 8192 // of its server, in bytes
)

// Parameters are those of the path and of the operation, which replaces the
// path's of the same place and name.
func (o Operation) Parameters() ([]Parameter, error) {
	var out []Parameter
	all := slices.Concat(list(o.item["parameters"]), list(o.node["parameters"]))
	if len(all) > maxParameters {
		return nil, fmt.Errorf("it has more than %d parameters", maxParameters)
	}
	for _, x := range all {
		m, err := o.d.follow(x)
		if err != nil {
			return nil, fmt.Errorf("its parameters: %w", err)
		}
		p := Parameter{
			Name: str(m["name"]), In: str(m["in"]), Description: strings.TrimSpace(str(m["description"])),
			Required: boolean(m["required"]), Style: str(m["style"]), Schema: m["schema"], Encoded: m["content"] != nil,
		}
		if p.Name == "" || !slices.Contains([]string{"path", "query", "header", "cookie"}, p.In) {
			return nil, fmt.Errorf("its parameters: %.40q has no name, or no known place", p.Name)
		}
		if p.Style == "" {
			p.Style = map[string]string{"query": "form", "cookie": "form"}[p.In]
		}
		if p.Style == "" {
			p.Style = "simple"
		}
		explode, said := m["explode"].(bool)
		p.Explode = explode || !said && p.Style == "form"
		i := slices.IndexFunc(out, func(q Parameter) bool { return q.In == p.In && q.Name == p.Name })
		if i >= 0 {
			out[i] = p
		} else {
			out = append(out, p)
		}
	}
	return out, nil
}

// Content is what a body may be.
type Content struct {
	// Types are the media types, ordered; Schemas has one of the document for each,
	// or nil.
	Types   []string
	Schemas map[string]any
}

func contentOf(x any) Content {
	c := Content{Schemas: map[string]any{}}
	for t, m := range object(x) {
		c.Types = append(c.Types, t)
		c.Schemas[t] = object(m)["schema"]
	}
	slices.Sort(c.Types)
	return c
}

// Body is the content of the request, nil when there is none, and whether it has to
// be there.
func (o Operation) Body() (*Content, bool, error) {
	x, there := o.node["requestBody"]
	if !there {
		return nil, false, nil
	}
	m, err := o.d.follow(x)
	if err != nil {
		return nil, false, fmt.Errorf("its request body: %w", err)
	}
	c := contentOf(m["content"])
	return &c, boolean(m["required"]), nil
}

// Response is one answer of an operation.
type Response struct {
	// Status is three digits, such as 200, or 2XX or default.
	Status string
	Content
}

// Responses are the answers, ordered by status.
func (o Operation) Responses() ([]Response, error) {
	var out []Response
	all := object(o.node["responses"])
	for _, status := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(status, "x-") {
			continue
		}
		m, err := o.d.follow(all[status])
		if err != nil {
			return nil, fmt.Errorf("its response %.10s: %w", status, err)
		}
		out = append(out, Response{Status: strings.ToUpper(status), Content: contentOf(m["content"])})
	}
	return out, nil
}

// Server is the address of the first server, as the operation, its path or the
// document has it, with the defaults of its variables; "/" without any. Others
// says how many more there are.
func (o Operation) Server() (address string, others int, err error) {
	var all []any
	for _, m := range []map[string]any{o.node, o.item, o.d.root} {
		if all = list(m["servers"]); len(all) > 0 {
			break
		}
	}
	if len(all) == 0 {
		return "/", 0, nil
	}
	s := object(all[0])
	address = str(s["url"])
	variables := object(s["variables"])
	// In one pass: a default that names another variable would grow without end.
	var b strings.Builder
	for rest := address; rest != ""; {
		before, behind, found := strings.Cut(rest, "{")
		name, after, closed := strings.Cut(behind, "}")
		b.WriteString(before)
		rest = ""
		if found {
			v, there := variables[name]
			if !closed || !there {
				return "", 0, fmt.Errorf("its server %.100q has a variable without a default", address)
			}
			b.WriteString(text(object(v)["default"]))
			rest = after
		}
		if b.Len() > maxAddress {
			return "", 0, fmt.Errorf("its server %.100q becomes longer than %d bytes with its variables", address, maxAddress)
		}
	}
	address = b.String()
	if strings.ContainsAny(address, "{}") {
		return "", 0, fmt.Errorf("its server %.100q has a variable without a default", address)
	}
	return address, len(all) - 1, nil
}

// text is a scalar as it stands in an address: YAML makes numbers of ports.
func text(x any) string {
	if x == nil {
		return ""
	}
	switch x.(type) {
	case map[string]any, []any:
		return ""
	}
	return fmt.Sprint(x)
}

// Scheme is one security scheme, as an operation asks for it.
type Scheme struct {
	// Name is that in the document; Type is http, apiKey, oauth2, openIdConnect or
	// mutualTLS.
	Name, Type string
	// HTTP is the scheme of the Authorization header, in lower case.
	HTTP string
	// In and Key say where an apiKey is.
	In, Key string
	// Scopes are what the operation asks for.
	Scopes []string
}

// Security are the ways to be let in, each of which asks for all its schemes; one
// without any asks for nothing. Said is false when the document says nothing.
func (o Operation) Security() (ways [][]Scheme, said bool, err error) {
	x, said := o.node["security"]
	if !said {
		x, said = o.d.root["security"]
	}
	schemes := object(object(o.d.root["components"])["securitySchemes"])
	for _, way := range list(x) {
		var all []Scheme
		of := object(way)
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if schemes[name] == nil {
				return nil, said, fmt.Errorf("its security scheme %.40q is declared nowhere", name)
			}
			m, err := o.d.follow(schemes[name])
			if err != nil {
				return nil, said, fmt.Errorf("its security scheme %.40q: %w", name, err)
			}
			s := Scheme{Name: name, Type: str(m["type"]), HTTP: strings.ToLower(str(m["scheme"])), In: str(m["in"]), Key: str(m["name"])}
			for _, scope := range list(of[name]) {
				s.Scopes = append(s.Scopes, str(scope))
			}
			all = append(all, s)
		}
		ways = append(ways, all)
	}
	return ways, said, nil
}
