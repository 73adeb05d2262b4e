package contract

import (
	"encoding/json"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// The methods of an HTTP tool's requests.
const (
	MethodGet    HTTPMethod = "GET"
	MethodPost   HTTPMethod = "POST"
	MethodPut    HTTPMethod = "PUT"
	MethodPatch  HTTPMethod = "PATCH"
	MethodDelete HTTPMethod = "DELETE"
)

// Defaulted returns the method, which is POST when it is empty.
func (m HTTPMethod) Defaulted() HTTPMethod {
	if m == "" {
		return MethodPost
	}
	return m
}

// Known reports whether m is one of the methods.
func (m HTTPMethod) Known() bool {
	return slices.Contains([]HTTPMethod{MethodGet, MethodPost, MethodPut, MethodPatch, MethodDelete}, m.Defaulted())
}

// HasBody reports whether requests of the method carry arguments in a body.
func (m HTTPMethod) HasBody() bool {
	d := m.Defaulted()
	return d == MethodPost || d == MethodPut || d == MethodPatch
}

// runtimeHeaders are the runtime's own, in lower case: the CRD refuses the same.
var runtimeHeaders = []string{
	"accept-encoding", "authorization", "connection", "content-encoding", "content-length", "content-type", "cookie",
	"expect", "forwarded", "host", "idempotency-key", "keep-alive", "te", "traceparent", "tracestate", "trailer",
	"transfer-encoding", "upgrade", "user-agent", "via",
}

// RuntimeHeaders returns the names, in lower case, that no grant may set beside
// those that begin with "codeact-" or "proxy-".
func RuntimeHeaders() []string { return slices.Clone(runtimeHeaders) }

// RuntimeHeader reports whether a header is the runtime's own, so that no grant
// may set it.
func RuntimeHeader(name string) bool {
	n := strings.ToLower(name)
	return slices.Contains(runtimeHeaders, n) || strings.HasPrefix(n, "codeact-") || strings.HasPrefix(n, "proxy-")
}

// CheckBackend says whether every call that a declaration allows can be made to
// its backend. The error is a BackendInvalid fault that names the field.
func CheckBackend(t Tool, b Backend) error {
	switch {
	case b.HTTP != nil:
		return checkHTTP(t, b)
	case b.MCP != nil:
		return checkFixed("mcp", b.MCP.URL, b.CA)
	case b.Model != nil:
		return checkModel(t, b)
	}
	return nil
}

// checkFixed checks the address of a server that takes no arguments in it.
func checkFixed(backend, address string, ca *CABundle) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return Faultf(ReasonBackendInvalid, "spec.backend.%s.url: the URL is not an absolute http or https address", backend)
	case strings.ContainsAny(address, "{}"):
		return Faultf(ReasonBackendInvalid, "spec.backend.%s.url: the address of such a server takes no arguments", backend)
	case ca != nil && u.Scheme != "https":
		return Faultf(ReasonBackendInvalid, "spec.backend.%s.caBundle: an http server shows no certificate; make it https, or drop the bundle", backend)
	}
	return nil
}

// checkModel refuses what a declaration of a model says for nothing: nobody would
// hold an answer to it.
func checkModel(t Tool, b Backend) error {
	if len(t.InputSchema) > 0 || len(t.OutputSchema) > 0 {
		return Faultf(ReasonBackendInvalid, "spec.tool: a model is not called with arguments: drop inputSchema and outputSchema")
	}
	return checkFixed("model", b.Model.URL, b.CA)
}

func checkHTTP(t Tool, b Backend) error {
	h := b.HTTP
	u, err := ParseURLTemplate(h.URL)
	if err != nil {
		return Faultf(ReasonBackendInvalid, "spec.backend.http.url: %v", err)
	}
	if !h.Method.Known() {
		return Faultf(ReasonBackendInvalid, "spec.backend.http.method: %q is none of GET, POST, PUT, PATCH and DELETE", h.Method)
	}
	if b.CA != nil && u.Scheme() != "https" {
		return Faultf(ReasonBackendInvalid, "spec.backend.http.caBundle: an http server shows no certificate; make it https, or drop the bundle")
	}
	seen := map[string]bool{}
	for _, x := range h.Headers {
		name := textproto.CanonicalMIMEHeaderKey(x.Name)
		if RuntimeHeader(name) {
			return Faultf(ReasonBackendInvalid, "spec.backend.http.headers: %s belongs to the runtime", name)
		}
		if seen[name] {
			return Faultf(ReasonBackendInvalid, "spec.backend.http.headers: %s is there twice", name)
		}
		seen[name] = true
	}
	return checkArguments(t, *h, u)
}

// checkArguments holds the URL and the method to what the input schema declares
// at its top level. What it hides in references and combinations is found at
// call time.
func checkArguments(t Tool, h HTTPBackend, u URLTemplate) error {
	var schema struct {
		Properties           map[string]json.RawMessage `json:"properties"`
		Required             []string                   `json:"required"`
		AdditionalProperties json.RawMessage            `json:"additionalProperties"`
	}
	if len(t.InputSchema) > 0 && json.Unmarshal(t.InputSchema, &schema) != nil {
		schema.Properties = nil // a schema that is a boolean, or that checkSchemas refuses
	}
	for _, name := range u.PathNames() {
		if !slices.Contains(schema.Required, name) {
			return Faultf(ReasonBackendInvalid, "spec.backend.http.url: the path needs the argument %q: list it under required in spec.tool.inputSchema", name)
		}
	}
	all := append(u.PathNames(), u.QueryNames()...)
	for _, name := range all {
		if _, declared := schema.Properties[name]; !declared && string(schema.AdditionalProperties) == "false" {
			return Faultf(ReasonBackendInvalid, "spec.backend.http.url: names the argument %q, which spec.tool.inputSchema does not allow", name)
		}
	}
	if h.Method.HasBody() {
		return nil
	}
	names := make([]string, 0, len(schema.Properties))
	for name := range schema.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(all, name) {
			return Faultf(ReasonBackendInvalid, "spec.backend.http.url: does not name the argument %q of spec.tool.inputSchema, and %s has no body to carry it", Truncate(name, 64), h.Method)
		}
	}
	return nil
}
