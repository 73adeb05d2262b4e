package toolimport

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/openapi"
)

// OpenAPIOptions are what the import of a document has beside Options.
type OpenAPIOptions struct {
	Options
	// Server is put in the place of the document's servers; none when it is empty.
	Server string
	// Headers are sent with every call of the operations that have them as
	// parameters, by their names in lower case.
	Headers map[string]string
	// NoAuth drops what the document says of security: somebody between the
	// runtime and the server adds the credential.
	NoAuth bool
	// anyServer takes a relative address as it is: it is not called.
	anyServer bool
	// granted are the headers of a grant that is compared, by their names in lower
	// case.
	granted map[string]string
}

// anyServer is where an address is whose server does not matter.
const anyServer = "http://server.invalid"

// FromOpenAPI proposes a grant for each operation of a document.
func FromOpenAPI(d *openapi.Document, o OpenAPIOptions) (Result, error) {
	var r Result
	ops, wrong := d.Operations()
	for _, err := range wrong {
		r.leave("", "%v", err)
	}
	names := operationNames(ops, o.Prefix)
	for _, want := range o.Only {
		if !slices.ContainsFunc(ops, func(op openapi.Operation) bool { return op.ID == want || op.Key() == want }) {
			return r, fmt.Errorf("the document has no operation %q: name its operationId, or its method and path as in \"GET /orders/{id}\"", want)
		}
	}
	for i, op := range ops {
		if !o.wants(op.ID, op.Key()) {
			continue
		}
		m := newMapping(d, op, o, &r)
		if err := m.all(names[i]); err != nil {
			r.leave(m.draft.From, "%v", err)
			continue
		}
		r.Drafts = append(r.Drafts, m.draft)
	}
	return r, r.settle()
}

// operationNames gives every operation a name that no other has, whichever of
// them are asked for.
func operationNames(ops []openapi.Operation, prefix string) []string {
	taken := map[string]bool{}
	var out []string
	for _, op := range ops {
		base := strings.Trim(toolName(op.ID), "_")
		if base == "" {
			base = nameOfPath(op)
		}
		name := base
		// With a long prefix there may be no other name, which settle says then.
		for n := 2; taken[objectName(toolName(prefix+name))] && n <= len(ops); n++ {
			end := fmt.Sprintf("_%d", n)
			name = base[:min(len(base), max(maxName-len(end)-len(prefix), 0))] + end
		}
		taken[objectName(toolName(prefix+name))] = true
		out = append(out, name)
	}
	return out
}

