package contract

import "encoding/json"

// Protocol says how a model is told to act.
// +kubebuilder:validation:Enum=Code;Tools
type Protocol string

// The protocols.
const (
	// ProtocolCode has the model answer with one JSON object: a program, or the end.
	ProtocolCode Protocol = "Code"
	// ProtocolTools offers the model native tools: run_code, recipes, and the tools
	// of the run. An answer that calls none is the end.
	ProtocolTools Protocol = "Tools"
)

// Bounds of the native tools of an agent.
const (
	// MaxOfferBytes bounds all that a model is offered: names, descriptions and input
	// schemas of its tools and recipes, and the catalogue of run_code.
	MaxOfferBytes = 128 << 10
	// MaxTurnCalls bounds the native tool calls of one answer that are made.
	MaxTurnCalls = 32
)

// RunCodeTool is the native tool that executes a program of the model.
const RunCodeTool = "run_code"

// Transcript says whether the contents of a run are kept.
// +kubebuilder:validation:Enum=Full;None
type Transcript string

// The transcripts.
const (
	// TranscriptFull keeps every message, program, argument and result, in a ConfigMap
	// of the run and on the standard output of its pod.
	TranscriptFull Transcript = "Full"
	// TranscriptNone keeps none of these anywhere.
	TranscriptNone Transcript = "None"
)

// Finalize says what ends an agent's run.
// +kubebuilder:validation:Enum=Direct;Model
type Finalize string

// The ways to end.
const (
	// FinalizeDirect takes the first usable result of a program as the output.
	FinalizeDirect Finalize = "Direct"
	// FinalizeModel has the model close the run itself, after a program succeeded.
	FinalizeModel Finalize = "Model"
)

// ModelAPI is what a model endpoint speaks.
// +kubebuilder:validation:Enum=ChatCompletions;Responses
type ModelAPI string

// The APIs, both in OpenAI's form.
const (
	ModelAPIChat      ModelAPI = "ChatCompletions"
	ModelAPIResponses ModelAPI = "Responses"
)

// Defaulted returns the API, which is ChatCompletions when it is empty.
func (a ModelAPI) Defaulted() ModelAPI {
	if a == "" {
		return ModelAPIChat
	}
	return a
}

// Bounds of an agent.
const (
	// DefaultMaxSteps and MaxMaxSteps bound the model requests of a run.
	DefaultMaxSteps = 20
	MaxMaxSteps     = 256
	// MaxPromptBytes bounds spec.agent.prompt, MaxInstructionBytes its instructions.
	MaxPromptBytes      = 64 << 10
	MaxInstructionBytes = 32 << 10
	// MaxModelAnswerBytes bounds the text of one answer of a model.
	MaxModelAnswerBytes = 512 << 10
	// MaxProtocolErrors is how many answers that are no message are fed back in a
	// run; the next one fails it.
	MaxProtocolErrors = 2
	// DefaultModelTimeoutMs bounds one request to a model when its grant does not say.
	DefaultModelTimeoutMs = 120_000
)

// PinnedAgent is the agent of a run as it is pinned: the program is the model's.
type PinnedAgent struct {
	Protocol     Protocol `json:"protocol"`
	Finalize     Finalize `json:"finalize"`
	Instructions string   `json:"instructions,omitempty"`
	Prompt       string   `json:"prompt"`
	MaxSteps     int64    `json:"maxSteps"`
	// MaxTokens bounds input and output tokens of the whole run, the lower one of
	// the run's and the grant's; 0 means no bound.
	MaxTokens int64 `json:"maxTokens,omitempty"`
	// MaxItems bounds the messages of the history that the model is shown, without
	// the system text and the prompt; 0 means no bound of its own.
	MaxItems int64        `json:"maxItems,omitempty"`
	Model    PinnedModel  `json:"model"`
	Options  ModelOptions `json:"options"`
	// Recipes are offered to the model as one tool each (ProtocolTools).
	Recipes []PinnedRecipeTool `json:"recipes,omitempty"`
}

