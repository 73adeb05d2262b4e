package builders

import (
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// Recipe makes a Recipe.
type Recipe struct{ o v1alpha1.Recipe }

// MakeRecipe makes a recipe with a UID of its own and generation 1.
func MakeRecipe(name, source string, tools ...string) *Recipe {
	return &Recipe{v1alpha1.Recipe{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-of-" + name), Generation: 1},
		Spec:       v1alpha1.RecipeSpec{Source: source, Tools: tools},
	}}
}

// Obj returns a copy of the object.
func (b *Recipe) Obj() *v1alpha1.Recipe { return b.o.DeepCopy() }

// In puts it into a namespace.
func (b *Recipe) In(namespace string) *Recipe { b.o.Namespace = namespace; return b }

// UID sets its UID; empty leaves it to the API server.
func (b *Recipe) UID(uid string) *Recipe { b.o.UID = types.UID(uid); return b }

// Created sets when it was created.
func (b *Recipe) Created(t time.Time) *Recipe {
	b.o.CreationTimestamp = metav1.NewTime(t)
	return b
}

// ToolName sets its tool name.
func (b *Recipe) ToolName(n string) *Recipe { b.o.Spec.ToolName = n; return b }

// SourceDigest sets the digest that its source must have.
func (b *Recipe) SourceDigest(d string) *Recipe { b.o.Spec.SourceDigest = d; return b }

// InputSchema sets the JSON text of its input schema.
func (b *Recipe) InputSchema(s string) *Recipe { b.o.Spec.InputSchema = raw(s); return b }

// OutputSchema sets the JSON text of its output schema.
func (b *Recipe) OutputSchema(s string) *Recipe { b.o.Spec.OutputSchema = raw(s); return b }

// Limits sets its limits.
func (b *Recipe) Limits(l contract.Limits) *Recipe { b.o.Spec.Limits = &l; return b }

// Tests adds tests.
func (b *Recipe) Tests(tests ...contract.Fixture) *Recipe {
	b.o.Spec.Tests = append(b.o.Spec.Tests, tests...)
	return b
}

// Ready gives it a Ready condition; an empty reason means True.
func (b *Recipe) Ready(reason, message string) *Recipe {
	b.o.Status.Conditions = ready(b.o.Generation, reason, message)
	return b
}

// Generation sets its generation and leaves its conditions behind.
func (b *Recipe) Generation(n int64) *Recipe { b.o.Generation = n; return b }

// Grant makes a ToolGrant.
type Grant struct{ o v1alpha1.ToolGrant }

// MakeGrant makes a grant of one HTTP tool with a UID of its own and generation 1.
func MakeGrant(name, tool string) *Grant {
	return &Grant{v1alpha1.ToolGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-of-" + name), Generation: 1},
		Spec: v1alpha1.ToolGrantSpec{
			Tool:    v1alpha1.ToolDeclaration{Name: tool},
			Backend: v1alpha1.ToolBackend{HTTP: &v1alpha1.HTTPBackend{URL: "http://tools.example/" + tool}},
		},
	}}
}

// Obj returns a copy of the object.
func (b *Grant) Obj() *v1alpha1.ToolGrant { return b.o.DeepCopy() }

// In puts it into a namespace.
func (b *Grant) In(namespace string) *Grant { b.o.Namespace = namespace; return b }

// UID sets its UID; empty leaves it to the API server.
func (b *Grant) UID(uid string) *Grant { b.o.UID = types.UID(uid); return b }

// Created sets when it was created.
func (b *Grant) Created(t time.Time) *Grant {
	b.o.CreationTimestamp = metav1.NewTime(t)
	return b
}

// Schemas sets the JSON texts of its schemas; empty ones stay unset.
func (b *Grant) Schemas(input, output string) *Grant {
	b.o.Spec.Tool.InputSchema, b.o.Spec.Tool.OutputSchema = raw(input), raw(output)
	return b
}

// Effect sets the effect of its tool.
func (b *Grant) Effect(e contract.Effect) *Grant { b.o.Spec.Tool.Effect = e; return b }

// Kind sets the kind of its tool.
func (b *Grant) Kind(k contract.ToolKind) *Grant { b.o.Spec.Tool.Kind = k; return b }

// Capabilities has the tool ask for capabilities and the grant give them.
func (b *Grant) Capabilities(asked, given []string) *Grant {
	b.o.Spec.Tool.Dependencies = &v1alpha1.ToolDependencies{Capabilities: asked}
	b.o.Spec.Grant.Capabilities = given
	return b
}

// Secret has calls carry an entry of a Secret, asked for and granted.
func (b *Grant) Secret(name, key string) *Grant {
	b.o.Spec.Auth = &v1alpha1.ToolAuth{SecretRef: &v1alpha1.SecretKeyReference{Name: name, Key: key}}
	return b.Capabilities([]string{contract.CapabilityAuth}, []string{contract.CapabilityAuth})
}

