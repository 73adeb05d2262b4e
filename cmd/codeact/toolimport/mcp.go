package toolimport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/mcp"
)

// Server is an MCP server.
type Server struct {
	URL string
	// Token is sent as the bearer token; none when it is empty.
	Token []byte
	// Policy says which addresses may be asked.
	Policy contract.OperatorPolicy
}

// asker is the name under which a server is asked for its tools.
const asker = "import"

// token is the one credential there is.
type token []byte

// Credential implements the credentials of the runtime's client.
func (t token) Credential(string) ([]byte, error) { return t, nil }

// Tools asks the server what it declares, with the runtime's own client: the same
// addresses are refused, and the same bounds hold. Ctx bounds the wait.
func (s Server) Tools(ctx context.Context) (map[string]mcp.Declaration, error) {
	p := contract.PinnedTool{
		Tool:    contract.Tool{Name: asker},
		Backend: contract.Backend{MCP: &contract.MCPBackend{URL: s.URL, Tool: asker}},
	}
	if len(s.Token) > 0 {
		p.Tool.Capabilities = []string{contract.CapabilityAuth}
		p.Auth = contract.Auth{Type: contract.AuthSecretRef, SecretName: asker, SecretKey: asker}
	}
	all := mcp.NewSessions(contract.Bundle{Operator: s.Policy}, token(s.Token))
	defer all.Close(context.WithoutCancel(ctx))
	b, err := all.Backend(p)
	if err != nil {
		return nil, errors.New("its URL is not an http or https address without user, password and fragment")
	}
	return b.Declarations(ctx)
}

// FromMCP proposes a grant for each tool that the server at url declares.
func FromMCP(url string, tools map[string]mcp.Declaration, o Options) (Result, error) {
	var r Result
	for _, name := range o.Only {
		if _, there := tools[name]; !there {
			return r, fmt.Errorf("the server declares no tool %q", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if !o.wants(name) {
			continue
		}
		d, err := r.ofMCP(url, tools[name], o)
		if err != nil {
			r.leave(name, "%v", err)
			continue
		}
		r.Drafts = append(r.Drafts, d)
	}
	return r, r.settle()
}

func (r *Result) ofMCP(url string, t mcp.Declaration, o Options) (Draft, error) {
	d := Draft{From: t.Name}
	if err := d.name(o, t.Name); err != nil {
		return d, err
	}
	if n := len([]rune(t.Name)); n > 128 {
		return d, fmt.Errorf("its name has %d characters, more than 128", n)
	}
	d.describe(r, t.Description)
	d.Tool.InputSchema, d.Tool.OutputSchema = present(t.InputSchema), present(t.OutputSchema)
	if err := checkSchema("input schema", d.Tool.InputSchema); err != nil {
		return d, err
	}
	if err := checkSchema("output schema", d.Tool.OutputSchema); err != nil {
		return d, err
	}
	d.Tool.Effect, d.Guess = effectOf(t.Annotations)
	d.Backend.MCP = &contract.MCPBackend{URL: url, Tool: t.Name}
	if d.Tool.Name != o.Prefix+t.Name {
		r.say(d.From, "programs call it %s: letters, digits, '_' and '-' are allowed, at most %d", d.Tool.Name, maxName)
	}
	return d, nil
}

// present is nil for a schema that is null.
func present(s json.RawMessage) json.RawMessage {
	if t := strings.TrimSpace(string(s)); t == "" || t == "null" {
		return nil
	}
	return s
}

// hints are the annotations of MCP; nil is a hint that was not given.
type hints struct {
	ReadOnly    *bool `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint"`
	Idempotent  *bool `json:"idempotentHint"`
}

func readHints(annotations json.RawMessage) hints {
	var h hints
	if json.Unmarshal(annotations, &h) != nil {
		return hints{}
	}
	return h
}

func (h hints) String() string {
	var out []string
	for _, x := range []struct {
		name string
		v    *bool
	}{{"readOnlyHint", h.ReadOnly}, {"idempotentHint", h.Idempotent}, {"destructiveHint", h.Destructive}} {
		if x.v != nil {
			out = append(out, fmt.Sprintf("%s: %v", x.name, *x.v))
		}
	}
	return strings.Join(out, ", ")
}

func is(b *bool) bool { return b != nil && *b }

// effectOf guesses the effect from a server's hints, which are its own word on
// itself. Where they contradict each other, the worst counts.
func effectOf(annotations json.RawMessage) (contract.Effect, string) {
	h := readHints(annotations)
	said := h.String()
	switch {
	case said == "":
		return contract.EffectEffectful, "nothing: the server gives no hints, so the worst is assumed"
	case is(h.ReadOnly) && is(h.Destructive):
		return contract.EffectEffectful, said + ", which contradict each other"
	case is(h.ReadOnly):
		return contract.EffectReadOnly, said
	case is(h.Idempotent):
		return contract.EffectIdempotent, said
	}
	return contract.EffectEffectful, said
}