// PinnedRecipeTool is a Recipe that a model may call as one tool.
type PinnedRecipeTool struct {
	PinnedRecipe
	Description  string          `json:"description,omitempty"`
	Source       string          `json:"source"`
	SourceDigest string          `json:"sourceDigest"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// Limits are those of one call of the recipe.
	Limits Limits `json:"limits"`
	// Tools are the names that it declares; each is a tool of the bundle.
	Tools []string `json:"tools,omitempty"`
}

// ModelToolCall is one native tool call of a model.
type ModelToolCall struct {
	// ID is the model's own, "" when it gave none.
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	// Arguments is the text that the model gave, which may be no JSON.
	Arguments string `json:"arguments"`
}

// PinnedModel is the one endpoint that a run may ask.
type PinnedModel struct {
	Grant GrantRef `json:"grant"`
	// Tool is the name that the grant declares; its credential and its root
	// certificates are mounted under it.
	Tool  string    `json:"tool"`
	URL   string    `json:"url"`
	Model string    `json:"model"`
	API   ModelAPI  `json:"api"`
	Auth  Auth      `json:"auth"`
	CA    *CABundle `json:"ca,omitempty"`
	// TimeoutMs bounds one attempt of a request, in milliseconds.
	TimeoutMs int64 `json:"timeoutMs"`
	// Retry says how often a request is tried; nil is twice.
	Retry *Retry `json:"retry,omitempty"`
}

// ModelOptions are passed through to the model; what is not set is left out of the
// request.
type ModelOptions struct {
	// Temperature and TopP are JSON numbers as they were spelled.
	Temperature     json.Number     `json:"temperature,omitempty"`
	TopP            json.Number     `json:"topP,omitempty"`
	MaxOutputTokens int64           `json:"maxOutputTokens,omitempty"`
	Seed            *int64          `json:"seed,omitempty"`
	Stop            []string        `json:"stop,omitempty"`
	ReasoningEffort string          `json:"reasoningEffort,omitempty"`
	Store           *bool           `json:"store,omitempty"`
	User            string          `json:"user,omitempty"`
	ExtraBody       json.RawMessage `json:"extraBody,omitempty"`
}

// StepKind says what one answer of the model was.
// +kubebuilder:validation:Enum=Code;Tools;Final;ProtocolError;Refused;ModelError
type StepKind string

// The kinds of step.
const (
	StepCode StepKind = "Code"
	// StepTools is an answer that calls native tools.
	StepTools         StepKind = "Tools"
	StepFinal         StepKind = "Final"
	StepProtocolError StepKind = "ProtocolError"
	// StepRefused is a program that came where only the end was allowed.
	StepRefused StepKind = "Refused"
	// StepModelError is a request that no usable answer came of.
	StepModelError StepKind = "ModelError"
)

// Step is one request to the model and what came of its answer.
// +kubebuilder:object:generate=true
type Step struct {
	// step counts from 1.
	// +required
	Step int64 `json:"step"`
	// kind says what the answer was; absent while it is awaited, and when nothing in
	// it was looked at any more.
	// +optional
	Kind StepKind `json:"kind,omitempty"`
	// drift says that there was text around the message.
	// +optional
	Drift bool `json:"drift,omitempty"`
	// reason says why the program failed, or why the answer was none; empty for a
	// program that succeeded and for the end.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// programDigest is the digest of the program's text.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	ProgramDigest string `json:"programDigest,omitempty"`
	// inputTokens and outputTokens are what the endpoint counted.
	// +optional
	InputTokens int64 `json:"inputTokens,omitempty"`
	// outputTokens is the size of the answer, in tokens.
	// +optional
	OutputTokens int64 `json:"outputTokens,omitempty"`
	// attempts counts how often the model was asked.
	// +optional
	Attempts int64 `json:"attempts,omitempty"`
	// modelMs is the time of the model, programMs that of the program, in
	// milliseconds.
	// +optional
	ModelMs int64 `json:"modelMs,omitempty"`
	// programMs is the time of the program, in milliseconds.
	// +optional
	ProgramMs int64 `json:"programMs,omitempty"`
	// calls counts the admitted tool calls of the step.
	// +optional
	Calls int64 `json:"calls,omitempty"`
	// toolCalls counts the native tool calls of the answer.
	// +optional
	ToolCalls int64 `json:"toolCalls,omitempty"`
	// tools are the first of these, in their order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Tools []StepTool `json:"tools,omitempty"`
}

// MaxStepTools bounds the native tool calls that a Step lists.
const MaxStepTools = 8

// StepTool is one native tool call of a step and what came of it.
// +kubebuilder:object:generate=true
type StepTool struct {
	// name is the tool's, the recipe's, or run_code.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`
	// reason says why the call failed; empty for one that succeeded.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// programDigest is the digest of the program of run_code or of the recipe.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	ProgramDigest string `json:"programDigest,omitempty"`
	// ms is the time of the call, in milliseconds.
	// +optional
	Ms int64 `json:"ms,omitempty"`
}
