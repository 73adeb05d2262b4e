package toolimport

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/openapi"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/mcp"
)

// Comparison is how a grant differs from its source.
type Comparison struct {
	// Parts are those that the runtime compares before a call to an MCP server.
	Parts []mcp.Part
	// Changes name every field; there is none exactly when nothing has drifted.
	Changes []Change
	// Notes are no drift.
	Notes []string
}

// CompareMCP compares a grant's declaration with what its server declares, nil
// when it declares no such tool. With effects, hints that make the tool worse than
// the grant says are a change, too.
func CompareMCP(pinned contract.Tool, live *mcp.Declaration, effects bool) Comparison {
	var c Comparison
	c.declaration(pinned, live)
	if live == nil || !effects || readHints(live.Annotations).String() == "" {
		return c
	}
	guess, said := effectOf(live.Annotations)
	grant := pinned.Defaulted().Effect
	switch {
	case worse(guess) > worse(grant):
		c.Changes = append(c.Changes, Change{Path: "/effect", Change: Changed, Was: string(grant), Is: fmt.Sprintf("%s (%s)", guess, said)})
	case worse(guess) < worse(grant):
		c.Notes = append(c.Notes, fmt.Sprintf("the server's hints (%s) would make it %s; the grant says %s", said, guess, grant))
	}
	return c
}

// worse orders effects by what a lost answer means.
func worse(e contract.Effect) int {
	switch e {
	case contract.EffectReadOnly:
		return 0
	case contract.EffectIdempotent:
		return 1
	case contract.EffectEffectful:
	}
	return 2
}

func (c *Comparison) declaration(pinned contract.Tool, live *mcp.Declaration) {
	c.Parts = mcp.Drift(pinned, live)
	for _, p := range c.Parts {
		path := "/" + string(p)
		switch p {
		case mcp.PartTool:
			c.Changes = append(c.Changes, Change{Path: path, Change: Removed, Was: pinned.Name})
		case mcp.PartDescription:
			c.Changes = append(c.Changes, Changes(path, pinned.Description, live.Description)...)
		case mcp.PartInputSchema:
			c.schema(path, pinned.InputSchema, live.InputSchema)
		case mcp.PartOutputSchema:
			c.schema(path, pinned.OutputSchema, live.OutputSchema)
		}
	}
}

func (c *Comparison) schema(path string, pinned, live json.RawMessage) {
	was, errA := contract.DecodeJSON(pinned)
	if len(live) == 0 {
		c.Changes = append(c.Changes, Change{Path: path, Change: Removed, Was: was})
		return
	}
	is, errB := contract.DecodeJSON(live)
	more := Changes(path, was, is)
	if errA != nil || errB != nil || len(more) == 0 { // too large, or not JSON
		more = []Change{{Path: path, Change: Changed}}
	}
	c.Changes = append(c.Changes, more...)
}

// CompareOpenAPI compares a grant of an HTTP tool with the operation of a document
// that it calls: the one with its method and path, or else the one whose tool
// would have its name, or else the one with the end of its path. Where the server
// is, the grant decides; effects are the reviewer's word and not compared.
func CompareOpenAPI(d *openapi.Document, g contract.Grant, o OpenAPIOptions) Comparison {
	h := g.Backend.HTTP
	var c Comparison
	op, found := operationOf(d, g, o)
	if !found {
		c.declaration(g.Tool, nil)
		return c
	}
	o.Options = Options{Auth: o.Auth}
	o.anyServer = true
	o.granted = map[string]string{}
	for _, x := range h.Headers {
		o.granted[strings.ToLower(x.Name)] = x.Value
	}
	var r Result
	m := newMapping(d, op, o, &r)
	if err := m.all(g.Tool.Name); err != nil {
		c.Parts = []mcp.Part{mcp.PartTool}
		c.Changes = []Change{{Path: "/tool", Change: Changed, Was: g.Tool.Name, Is: fmt.Sprintf("%s cannot be a tool: %v", op.Key(), err)}}
		return c
	}
	c.declaration(g.Tool, &mcp.Declaration{
		Description: m.draft.Tool.Description, InputSchema: orAny(m.draft.Tool.InputSchema), OutputSchema: orAny(m.draft.Tool.OutputSchema),
	})
	c.backend(*h, *m.draft.Backend.HTTP)
	if m.draft.Auth != nil && g.Auth.Type == contract.AuthNone {
		c.Changes = append(c.Changes, Change{Path: "/auth", Change: Added, Is: "a bearer token"})
	}
	return c
}

