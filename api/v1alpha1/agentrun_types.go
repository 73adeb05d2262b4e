package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// AgentRunSpec asks for one run: of one program, or of an agent. A change of anything but
// cancel, ttlAfterFinished, startDeadline and resolutions is an explicit re-execution, with
// new effects.
// +kubebuilder:validation:XValidation:rule="[has(self.recipe), has(self.code), has(self.agent)].filter(x, x).size() == 1",message="set exactly one of spec.recipe, spec.code and spec.agent"
type AgentRunSpec struct {
	// recipe runs a reviewed program of this namespace.
	// +optional
	Recipe *RecipeReference `json:"recipe,omitempty"`
	// code runs the program that is given here.
	// +optional
	Code *CodeSpec `json:"code,omitempty"`
	// agent has a model write the programs.
	// +optional
	Agent *AgentSpec `json:"agent,omitempty"`
	// input is the argument of main: any JSON; null without one. Numbers are IEEE
	// doubles in the program: send ids beyond 2^53 as strings.
	// +optional
	Input *apiextensionsv1.JSON `json:"input,omitempty"`
	// limits lowers the limits of the recipe or of the operator.
	// +optional
	Limits *contract.Limits `json:"limits,omitempty"`
	// timeout bounds the whole run from the launch of its pod.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="timeout must lie between 1s and 24h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// startDeadline bounds how long the run waits for its recipe and grants.
	// +optional
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="startDeadline must lie between 0s and 24h"
	StartDeadline *metav1.Duration `json:"startDeadline,omitempty"`
	// cancel ends the run. It never starts anything when it is taken back.
	// +optional
	Cancel bool `json:"cancel,omitempty"`
	// ttlAfterFinished deletes the run this long after its end; never without it.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('8760h')",message="ttlAfterFinished must lie between 0s and 8760h"
	TTLAfterFinished *metav1.Duration `json:"ttlAfterFinished,omitempty"`
	// transcript says whether the contents of the run (messages, programs, arguments and
	// results) are kept, in a ConfigMap of the run and in the log of its pod.
	// +optional
	// +kubebuilder:validation:Enum=Full;None
	Transcript contract.Transcript `json:"transcript,omitempty"`
	// resolutions answer the calls that wait in status.pending. Only who may update the
	// virtual subresource agentruns/approve may change them. They never start anything.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=256
	Resolutions []Resolution `json:"resolutions,omitempty"`
	// pod says how the runtime pod is scheduled. A tenant never chooses the
	// image or the ServiceAccount.
	// +optional
	Pod *PodOptions `json:"pod,omitempty"`
}

// Resolution answers one call that waits.
type Resolution struct {
	// id is that of the entry in status.pending.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id"`
	// decision is Approve or Deny.
	// +required
	Decision contract.Decision `json:"decision"`
	// result is the result of a deferred call: any JSON, at most 64 KiB.
	// +optional
	Result *apiextensionsv1.JSON `json:"result,omitempty"`
	// by is the name of the user who answers: the one who writes this.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	By string `json:"by"`
}

