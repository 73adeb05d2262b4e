package loop

import (
	"context"
	"encoding/json"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Desk is where a direct call waits for somebody's answer.
type Desk interface {
	// Await shows the call as pending and returns the answer to it, bound to its
	// arguments, once there is one; nothing is pending any more then. It ends with
	// ctx. The error wraps a *contract.Fault, or is ctx's.
	Await(ctx context.Context, p contract.Pending) (Resolution, error)
}

// Resolution is the answer to a call that waited.
type Resolution struct {
	Decision contract.Decision
	// Result is the JSON text of the result of a deferred call that was approved.
	Result json.RawMessage
	// By is who answered.
	By string
}