// orAny spells the schema that accepts everything.
func orAny(s json.RawMessage) json.RawMessage {
	if len(s) == 0 {
		return json.RawMessage("true")
	}
	return s
}

func (c *Comparison) backend(was, is contract.HTTPBackend) {
	const path = "/backend/http/"
	if was.Method.Defaulted() != is.Method {
		c.Changes = append(c.Changes, Change{Path: path + "method", Change: Changed, Was: string(was.Method.Defaulted()), Is: string(is.Method)})
	}
	if a, b := withoutOrigin(was.URL), withoutOrigin(is.URL); a != b {
		c.Changes = append(c.Changes, Change{Path: path + "url", Change: Changed, Was: a, Is: b})
	}
	if a, b := formOf(was.Response), formOf(is.Response); a != b {
		c.Changes = append(c.Changes, Change{Path: path + "response", Change: Changed, Was: a, Is: b})
	}
	values := map[string]string{}
	for _, x := range was.Headers {
		values[strings.ToLower(x.Name)] = x.Value
	}
	for _, x := range is.Headers {
		v, there := values[strings.ToLower(x.Name)]
		switch {
		case !there:
			c.Changes = append(c.Changes, Change{Path: path + "headers/" + x.Name, Change: Added, Is: x.Value})
		case v != x.Value:
			c.Changes = append(c.Changes, Change{Path: path + "headers/" + x.Name, Change: Changed, Was: v, Is: x.Value})
		}
	}
}

func formOf(f contract.ResponseForm) string {
	if f == "" {
		return string(contract.ResponseJSON)
	}
	return string(f)
}

// withoutOrigin is the path and the query of a template.
func withoutOrigin(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		return rest[i:]
	}
	return "/"
}

// operationOf finds the operation that a grant calls.
func operationOf(d *openapi.Document, g contract.Grant, o OpenAPIOptions) (op openapi.Operation, found bool) {
	ops, _ := d.Operations()
	names := operationNames(ops, "")
	all := shape(withoutOrigin(g.Backend.HTTP.URL))
	path, _, _ := strings.Cut(all, "?")
	best, longest := -1, 0
	for i, x := range ops {
		base, _, _ := x.Server()
		if o.Server != "" {
			base = o.Server
		}
		at := shape(x.Path)
		whole := shape(strings.TrimSuffix(withoutOrigin(absolute(base)), "/")) + at
		method := x.Method == string(g.Backend.HTTP.Method.Defaulted())
		rank := 0
		switch {
		case method && (all == whole || strings.HasPrefix(all, whole+"?") || strings.HasPrefix(all, whole+"&")):
			rank = 1<<20 + len(whole) // some documents have a query in their paths
		case names[i] == g.Tool.Name:
			rank = 1 << 19
		case method && strings.HasSuffix(path, at):
			rank = len(at)
		}
		if rank > longest {
			best, longest = i, rank
		}
	}
	if best < 0 {
		return op, false
	}
	return ops[best], true
}

// absolute puts a relative address of a document where any server is.
func absolute(address string) string {
	if strings.Contains(address, "://") {
		return address
	}
	return anyServer + "/" + strings.TrimPrefix(address, "/")
}

// shape is a path without the names of its places.
func shape(path string) string { return placeRE.ReplaceAllString(path, "{}") }
