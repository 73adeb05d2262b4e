package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// RecipeSpec is a reviewed program and what it may at most call.
type RecipeSpec struct {
	// toolName is what the recipe is called as a tool; it defaults to
	// metadata.name. Names that the runtime keeps for itself are refused.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]{1,64}$')",message="toolName may only hold letters, digits, '_' and '-'"
	ToolName string `json:"toolName,omitempty"`

	// description says what the recipe is for, at most 8 KiB.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Description string `json:"description,omitempty"`

	// source is the program: JavaScript that declares function main(input).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	Source string `json:"source"`

	// sourceDigest is the digest of exactly the bytes of source
	// (sha256:<64 lower-case hex digits>). Another source is refused.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[0-9a-f]{64}$')",message="sourceDigest must be sha256: and 64 lower-case hex digits"
	SourceDigest string `json:"sourceDigest,omitempty"`

	// inputSchema is the JSON Schema of the input; it defaults to {"type":"object"}.
	// +optional
	InputSchema *apiextensionsv1.JSON `json:"inputSchema,omitempty"`

	// outputSchema is the JSON Schema of the result; any JSON passes without one.
	// +optional
	OutputSchema *apiextensionsv1.JSON `json:"outputSchema,omitempty"`

	// tools names every tool that the program may call. It is a maximum and
	// never a grant.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_-]{1,64}$`
	Tools []string `json:"tools,omitempty"`

	// limits lowers the operator's limits for this program.
	// +optional
	Limits *contract.Limits `json:"limits,omitempty"`

	// tests are run before the recipe turns Ready: its program under its limits, with
	// a script in the place of every tool. All of them together have at most 256 KiB.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Tests []contract.Fixture `json:"tests,omitempty"`
}

// RecipeTool says whether one declared tool can be called.
type RecipeTool struct {
	// name is the declared name.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`
	// usable is true when a Ready grant gives this recipe the tool.
	// +required
	Usable bool `json:"usable"`
	// grant is the ToolGrant that gives it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Grant string `json:"grant,omitempty"`
	// grantNamespace is its namespace, where that is not the recipe's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	GrantNamespace string `json:"grantNamespace,omitempty"`
	// rule is the first rule of eligibility that refused the tool.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Rule string `json:"rule,omitempty"`
	// message says what to do about it.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}

// RecipeStatus is what the controller found.
type RecipeStatus struct {
	// observedGeneration is the generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// toolName is the effective name of the recipe as a tool.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ToolName string `json:"toolName,omitempty"`
	// sourceDigest is the digest of the source.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	SourceDigest string `json:"sourceDigest,omitempty"`
	// inputSchemaDigest is the digest of the effective input schema's canonical JSON.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	InputSchemaDigest string `json:"inputSchemaDigest,omitempty"`
	// manifestDigest is the digest of the whole effective manifest's canonical JSON.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	ManifestDigest string `json:"manifestDigest,omitempty"`
	// tools says of each declared tool whether it can be called.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Tools []RecipeTool `json:"tools,omitempty"`
	// tests says what came of spec.tests.
	// +optional
	Tests *RecipeTests `json:"tests,omitempty"`
	// conditions are Ready, SourceVerified, SchemaValid, TestsPassed, ToolsResolved
	// and, while True, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Recipe is a reviewed JavaScript program that runs may execute.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rcp,categories=codeact
// +kubebuilder:printcolumn:name="Tool",type=string,JSONPath=`.status.toolName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Tests",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="TestsPassed")].reason`
// +kubebuilder:printcolumn:name="Digest",type=string,priority=1,JSONPath=`.status.sourceDigest`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.spec.toolName) || self.metadata.name.matches('^[A-Za-z0-9_-]{1,64}$')",message="metadata.name is no tool name (letters, digits, '_' and '-', at most 64): set spec.toolName"
type Recipe struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the reviewed program.
	// +required
	Spec RecipeSpec `json:"spec"`
	// status is what the controller found.
	// +optional
	Status RecipeStatus `json:"status,omitempty"`
}

// RecipeList is a list of Recipes.
// +kubebuilder:object:root=true
type RecipeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Recipe `json:"items"`
}
