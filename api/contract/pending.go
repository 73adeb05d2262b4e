package contract

import "fmt"

// PendingKind says what a call waits for.
// +kubebuilder:validation:Enum=Approval;Result
type PendingKind string

// The kinds of waiting.
const (
	// PendingApproval waits for the permission to make the call.
	PendingApproval PendingKind = "Approval"
	// PendingResult waits for the result itself: the call is made by somebody else.
	PendingResult PendingKind = "Result"
)

// Bounds of what waits and of its answers.
const (
	// MaxPendingArgumentBytes bounds the arguments that are shown of a call.
	MaxPendingArgumentBytes = 4096
	// MaxResolutions bounds the answers in a run's spec.
	MaxResolutions = 256
	// MaxResolutionResultBytes bounds the JSON text of the result in an answer.
	MaxResolutionResultBytes = 64 << 10
)

// Pending is one direct call that waits for somebody's answer.
// +kubebuilder:object:generate=true
type Pending struct {
	// id is what the answer must name. It is bound to the run, the execution
	// generation, the call and its arguments: see PendingID.
	// +required
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id"`
	// kind is Approval or Result.
	// +required
	Kind PendingKind `json:"kind"`
	// tool is the name of the tool.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Tool string `json:"tool"`
	// grant names the ToolGrant that gave the authority.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Grant string `json:"grant,omitempty"`
	// effect is what the call may do to the world.
	// +optional
	Effect Effect `json:"effect,omitempty"`
	// callID is the id of the call, which is its idempotency key.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	CallID string `json:"callID,omitempty"`
	// arguments is the JSON text of the arguments, or its beginning.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Arguments string `json:"arguments,omitempty"`
	// argumentsCut says that arguments is only the beginning.
	// +optional
	ArgumentsCut bool `json:"argumentsCut,omitempty"`
	// argumentsDigest is the digest of the arguments' whole canonical JSON.
	// +required
	// +kubebuilder:validation:MaxLength=71
	ArgumentsDigest string `json:"argumentsDigest"`
	// since is when the call began to wait, RFC 3339 in UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	Since string `json:"since,omitempty"`
}

// PendingID returns the id of a call that waits: <generation>-<seq>-<32 hex>,
// where the last part is taken from a digest over the run's UID and the
// arguments' digest, too. So nobody can answer a call whose arguments he has not
// seen, and an answer fits no other run.
func PendingID(r RunRef, seq int64, argumentsDigest string) string {
	const head, hex = len("sha256:"), 32
	d := Digest([]byte(r.CallID(seq) + " " + argumentsDigest))
	return fmt.Sprintf("%d-%d-%s", r.Generation, seq, d[head:head+hex])
}

// Decision is an answer to a call that waits.
// +kubebuilder:validation:Enum=Approve;Deny
type Decision string

// The decisions.
const (
	DecisionApprove Decision = "Approve"
	DecisionDeny    Decision = "Deny"
)
