package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// ToolGrantSpec declares one tool, says where it is, and who may call it.
// +kubebuilder:validation:XValidation:rule="!has(self.auth) || (has(self.tool.dependencies) && has(self.tool.dependencies.capabilities) && 'auth' in self.tool.dependencies.capabilities)",message="a tool with spec.auth must ask for the credential: add 'auth' to spec.tool.dependencies.capabilities (and grant it in spec.grant.capabilities)"
// +kubebuilder:validation:XValidation:rule="has(self.auth) || !has(self.tool.dependencies) || !has(self.tool.dependencies.capabilities) || !('auth' in self.tool.dependencies.capabilities)",message="the tool asks for the capability 'auth' but there is no spec.auth: add one or drop the capability"
// +kubebuilder:validation:XValidation:rule="!has(self.grant) || !has(self.grant.retry) || self.tool.effect != 'Effectful' || self.tool.kind == 'Model'",message="an Effectful tool is never tried twice: drop spec.grant.retry, or declare spec.tool.effect as ReadOnly or Idempotent if that is what it is"
// +kubebuilder:validation:XValidation:rule="!has(self.allowedNamespaces) || self.allowedNamespaces.from == 'Same' || !has(self.auth) || !has(self.auth.secretRef)",message="a Secret stays in its namespace: a grant with spec.auth.secretRef must have spec.allowedNamespaces.from Same"
// +kubebuilder:validation:XValidation:rule="!has(self.allowedNamespaces) || self.allowedNamespaces.from == 'Same' || !(has(self.backend.http) && has(self.backend.http.caBundle) || has(self.backend.mcp) && has(self.backend.mcp.caBundle) || has(self.backend.model) && has(self.backend.model.caBundle))",message="the ConfigMap of caBundle is mounted in the run's namespace: a grant with one must have spec.allowedNamespaces.from Same"
// +kubebuilder:validation:XValidation:rule="(self.tool.kind == 'Model') == has(self.backend.model)",message="a model endpoint has both spec.tool.kind Model and spec.backend.model: set both or neither"
// +kubebuilder:validation:XValidation:rule="self.tool.kind != 'Model' || !has(self.grant) || !has(self.grant.constraints) && !has(self.grant.resultConstraints) && !has(self.grant.maxCallsPerRun) && (!has(self.grant.approval) || self.grant.approval == 'Never')",message="a model is not called with arguments: drop constraints, resultConstraints, maxCallsPerRun and approval from spec.grant; maxTokensPerRun bounds it"
// +kubebuilder:validation:XValidation:rule="self.tool.kind != 'Model' || !has(self.tool.dependencies) || !has(self.tool.dependencies.capabilities) || self.tool.dependencies.capabilities.all(c, c == 'auth')",message="a model is given nothing of the run but the credential: drop every capability but 'auth'"
// +kubebuilder:validation:XValidation:rule="self.tool.kind == 'Model' || !has(self.grant) || !has(self.grant.maxTokensPerRun)",message="maxTokensPerRun is for a tool of kind Model: use maxCallsPerRun"
type ToolGrantSpec struct {
	// tool is the declaration of the tool.
	// +required
	Tool ToolDeclaration `json:"tool"`
	// backend says where the tool is.
	// +required
	Backend ToolBackend `json:"backend"`
	// auth is the credential that a call carries; none without it.
	// +optional
	Auth *ToolAuth `json:"auth,omitempty"`
	// grant is the authority that this object gives.
	// +optional
	Grant ToolAuthority `json:"grant,omitempty"`
	// allowedNamespaces says whose runs may use the grant beside those of its own
	// namespace; none without it.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// NamespacesFrom says how the namespaces of runs are chosen.
// +kubebuilder:validation:Enum=Same;All;Selector
type NamespacesFrom string

// The ways to choose namespaces.
const (
	// NamespacesSame is the grant's own namespace only.
	NamespacesSame NamespacesFrom = "Same"
	// NamespacesAll is every namespace.
	NamespacesAll NamespacesFrom = "All"
	// NamespacesSelector is every namespace with the right labels, and the grant's own.
	NamespacesSelector NamespacesFrom = "Selector"
)

// AllowedNamespaces chooses the namespaces whose runs may use a grant.
// +kubebuilder:validation:XValidation:rule="(self.from == 'Selector') == has(self.selector)",message="set selector exactly when from is Selector"
type AllowedNamespaces struct {
	// from is Same, All or Selector.
	// +optional
	// +kubebuilder:default=Same
	From NamespacesFrom `json:"from,omitempty"`
	// selector is asked of the labels of the run's namespace.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ToolDeclaration is the tool as programs see it.
type ToolDeclaration struct {
	// name is what programs call, exactly.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]{1,64}$')",message="name may only hold letters, digits, '_' and '-'"
	Name string `json:"name"`
	// description says what the tool does, at most 8 KiB.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Description string `json:"description,omitempty"`
	// inputSchema is the JSON Schema of the arguments; any JSON passes without one.
	// +optional
	InputSchema *apiextensionsv1.JSON `json:"inputSchema,omitempty"`
	// outputSchema is the JSON Schema of the result; any JSON passes without one.
	// +optional
	OutputSchema *apiextensionsv1.JSON `json:"outputSchema,omitempty"`
	// kind says what sort of tool it is; only Function is callable from code.
	// +optional
	// +kubebuilder:default=Function
	Kind contract.ToolKind `json:"kind,omitempty"`
	// effect says what a call may do to the world, and so what a lost answer means.
	// +optional
	// +kubebuilder:default=Effectful
	Effect contract.Effect `json:"effect,omitempty"`
	// codeAct is the tool's own word on being called from code. Deny always wins;
	// Allow never creates authority.
	// +optional
	// +kubebuilder:default=Inherit
	CodeAct contract.CodeActPolicy `json:"codeAct,omitempty"`
	// deferred says that the result comes later, from whoever answers the call in the
	// run's spec.resolutions. Only a model can call such a tool, in protocol Tools.
	// +optional
	Deferred bool `json:"deferred,omitempty"`
	// dependencies says what host context the tool needs.
	// +optional
	Dependencies *ToolDependencies `json:"dependencies,omitempty"`
}

// ToolDependencies says how a tool takes host context, and which.
type ToolDependencies struct {
	// profile says how the tool takes its context; only Strict is callable from code.
	// +optional
	// +kubebuilder:default=Strict
	Profile contract.Profile `json:"profile,omitempty"`
	// capabilities is what a call asks to be given. All of it must be granted.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Enum=run.identity;run.labels;trace.context;auth
	Capabilities []string `json:"capabilities,omitempty"`
}

// ToolAuth is exactly one kind of credential. It is read at call time from a
// mounted file and sent as a bearer token.
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.serviceAccountToken)",message="set exactly one of secretRef and serviceAccountToken"
type ToolAuth struct {
	// secretRef names an entry of a Secret in the same namespace.
	// +optional
	SecretRef *SecretKeyReference `json:"secretRef,omitempty"`
	// serviceAccountToken is a token of the runtime's ServiceAccount for one audience.
	// +optional
	ServiceAccountToken *ServiceAccountToken `json:"serviceAccountToken,omitempty"`
}

// SecretKeyReference names one entry of a Secret.
type SecretKeyReference struct {
	// name is the Secret's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key is the entry.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// ServiceAccountToken asks for a projected token.
type ServiceAccountToken struct {
	// audience is the token's only audience. It must not be the API server's: the
	// tool could act as the runtime with such a token.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('https://kubernetes.default')",message="audience must not be the API server's own"
	Audience string `json:"audience"`
}

// ToolAuthority is what a grant gives, and to whom.
type ToolAuthority struct {
	// capabilities are given to calls, exactly; there are no patterns.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Enum=run.identity;run.labels;trace.context;auth
	Capabilities []string `json:"capabilities,omitempty"`
	// recipes limits the grant to runs of these Recipes; empty means every run of
	// the namespace.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Recipes []string `json:"recipes,omitempty"`
	// runSelector limits the grant to runs with these labels; empty means every run.
	// +optional
	RunSelector *metav1.LabelSelector `json:"runSelector,omitempty"`
	// approval says whether somebody must approve each call. A call that needs it
	// is never made from code.
	// +optional
	// +kubebuilder:default=Never
	Approval contract.Approval `json:"approval,omitempty"`
	// constraints must hold for every call: CEL over args, run and call. A false
	// one, or one that fails, refuses the call.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Constraints []Constraint `json:"constraints,omitempty"`
	// resultConstraints must hold for every result: CEL over result, args, run and
	// call. A false one, or one that fails, ends the run.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ResultConstraints []Constraint `json:"resultConstraints,omitempty"`
	// retry says how often a call is tried that failed without a proven outcome;
	// once without it, a model twice. Every attempt carries the same idempotency key.
	// +optional
	Retry *Retry `json:"retry,omitempty"`
	// maxCallsPerRun bounds the calls of this tool in one run.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	MaxCallsPerRun *int64 `json:"maxCallsPerRun,omitempty"`
	// maxTokensPerRun bounds the input and output tokens that one run may have of a
	// model; a run may only lower it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	MaxTokensPerRun *int64 `json:"maxTokensPerRun,omitempty"`
	// notAfter ends the grant: no run is pinned with it afterwards. It is a time
	// of RFC 3339, with upper-case T and Z: the API server's own date-time lets
	// more pass than its clients can read.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	NotAfter *metav1.Time `json:"notAfter,omitempty"`
	// timeout bounds one attempt of a call; it defaults to 10s, for a model to 120s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('1h')",message="timeout must lie between 1ms and 1h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// Constraint is one condition in CEL.
type Constraint struct {
	// expression is CEL whose value is a bool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression"`
	// message says what is wrong when the expression is false; the expression
	// itself without it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// Retry says how often a call is tried.
type Retry struct {
	// attempts counts the first one, too.
	// +required
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=5
	Attempts int64 `json:"attempts"`
	// backoff is the wait before the second attempt; it doubles with each further
	// one, and a longer Retry-After of the tool takes its place, up to 30s.
	// +optional
	// +kubebuilder:default="200ms"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('30s')",message="backoff must lie between 0s and 30s"
	Backoff *metav1.Duration `json:"backoff,omitempty"`
}

// ToolGrantStatus is what the controller found.
type ToolGrantStatus struct {
	// observedGeneration is the generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// declarationDigest is the digest of the declaration's canonical JSON.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	DeclarationDigest string `json:"declarationDigest,omitempty"`
	// conditions are Ready, SchemaValid and, while True, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ToolGrant gives runs of its namespace, and of those that it allows, the
// authority to call one tool.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tg,categories=codeact
// +kubebuilder:printcolumn:name="Tool",type=string,JSONPath=`.spec.tool.name`
// +kubebuilder:printcolumn:name="Effect",type=string,JSONPath=`.spec.tool.effect`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="URL",type=string,priority=1,JSONPath=`.spec.backend.http.url`
// +kubebuilder:printcolumn:name="MCP",type=string,priority=1,JSONPath=`.spec.backend.mcp.url`
// +kubebuilder:printcolumn:name="Model",type=string,priority=1,JSONPath=`.spec.backend.model.url`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ToolGrant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the tool and the authority.
	// +required
	Spec ToolGrantSpec `json:"spec"`
	// status is what the controller found.
	// +optional
	Status ToolGrantStatus `json:"status,omitempty"`
}

// ToolGrantList is a list of ToolGrants.
// +kubebuilder:object:root=true
type ToolGrantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ToolGrant `json:"items"`
}