// RecipeReference names a Recipe of the run's namespace.
type RecipeReference struct {
	// name is the Recipe's metadata.name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// CodeSpec is a program of the tenant's own.
type CodeSpec struct {
	// source is the program: JavaScript that declares function main(input).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	Source string `json:"source"`
	// tools names every tool that the program may call, as far as it is granted.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_-]{1,64}$`
	Tools []string `json:"tools,omitempty"`
}

// PodOptions are the parts of the runtime pod that a tenant may choose.
type PodOptions struct {
	// resources of the runtime container; the operator's without it.
	// +optional
	Resources *PodResources `json:"resources,omitempty"`
	// nodeSelector of the pod.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations of the pod.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// runtimeClassName of the pod.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RuntimeClassName *string `json:"runtimeClassName,omitempty"`
	// priorityClassName of the pod.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// PodResources are the resources of the runtime container. An amount is one that
// every reader of the object can read: the pattern of the API server lets some
// pass that are none, and an exponent that nobody can compute with.
type PodResources struct {
	// requests is what the pod is scheduled by.
	// +optional
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, string(self[k]).size() <= 20 && !string(self[k]).contains('e') && !string(self[k]).contains('E') && isQuantity(string(self[k])))",message="an amount is a whole number or decimal of at most 20 characters with a suffix up to P or Pi, such as 500m or 256Mi, and without an exponent"
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// limits is the most that the container may use.
	// +optional
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, string(self[k]).size() <= 20 && !string(self[k]).contains('e') && !string(self[k]).contains('E') && isQuantity(string(self[k])))",message="an amount is a whole number or decimal of at most 20 characters with a suffix up to P or Pi, such as 500m or 256Mi, and without an exponent"
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// PinnedStatus says what the current execution generation may see.
type PinnedStatus struct {
	// configMap holds the bundle.
	// +required
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap"`
	// digest is the bundle's.
	// +required
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest"`
	// recipe is the Recipe that was pinned.
	// +optional
	Recipe *PinnedRecipeStatus `json:"recipe,omitempty"`
	// model is the endpoint that an agent may ask.
	// +optional
	Model *PinnedModelStatus `json:"model,omitempty"`
	// tools are the names of the projection, sorted.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	Tools []string `json:"tools,omitempty"`
	// codeAct is the switch of all programs when this generation was pinned.
	// +optional
	CodeAct *contract.Switch `json:"codeAct,omitempty"`
	// recipes is the switch of Recipes when this generation was pinned.
	// +optional
	Recipes *contract.Switch `json:"recipes,omitempty"`
}

// PinnedRecipeStatus names the pinned Recipe exactly.
type PinnedRecipeStatus struct {
	// name is the Recipe's.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid is the Recipe's.
	// +required
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`
	// generation is the Recipe's when it was pinned.
	// +required
	Generation int64 `json:"generation"`
	// manifestDigest is the Recipe's when it was pinned.
	// +required
	// +kubebuilder:validation:MaxLength=71
	ManifestDigest string `json:"manifestDigest"`
}

// PinnedModelStatus names the ToolGrant of the pinned model exactly.
type PinnedModelStatus struct {
	// grant is the ToolGrant's name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Grant string `json:"grant"`
	// grantNamespace is the ToolGrant's namespace where it is not the run's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	GrantNamespace string `json:"grantNamespace,omitempty"`
	// uid is the ToolGrant's.
	// +required
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`
	// generation is the ToolGrant's when it was pinned.
	// +required
	Generation int64 `json:"generation"`
	// model is the model's name at the endpoint.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Model string `json:"model"`
}

// AgentRunStatus is what the controller and the runtime pod report.
type AgentRunStatus struct {
	// observedGeneration is the generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// executionGeneration counts the explicit executions of this run from 1.
	// +optional
	ExecutionGeneration int64 `json:"executionGeneration,omitempty"`
	// executionDigest is the digest of what the spec asks to be executed; another
	// digest is a new execution generation.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	ExecutionDigest string `json:"executionDigest,omitempty"`
	// pinned says what this generation may see.
	// +optional
	Pinned *PinnedStatus `json:"pinned,omitempty"`
	// podName is the one pod that may execute this generation.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PodName string `json:"podName,omitempty"`
	// launches counts the pods of this generation: a pod that was lost before its
	// claim may be launched again.
	// +optional
	Launches int64 `json:"launches,omitempty"`
	// startTime is when this generation began to wait for its recipe and grants.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// launchTime is when the pod was created.
	// +optional
	LaunchTime *metav1.Time `json:"launchTime,omitempty"`
	// completionTime is when the run ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// execution is the report of the runtime pod, which owns it.
	// +optional
	Execution *contract.Execution `json:"execution,omitempty"`
	// pending are the calls of the execution that wait for somebody's answer in
	// spec.resolutions.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=8
	Pending []contract.Pending `json:"pending,omitempty"`
	// previous is the report of the execution generation before this one, without
	// its output: its effects stand.
	// +optional
	Previous *contract.Execution `json:"previous,omitempty"`
	// output is the result of a run that succeeded, from its verified report.
	// +optional
	// +nullable
	Output *apiextensionsv1.JSON `json:"output,omitempty"`
	// outputDigest is the digest of the output's canonical JSON.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	OutputDigest string `json:"outputDigest,omitempty"`
	// media names the pictures that tools left for the result of a run that has
	// ended, from its verified report.
	// +optional
	Media *contract.MediaRef `json:"media,omitempty"`
	// conditions are Pinned, Succeeded and, while True, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AgentRun is one run of one program.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ar,categories=codeact
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`
// +kubebuilder:printcolumn:name="Recipe",type=string,JSONPath=`.spec.recipe.name`
// +kubebuilder:printcolumn:name="Pod",type=string,priority=1,JSONPath=`.status.podName`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Succeeded")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AgentRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec asks for the run.
	// +required
	Spec AgentRunSpec `json:"spec"`
	// status is what came of it.
	// +optional
	Status AgentRunStatus `json:"status,omitempty"`
}

// AgentRunList is a list of AgentRuns.
// +kubebuilder:object:root=true
type AgentRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AgentRun `json:"items"`
}
