package contract

// CallState is where one child call stands in the journal.
// +kubebuilder:validation:Enum=Refused;Awaiting;Dispatched;Completed;Failed;Uncertain;Abandoned
type CallState string

// The states of a child call. Dispatched is an intent without an outcome.
const (
	// CallRefused never got an id: the broker turned it away.
	CallRefused CallState = "Refused"
	// CallAwaiting was admitted and waits for somebody's answer: nothing was sent.
	CallAwaiting CallState = "Awaiting"
	// CallDispatched may have reached the tool; no outcome is known.
	CallDispatched CallState = "Dispatched"
	// CallCompleted was answered: the tool did its work. With a reason, the answer
	// was not accepted.
	CallCompleted CallState = "Completed"
	// CallFailed is proven to have had no effect, or failed by the tool's own word.
	CallFailed CallState = "Failed"
	// CallUncertain may have had an effect; its outcome is not proven.
	CallUncertain CallState = "Uncertain"
	// CallAbandoned was admitted but never sent.
	CallAbandoned CallState = "Abandoned"
)

// MaxRefusedCalls bounds the refused calls that are listed in a journal: a
// program may be refused without end, and only admitted calls have a budget.
const MaxRefusedCalls = 64

// MaxReceiptBytes bounds a receipt; a longer one is cut.
const MaxReceiptBytes = 1024

// Call is one child call in the journal. Times are RFC 3339 in UTC.
// +kubebuilder:object:generate=true
type Call struct {
	// seq counts the admitted calls of the run from 1; a refused call has none.
	// +optional
	Seq int64 `json:"seq,omitempty"`
	// id is the idempotency key of the call; a refused call has none.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id,omitempty"`
	// tool is the name that the program called, cut to 64 bytes.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Tool string `json:"tool"`
	// grant names the ToolGrant that gave the authority.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Grant string `json:"grant,omitempty"`
	// grantNamespace is its namespace, where that is not the run's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	GrantNamespace string `json:"grantNamespace,omitempty"`
	// grantUID is the UID of that ToolGrant.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	GrantUID string `json:"grantUID,omitempty"`
	// grantGeneration is the generation of that ToolGrant when it was pinned.
	// +optional
	GrantGeneration int64 `json:"grantGeneration,omitempty"`
	// effect is what the call may do to the world.
	// +optional
	Effect Effect `json:"effect,omitempty"`
	// state is where the call stands.
	// +required
	State CallState `json:"state"`
	// reason says why the call was refused, failed or is uncertain.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason Reason `json:"reason,omitempty"`
	// argumentsDigest is the digest of the arguments' canonical JSON.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	ArgumentsDigest string `json:"argumentsDigest,omitempty"`
	// resultDigest is the digest of the answer's bytes.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	ResultDigest string `json:"resultDigest,omitempty"`
	// resultBytes is the size of the answer, in bytes.
	// +optional
	ResultBytes int64 `json:"resultBytes,omitempty"`
	// receipt is what the tool gave as proof of its effect.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Receipt string `json:"receipt,omitempty"`
	// attempts counts how often the request was tried; absent when it never was.
	// +optional
	Attempts int64 `json:"attempts,omitempty"`
	// precisionLoss says that the result has a whole number that JavaScript cannot
	// hold: the program saw another one.
	// +optional
	PrecisionLoss bool `json:"precisionLoss,omitempty"`
	// startTime is when the call was admitted.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	StartTime string `json:"startTime,omitempty"`
	// endTime is when its outcome was known.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	EndTime string `json:"endTime,omitempty"`
}

// MayHaveHappened reports whether the call may have changed the world without
// a proven outcome.
func (c Call) MayHaveHappened() bool {
	switch c.State {
	case CallDispatched, CallUncertain:
		return c.Effect != EffectReadOnly
	case CallRefused, CallAwaiting, CallCompleted, CallFailed, CallAbandoned:
		return false
	}
	return false
}

// Ambiguous returns the calls of a journal that MayHaveHappened.
func Ambiguous(calls []Call) []Call {
	var out []Call
	for _, c := range calls {
		if c.MayHaveHappened() {
			out = append(out, c)
		}
	}
	return out
}
