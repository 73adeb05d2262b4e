package loop

import (
	"fmt"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// unsettled turns an interruption into what matters more: calls that may have
// had their effect.
func unsettled(f *contract.Fault, calls []contract.Call) *contract.Fault {
	open := contract.Ambiguous(calls)
	if f == nil || f.Reason != contract.ReasonInterrupted || len(open) == 0 {
		return f
	}
	var names []string
	for _, c := range open {
		names = append(names, fmt.Sprintf("%d (%s)", c.Seq, c.Tool))
	}
	return contract.Faultf(contract.ReasonEffectsAmbiguous, "the pod was stopped, and these calls may have had their effect: %s", strings.Join(names, ", "))
}
