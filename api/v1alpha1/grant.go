package v1alpha1

import (
	"encoding/json"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Declaration returns the tool as the contract knows it, with its defaults
// filled in.
func (g *ToolGrant) Declaration() contract.Tool {
	d := g.Spec.Tool
	t := contract.Tool{
		Name: d.Name, Description: d.Description,
		InputSchema: rawJSON(d.InputSchema), OutputSchema: rawJSON(d.OutputSchema),
		Kind: d.Kind, Effect: d.Effect, CodeAct: d.CodeAct, Deferred: d.Deferred,
	}
	if d.Dependencies != nil {
		t.Profile, t.Capabilities = d.Dependencies.Profile, d.Dependencies.Capabilities
	}
	return t.Defaulted()
}

// Contract returns the grant as the eligibility rules and the pin see it. A
// selector that cannot be read selects nothing.
func (g *ToolGrant) Contract() contract.Grant {
	return contract.Grant{
		Namespace: g.Namespace, Name: g.Name, UID: string(g.UID), Generation: g.Generation,
		Ready: IsReady(g.Status.Conditions, g.Generation), Tool: g.Declaration(),
		Backend: g.Spec.backend(), Auth: g.Spec.Auth.contract(), Authority: g.authority(),
	}
}

func (g *ToolGrant) authority() contract.Authority {
	a := g.Spec.Grant
	out := contract.Authority{
		Capabilities: a.Capabilities, Recipes: a.Recipes, Selects: selects(a.RunSelector),
		AllowsNamespace: g.Spec.allowsNamespace(), Approval: a.Approval,
		Constraints: constraints(a.Constraints), ResultConstraints: constraints(a.ResultConstraints),
		Timeout: contract.DefaultCallTimeout,
	}
	model := g.Declaration().Kind == contract.KindModel
	if model {
		out.Timeout = contract.DefaultModelTimeoutMs * time.Millisecond
	}
	// A request to a model has no effect on the world, whatever its grant says.
	if a.Retry != nil && (model || g.Declaration().Effect != contract.EffectEffectful) {
		out.Retry = a.Retry.contract()
	}
	if a.MaxCallsPerRun != nil {
		out.MaxCallsPerRun = *a.MaxCallsPerRun
	}
	if a.MaxTokensPerRun != nil {
		out.MaxTokensPerRun = *a.MaxTokensPerRun
	}
	if a.NotAfter != nil {
		out.NotAfter = a.NotAfter.Time
	}
	if a.Timeout != nil {
		out.Timeout = a.Timeout.Duration
	}
	return out
}

// Offered reports whether runs of other namespaces may use the grant at all.
func (g *ToolGrant) Offered() bool { return g.Spec.allowsNamespace() != nil }

// allowsNamespace is nil when no other namespace may use the grant. What a pod
// mounts for a tool is of the run's namespace, so a grant that names a Secret or a
// ConfigMap is never offered: it would be another one of the same name.
func (s *ToolGrantSpec) allowsNamespace() func(string, map[string]string) bool {
	n := s.AllowedNamespaces
	if n == nil || s.Auth != nil && s.Auth.SecretRef != nil || s.caBundle() != nil {
		return nil
	}
	switch n.From {
	case NamespacesAll:
		return func(string, map[string]string) bool { return true }
	case NamespacesSelector:
		if n.Selector == nil {
			return nil
		}
		match := selects(n.Selector)
		return func(_ string, l map[string]string) bool { return match(l) }
	case NamespacesSame:
	}
	return nil
}

func (s *ToolGrantSpec) backend() contract.Backend {
	var out contract.Backend
	if h := s.Backend.HTTP; h != nil {
		out.HTTP = &contract.HTTPBackend{URL: h.URL, Method: h.Method, Response: h.Response}
		for _, x := range h.Headers {
			out.HTTP.Headers = append(out.HTTP.Headers, contract.HTTPHeader{Name: x.Name, Value: x.Value})
		}
	}
	if m := s.Backend.MCP; m != nil {
		out.MCP = &contract.MCPBackend{URL: m.URL, Tool: m.Tool}
		if m.Tool == "" {
			out.MCP.Tool = s.Tool.Name
		}
	}
	if m := s.Backend.Model; m != nil {
		out.Model = &contract.ModelBackend{URL: m.URL, Model: m.Model, API: m.API.Defaulted()}
	}
	if ca := s.caBundle(); ca != nil {
		out.CA = &contract.CABundle{ConfigMap: ca.Name, Key: ca.Key}
	}
	return out
}

func (s *ToolGrantSpec) caBundle() *ConfigMapKeyReference {
	switch {
	case s.Backend.HTTP != nil:
		return s.Backend.HTTP.CABundle
	case s.Backend.MCP != nil:
		return s.Backend.MCP.CABundle
	case s.Backend.Model != nil:
		return s.Backend.Model.CABundle
	}
	return nil
}

// contract takes the place of the defaults, too: an object may be older than they.
func (r *Retry) contract() *contract.Retry {
	out := &contract.Retry{Attempts: r.Attempts, BackoffMs: DefaultBackoff.Milliseconds()}
	if r.Backoff != nil {
		out.BackoffMs = r.Backoff.Milliseconds()
	}
	return out
}

func constraints(list []Constraint) []contract.Constraint {
	var out []contract.Constraint
	for _, c := range list {
		out = append(out, contract.Constraint{Expression: c.Expression, Message: c.Message})
	}
	return out
}

// ContractGrants converts every grant.
func ContractGrants(grants []ToolGrant) []contract.Grant {
	out := make([]contract.Grant, 0, len(grants))
	for i := range grants {
		out = append(out, grants[i].Contract())
	}
	return out
}

// DefaultBackoff is the wait before the second attempt when a retry says none.
const DefaultBackoff = 200 * time.Millisecond

func (a *ToolAuth) contract() contract.Auth {
	switch {
	case a == nil:
		return contract.Auth{Type: contract.AuthNone}
	case a.SecretRef != nil:
		return contract.Auth{Type: contract.AuthSecretRef, SecretName: a.SecretRef.Name, SecretKey: a.SecretRef.Key}
	case a.ServiceAccountToken != nil:
		return contract.Auth{Type: contract.AuthServiceAccountToken, Audience: a.ServiceAccountToken.Audience}
	}
	return contract.Auth{Type: contract.AuthNone}
}

func selects(s *metav1.LabelSelector) func(map[string]string) bool {
	if s == nil {
		return nil
	}
	sel, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return func(map[string]string) bool { return false }
	}
	return func(l map[string]string) bool { return sel.Matches(labels.Set(l)) }
}

func rawJSON(j *apiextensionsv1.JSON) json.RawMessage {
	if j == nil || len(j.Raw) == 0 {
		return nil
	}
	return j.Raw
}
