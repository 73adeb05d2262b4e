package v1alpha1

import (
	"encoding/json"

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
		Kind: d.Kind, Effect: d.Effect, CodeAct: d.CodeAct,
	}
	if d.Dependencies != nil {
		t.Profile, t.Capabilities = d.Dependencies.Profile, d.Dependencies.Capabilities
	}
	return t.Defaulted()
}

// Contract returns the grant as the eligibility rules and the pin see it. A
// runSelector that cannot be read selects nothing.
func (g *ToolGrant) Contract() contract.Grant {
	a := g.Spec.Grant
	out := contract.Grant{
		Namespace: g.Namespace, Name: g.Name, UID: string(g.UID), Generation: g.Generation,
		Ready: IsReady(g.Status.Conditions, g.Generation), Tool: g.Declaration(), Auth: g.Spec.Auth.contract(),
		Authority: contract.Authority{
			Capabilities: a.Capabilities, Recipes: a.Recipes, Selects: selects(a.RunSelector),
			Timeout: contract.DefaultCallTimeout,
		},
	}
	if g.Spec.Backend.HTTP != nil {
		out.Backend.HTTP = &contract.HTTPBackend{URL: g.Spec.Backend.HTTP.URL}
	}
	if a.MaxCallsPerRun != nil {
		out.Authority.MaxCallsPerRun = *a.MaxCallsPerRun
	}
	if a.NotAfter != nil {
		out.Authority.NotAfter = a.NotAfter.Time
	}
	if a.Timeout != nil {
		out.Authority.Timeout = a.Timeout.Duration
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
