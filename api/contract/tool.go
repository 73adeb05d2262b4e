package contract

import (
	"encoding/json"
	"regexp"
	"slices"
)

// ToolNamePattern is what a tool, or a recipe offered as one, may be called.
const ToolNamePattern = `^[A-Za-z0-9_-]{1,64}$`

var toolNameRE = regexp.MustCompile(ToolNamePattern)

// ValidToolName reports whether s is spelled as ToolNamePattern says. Names are
// case-sensitive; there are no aliases.
func ValidToolName(s string) bool { return toolNameRE.MatchString(s) }

// reservedNames belong to the runtime and to hosts of sessions: no recipe may
// take one, and code can never call one.
var reservedNames = []string{
	"ask_user_question", "cancel_subagent", "delegate", "mcp_call_tool", "run_code", "run_recipe",
	"spawn_delegate", "steer_subagent", "summarize", "wait_subagent",
	"create_session", "delete_session", "get_session", "interrupt_session", "list_sessions",
	"replay_session", "start_session", "steer_session", "update_session",
}

// ReservedNames returns the names that no recipe may take and that code can
// never call, in no promised order.
func ReservedNames() []string { return slices.Clone(reservedNames) }

// ReservedName reports whether name is one of ReservedNames.
func ReservedName(name string) bool { return slices.Contains(reservedNames, name) }

// ToolKind says what sort of thing a tool is. Only Function is ever callable
// from code.
// +kubebuilder:validation:Enum=Function;Interaction;Delegation;SessionControl;Proxy;Output;Orchestration;Model
type ToolKind string

// The kinds of tool.
const (
	KindFunction       ToolKind = "Function"
	KindInteraction    ToolKind = "Interaction"
	KindDelegation     ToolKind = "Delegation"
	KindSessionControl ToolKind = "SessionControl"
	KindProxy          ToolKind = "Proxy"
	KindOutput         ToolKind = "Output"
	KindOrchestration  ToolKind = "Orchestration"
	// KindModel is a model endpoint: an authority, but never a tool.
	KindModel ToolKind = "Model"
)

// Effect says what a call may do to the world, and so what a lost answer means.
// +kubebuilder:validation:Enum=ReadOnly;Idempotent;Effectful
type Effect string

// The classes of effect, from harmless to harmful.
const (
	EffectReadOnly   Effect = "ReadOnly"
	EffectIdempotent Effect = "Idempotent"
	EffectEffectful  Effect = "Effectful"
)

// CodeActPolicy is a tool's own word on being called from code.
// +kubebuilder:validation:Enum=Inherit;Allow;Deny
type CodeActPolicy string

// The policies: Inherit takes the operator's default, Deny always wins, Allow
// never creates authority.
const (
	CodeActInherit CodeActPolicy = "Inherit"
	CodeActAllow   CodeActPolicy = "Allow"
	CodeActDeny    CodeActPolicy = "Deny"
)

// Profile says how a tool takes its dependencies. Only a Strict tool is
// callable from code: it is given what it asks for by name and nothing else.
// +kubebuilder:validation:Enum=Strict;Filtered;Legacy
type Profile string

// The profiles.
const (
	ProfileStrict   Profile = "Strict"
	ProfileFiltered Profile = "Filtered"
	ProfileLegacy   Profile = "Legacy"
)

// Approval says whether somebody must approve each call of a tool.
// +kubebuilder:validation:Enum=Never;Required
type Approval string

// The approvals: a tool that requires one is never callable from code.
const (
	ApprovalNever    Approval = "Never"
	ApprovalRequired Approval = "Required"
)

// The capabilities: each names one piece of host context that the broker
// projects into a call when the tool asks for it and the grant gives it.
const (
	// CapabilityRunIdentity sends the run's namespace, name and UID.
	CapabilityRunIdentity = "run.identity"
	// CapabilityRunLabels sends the run's labels.
	CapabilityRunLabels = "run.labels"
	// CapabilityTraceContext sends the trace context of the call (W3C traceparent).
	CapabilityTraceContext = "trace.context"
	// CapabilityAuth sends the credential of the grant.
	CapabilityAuth = "auth"
)

// Tool is the declaration of a tool, as its users see it. It is pinned with its
// digest: what a backend says at call time may not widen it.
type Tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Kind         ToolKind        `json:"kind"`
	Effect       Effect          `json:"effect"`
	CodeAct      CodeActPolicy   `json:"codeAct"`
	Profile      Profile         `json:"profile"`
	Capabilities []string        `json:"capabilities,omitempty"`
	// Deferred says that the result comes later, from somebody who answers the call
	// in the run's spec.resolutions. Code cannot wait for it.
	Deferred bool `json:"deferred,omitempty"`
}

// Digest returns the digest of the declaration's canonical JSON, with the
// defaults filled in and the capabilities in order, so that two spellings of
// one declaration have one digest.
func (t Tool) Digest() (string, error) {
	t = t.Defaulted()
	t.Capabilities = slices.Sorted(slices.Values(t.Capabilities))
	b, err := Canonical(t)
	if err != nil {
		return "", err
	}
	return Digest(b), nil
}

// Defaulted returns t with every unset choice at its default: Function,
// Effectful, Inherit, Strict.
func (t Tool) Defaulted() Tool {
	if t.Kind == "" {
		t.Kind = KindFunction
	}
	if t.Effect == "" {
		t.Effect = EffectEffectful
	}
	if t.CodeAct == "" {
		t.CodeAct = CodeActInherit
	}
	if t.Profile == "" {
		t.Profile = ProfileStrict
	}
	return t
}