// nameOfPath is the method and the words of the path: get_orders_id.
func nameOfPath(op openapi.Operation) string {
	words := strings.FieldsFunc(op.Path, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	return toolName(strings.Join(append([]string{strings.ToLower(op.Method)}, words...), "_"))
}

// mapping makes the draft of one operation.
type mapping struct {
	d       *openapi.Document
	op      openapi.Operation
	o       OpenAPIOptions
	r       *Result
	in, out *openapi.Schemas
	draft   Draft
	args    arguments
}

func newMapping(d *openapi.Document, op openapi.Operation, o OpenAPIOptions, r *Result) *mapping {
	return &mapping{op: op, o: o, r: r, in: d.NewSchemas(openapi.ForRequest), out: d.NewSchemas(openapi.ForResponse), d: d}
}

func (m *mapping) all(name string) error {
	m.draft.From = m.op.Key()
	if m.op.ID != "" {
		m.draft.From += " (" + m.op.ID + ")"
	}
	if err := m.draft.name(m.o.Options, name); err != nil {
		return err
	}
	if m.op.ID != "" && m.draft.Tool.Name != m.o.Prefix+m.op.ID {
		m.r.say(m.draft.From, "programs call it %s", m.draft.Tool.Name)
	}
	m.describe()
	m.draft.Backend.HTTP = &contract.HTTPBackend{Method: contract.HTTPMethod(m.op.Method)}
	for _, step := range []func() error{m.effect, m.security, m.request, m.result} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, lost := range append(m.in.Lost, m.out.Lost...) {
		m.review("%s", lost)
	}
	return contractError(contract.CheckBackend(m.draft.Tool, m.draft.Backend))
}

func contractError(err error) error {
	if f, ok := contract.AsFault(err); ok {
		return errors.New(f.Message)
	}
	return err
}

func (m *mapping) review(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(m.draft.Review, text) {
		m.draft.Review = append(m.draft.Review, text)
	}
}

// lose says what a tool does without, to whoever imports it and to whoever reviews.
func (m *mapping) lose(format string, args ...any) {
	m.r.say(m.draft.From, format, args...)
	m.review(format, args...)
}

func (m *mapping) describe() {
	text := m.op.Summary
	if text != "" && m.op.Description != "" && text != m.op.Description {
		text += "\n\n"
	}
	if text != m.op.Description {
		text += m.op.Description
	}
	m.draft.describe(m.r, text)
	if m.op.Deprecated {
		m.review("the document says that the operation is deprecated")
	}
}

// effect guesses from what RFC 9110 says of the method.
func (m *mapping) effect() error {
	m.draft.Guess = "the method " + m.op.Method
	switch m.op.Method {
	case "GET":
		m.draft.Tool.Effect = contract.EffectReadOnly
	case "PUT", "DELETE":
		m.draft.Tool.Effect = contract.EffectIdempotent
	case "POST", "PATCH":
		m.draft.Tool.Effect = contract.EffectEffectful
	default:
		return fmt.Errorf("the http backend has no method %s: it has GET, POST, PUT, PATCH and DELETE", m.op.Method)
	}
	return nil
}

// security decides whether the calls carry a credential, and asks for its Secret.
func (m *mapping) security() error {
	m.draft.Auth = nil
	m.draft.Tool.Capabilities = nil
	if m.o.NoAuth {
		return nil
	}
	ways, said, err := m.op.Security()
	if err != nil {
		return err
	}
	if !said || len(ways) == 0 {
		if !said && m.o.Auth != nil {
			m.credential(*m.o.Auth)
		}
		return nil
	}
	var why error
	for _, way := range ways {
		if len(way) == 0 && (m.o.Auth == nil || len(ways) == 1) {
			return nil
		}
		if len(way) == 0 {
			continue
		}
		if why = m.bearer(way); why == nil {
			return nil
		}
	}
	if slices.ContainsFunc(ways, func(w []openapi.Scheme) bool { return len(w) == 0 }) {
		return nil
	}
	return why
}

// bearer takes one way to be let in, if a bearer token does it.
func (m *mapping) bearer(way []openapi.Scheme) error {
	if len(way) > 1 {
		return fmt.Errorf("its security asks for %d credentials at once, and a call carries one", len(way))
	}
	s := way[0]
	auth := SecretKey{Name: objectName(toolName(s.Name)), Key: "token"}
	switch {
	case s.Type == "http" && s.HTTP == "bearer", s.Type == "oauth2", s.Type == "openIdConnect":
	case s.Type == "apiKey" && s.In == "header" && strings.EqualFold(s.Key, "Authorization"):
		m.review("the document asks for a key in Authorization, and the runtime sends \"Bearer\" before it: see that the server takes that")
	default:
		return fmt.Errorf("its security scheme %s asks for %s, and the runtime sends a credential as \"Authorization: Bearer\" only; "+
			"where a gateway adds what is asked for, use --no-auth", s.Name, wanted(s))
	}
	if m.o.Auth != nil {
		auth = *m.o.Auth
	} else {
		m.review("the document asks for a token (security scheme %s): name its Secret in auth.secretRef, %s/%s is made up", s.Name, auth.Name, auth.Key)
	}
	if len(s.Scopes) > 0 {
		m.review("the token needs the scopes %s", strings.Join(s.Scopes, ", "))
	}
	if auth.Name == "" {
		auth.Name = "credential"
	}
	m.credential(auth)
	return nil
}

func (m *mapping) credential(k SecretKey) {
	m.draft.Auth = &k
	m.draft.Tool.Capabilities = []string{contract.CapabilityAuth}
}

// wanted says in words what a security scheme asks for.
func wanted(s openapi.Scheme) string {
	switch s.Type {
	case "apiKey":
		return fmt.Sprintf("a key in the %s %s", s.In, s.Key)
	case "http":
		return fmt.Sprintf("HTTP %s authentication", s.HTTP)
	case "mutualTLS":
		return "a client certificate"
	}
	return fmt.Sprintf("%q", s.Type)
}

// address is where the operation is, without what the path adds.
func (m *mapping) address() (string, error) {
	if m.o.Server != "" {
		return strings.TrimSuffix(m.o.Server, "/"), nil
	}
	address, others, err := m.op.Server()
	if err != nil {
		return "", fmt.Errorf("%w: use --server", err)
	}
	if m.o.anyServer {
		address = absolute(address)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "", errors.New("its server is no address: use --server")
	case u.Host == "":
		return "", fmt.Errorf("its server %q is relative: use --server https://HOST%s", address, strings.TrimSuffix(address, "/"))
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return "", errors.New("its server has a query, a fragment or a user: use --server")
	}
	if others > 0 {
		m.review("the document names %d servers; this is the first", others+1)
	}
	return strings.TrimSuffix(address, "/"), nil
}

// result maps the answers that mean success.
func (m *mapping) result() error {
	all, err := m.op.Responses()
	if err != nil {
		return err
	}
	var some, later bool
	var schemas []any
	var form contract.ResponseForm
	for _, res := range all {
		if res.Status == "202" {
			later = true
			continue
		}
		if len(res.Status) != 3 || res.Status[0] != '2' {
			continue
		}
		a, err := m.answer(res)
		if err != nil {
			return err
		}
		if some && a.form != "" && form != "" && a.form != form {
			return errors.New("its answers are JSON or text by their status, and a grant has one form")
		}
		if a.form != "" {
			form = a.form
		}
		some = true
		schemas = append(schemas, a.schema)
	}
	if later && !some {
		return errors.New("it answers later (202 Accepted), and a run never waits for that")
	}
	if later {
		m.review("it may answer later (202 Accepted), which ends the call without a result")
	}
	m.draft.Backend.HTTP.Response = form
	return m.output(schemas)
}

// output is the schema of a result that is one of some.
func (m *mapping) output(schemas []any) error {
	var distinct []any
	seen := map[string]bool{}
	for _, s := range schemas {
		if s == true {
			return nil // anything
		}
		text, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if !seen[string(text)] {
			distinct = append(distinct, s)
		}
		seen[string(text)] = true
	}
	var root any
	switch len(distinct) {
	case 0:
		return nil
	case 1:
		root = distinct[0]
	default:
		root = map[string]any{"anyOf": distinct}
	}
	var err error
	if m.draft.Tool.OutputSchema, err = m.out.Text(root); err != nil {
		return err
	}
	return checkSchema("output schema", m.draft.Tool.OutputSchema)
}
