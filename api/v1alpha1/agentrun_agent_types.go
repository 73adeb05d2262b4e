package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// AgentSpec has a model write the programs: one after another, each executed like
// a program of the tenant's own, until one of them gives the output.
// +kubebuilder:validation:XValidation:rule="!has(self.recipes) || self.recipes.size() == 0 || self.protocol == 'Tools'",message="recipes are offered to a model as tools: set protocol to Tools"
type AgentSpec struct {
	// model is the metadata.name of a ToolGrant of kind Model: the one endpoint that
	// the run may ask.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Model string `json:"model"`
	// protocol says how the model is told to act: Code has it answer with programs;
	// Tools offers it run_code, the recipes and the tools as native tools.
	// +optional
	// +kubebuilder:default=Code
	Protocol contract.Protocol `json:"protocol,omitempty"`
	// instructions come first in the system text, at most 32 KiB.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 32768",message="instructions may have at most 32768 bytes"
	Instructions string `json:"instructions,omitempty"`
	// prompt is what the user asks for, at most 64 KiB.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 65536",message="prompt may have at most 65536 bytes"
	Prompt string `json:"prompt"`
	// tools names every tool that the model's programs may call, as far as it is
	// granted. In protocol Tools the model may call them itself, too, and then also
	// those that code may not: of any profile, with codeAct Deny, with approval
	// Required, or deferred. None of them may be called like one of the recipes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_-]{1,64}$`
	Tools []string `json:"tools,omitempty"`
	// recipes names Recipes of the namespace. In protocol Tools the model is offered
	// each as one tool, under its tool name and with its input schema; the run waits
	// until all are Ready. The tools that they declare are pinned, too: together with
	// tools at most 64, with one grant each. Protocol Code has no use for them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Recipes []string `json:"recipes,omitempty"`
	// finalize is Direct: the first usable result of a program is the output; or
	// Model: the model ends the run itself, after a program succeeded. It has no
	// meaning in protocol Tools: there an answer that calls no tool ends the run, and
	// its text is the output.
	// +optional
	// +kubebuilder:default=Direct
	Finalize contract.Finalize `json:"finalize,omitempty"`
	// maxSteps bounds the requests to the model. There is no "unlimited".
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	MaxSteps int64 `json:"maxSteps,omitempty"`
	// maxTokens bounds the input and output tokens of the whole run; the grant's own
	// bound holds besides.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	MaxTokens int64 `json:"maxTokens,omitempty"`
	// memory bounds what the model is shown of the run so far.
	// +optional
	Memory *AgentMemory `json:"memory,omitempty"`
	// temperature is passed to the model, a number from 0 to 2.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2
	Temperature Number `json:"temperature,omitempty"`
	// topP is passed to the model, a number from 0 to 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	TopP Number `json:"topP,omitempty"`
	// maxOutputTokens bounds one answer of the model, by its endpoint.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxOutputTokens int64 `json:"maxOutputTokens,omitempty"`
	// seed is passed to the model.
	// +optional
	// +kubebuilder:validation:Minimum=-9007199254740991
	// +kubebuilder:validation:Maximum=9007199254740991
	Seed *int64 `json:"seed,omitempty"`
	// stop are texts at which the model ends its answer.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Stop []string `json:"stop,omitempty"`
	// reasoningEffort is passed to the model.
	// +optional
	// +kubebuilder:validation:Enum=none;minimal;low;medium;high;xhigh
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
	// store says whether the endpoint may keep the conversation.
	// +optional
	Store *bool `json:"store,omitempty"`
	// user tells the endpoint for whom it works.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	User string `json:"user,omitempty"`
	// extraBody holds more fields of the request, for what an endpoint has of its
	// own; at most 16 KiB. It may not hold what the runtime says itself (messages,
	// input, tools, tool_choice, model, stream, n and their like), what leads a
	// gateway elsewhere, or what has a field here.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=32
	ExtraBody *apiextensionsv1.JSON `json:"extraBody,omitempty"`
}

// AgentMemory bounds the history that a model is shown.
type AgentMemory struct {
	// maxItems bounds the messages beside the system text and the prompt, which are
	// always shown; the oldest ones are left out first.
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=1024
	MaxItems int64 `json:"maxItems,omitempty"`
}