// Token has calls carry a projected token, asked for and granted.
func (b *Grant) Token(audience string) *Grant {
	b.o.Spec.Auth = &v1alpha1.ToolAuth{ServiceAccountToken: &v1alpha1.ServiceAccountToken{Audience: audience}}
	return b.Capabilities([]string{contract.CapabilityAuth}, []string{contract.CapabilityAuth})
}

// Approval sets whether calls need one.
func (b *Grant) Approval(a contract.Approval) *Grant { b.o.Spec.Grant.Approval = a; return b }

// CodeAct sets the tool's own word on being called from code.
func (b *Grant) CodeAct(p contract.CodeActPolicy) *Grant { b.o.Spec.Tool.CodeAct = p; return b }

// HTTP changes its HTTP backend.
func (b *Grant) HTTP(edit func(*v1alpha1.HTTPBackend)) *Grant { edit(b.o.Spec.Backend.HTTP); return b }

// MCP has its tool on an MCP server, under a name of its own or, if that is empty, the same.
func (b *Grant) MCP(url, tool string) *Grant {
	b.o.Spec.Backend = v1alpha1.ToolBackend{MCP: &v1alpha1.MCPBackend{URL: url, Tool: tool}}
	return b
}

// Model makes it the grant of a model at an endpoint.
func (b *Grant) Model(url, model string) *Grant {
	b.o.Spec.Tool.Kind = contract.KindModel
	b.o.Spec.Backend = v1alpha1.ToolBackend{Model: &v1alpha1.ModelBackend{URL: url, Model: model}}
	return b
}

// API sets what its model's endpoint speaks.
func (b *Grant) API(a contract.ModelAPI) *Grant { b.o.Spec.Backend.Model.API = a; return b }

// MaxTokens bounds the tokens that one run may have.
func (b *Grant) MaxTokens(n int64) *Grant { b.o.Spec.Grant.MaxTokensPerRun = &n; return b }

// CA has its server known by the certificates of a ConfigMap's entry.
func (b *Grant) CA(configMap, key string) *Grant {
	ref := &v1alpha1.ConfigMapKeyReference{Name: configMap, Key: key}
	if h := b.o.Spec.Backend.HTTP; h != nil {
		h.CABundle = ref
	}
	if m := b.o.Spec.Backend.MCP; m != nil {
		m.CABundle = ref
	}
	if m := b.o.Spec.Backend.Model; m != nil {
		m.CABundle = ref
	}
	return b
}

// Constraint adds one condition of calls.
func (b *Grant) Constraint(expression, message string) *Grant {
	b.o.Spec.Grant.Constraints = append(b.o.Spec.Grant.Constraints, v1alpha1.Constraint{Expression: expression, Message: message})
	return b
}

// ResultConstraint adds one condition of results.
func (b *Grant) ResultConstraint(expression, message string) *Grant {
	b.o.Spec.Grant.ResultConstraints = append(b.o.Spec.Grant.ResultConstraints, v1alpha1.Constraint{Expression: expression, Message: message})
	return b
}

// Retry has calls tried so often; no backoff leaves the default.
func (b *Grant) Retry(attempts int64, backoff time.Duration) *Grant {
	b.o.Spec.Grant.Retry = &v1alpha1.Retry{Attempts: attempts}
	if backoff > 0 {
		b.o.Spec.Grant.Retry.Backoff = &metav1.Duration{Duration: backoff}
	}
	return b
}

// Allowed offers it to every namespace.
func (b *Grant) Allowed() *Grant {
	b.o.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesAll}
	return b
}

// AllowedBy offers it to the namespaces with these labels.
func (b *Grant) AllowedBy(s metav1.LabelSelector) *Grant {
	b.o.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesSelector, Selector: &s}
	return b
}

// Recipes limits it to runs of these recipes.
func (b *Grant) Recipes(names ...string) *Grant { b.o.Spec.Grant.Recipes = names; return b }

// Selector limits it to runs with these labels.
func (b *Grant) Selector(s metav1.LabelSelector) *Grant { b.o.Spec.Grant.RunSelector = &s; return b }

// NotAfter ends it.
func (b *Grant) NotAfter(t time.Time) *Grant {
	end := metav1.NewTime(t)
	b.o.Spec.Grant.NotAfter = &end
	return b
}

// MaxCalls bounds the calls of one run.
func (b *Grant) MaxCalls(n int64) *Grant { b.o.Spec.Grant.MaxCallsPerRun = &n; return b }

// Timeout bounds one call.
func (b *Grant) Timeout(d time.Duration) *Grant {
	b.o.Spec.Grant.Timeout = &metav1.Duration{Duration: d}
	return b
}

// Ready gives it a Ready condition; an empty reason means True.
func (b *Grant) Ready(reason, message string) *Grant {
	b.o.Status.Conditions = ready(b.o.Generation, reason, message)
	return b
}

func ready(generation int64, reason, message string) []metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, ObservedGeneration: generation}
	if reason != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reason, message
	}
	return []metav1.Condition{c}
}

func raw(s string) *apiextensionsv1.JSON {
	if s == "" {
		return nil
	}
	return &apiextensionsv1.JSON{Raw: []byte(s)}
}
