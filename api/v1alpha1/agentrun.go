package v1alpha1

import (
	"encoding/json"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// ExecutionDigest returns the digest of what the spec asks to be executed: all
// of it but cancel, ttlAfterFinished, startDeadline and resolutions. Another digest is an
// explicit re-execution, so no default may ever be added to the spec in a way
// that changes the digest of an object that is already stored.
func (r *AgentRun) ExecutionDigest() (string, error) {
	spec := r.Spec
	spec.Cancel, spec.TTLAfterFinished, spec.StartDeadline, spec.Resolutions = false, nil, nil, nil
	b, err := contract.Canonical(spec)
	if err != nil {
		return "", err
	}
	return contract.Digest(b), nil
}

// Input returns the JSON text of the input: null without one.
func (r *AgentRun) Input() json.RawMessage {
	if in := rawJSON(r.Spec.Input); in != nil {
		return in
	}
	return json.RawMessage("null")
}

// Extra returns the JSON text of the extra body; nil without one.
func (a *AgentSpec) Extra() json.RawMessage { return rawJSON(a.ExtraBody) }

// Timeout bounds the whole run from the launch of its pod.
func (r *AgentRun) Timeout() time.Duration {
	if r.Spec.Timeout == nil {
		return contract.DefaultTimeout
	}
	return r.Spec.Timeout.Duration
}

// StartDeadline bounds how long the run waits for its recipe and grants.
func (r *AgentRun) StartDeadline() time.Duration {
	if r.Spec.StartDeadline == nil {
		return contract.DefaultStartDeadline
	}
	return r.Spec.StartDeadline.Duration
}
