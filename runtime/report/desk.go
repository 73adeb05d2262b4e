package report

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Answer is an entry of spec.resolutions.
type Answer struct {
	ID       string            `json:"id"`
	Decision contract.Decision `json:"decision"`
	// Result is the JSON text as the API server gives it, nil when there is none; at
	// most contract.MaxResolutionResultBytes.
	Result json.RawMessage `json:"result"`
	// By is the user who answered, as the API server's policy made sure.
	By string `json:"by"`
}

// WriteWhile stores e, which must carry the claim. It tries until ctx is done, or
// until the API server says that it will never be taken.
func (c *Client) WriteWhile(ctx context.Context, e contract.Execution) error {
	return c.write(ctx, e)
}

// Answer waits for the entry of spec.resolutions with exactly this id. It looks
// again and again, more seldom with time, also while the API server cannot be
// reached, until ctx is done; then the error is ctx's. A result that is too large is an
// error that wraps a *contract.Fault.
func (c *Client) Answer(ctx context.Context, id string) (Answer, error) {
	b := backoff{next: c.cfg.LookEvery, max: c.cfg.LookEvery * lookSlower}
	for {
		if run, err := c.get(ctx); err == nil && run.Metadata.UID == c.cfg.Run.UID {
			if a, found := run.answer(id); found {
				return a, a.check()
			}
		}
		if !b.wait(ctx) {
			return Answer{}, ctx.Err()
		}
	}
}

// lookSlower is how many times longer the longest wait between two looks is than
// the first.
const lookSlower = 10

// defaultLook is the first wait for an answer: the longest is then 5 s.
const defaultLook = 500 * time.Millisecond

// answer finds the answer with the id. One that this version cannot read is none.
func (a *agentRun) answer(id string) (Answer, bool) {
	var entries []json.RawMessage
	if json.Unmarshal(a.Spec["resolutions"], &entries) != nil {
		return Answer{}, false
	}
	for _, raw := range entries {
		var x Answer
		if json.Unmarshal(raw, &x) != nil || x.ID != id {
			continue
		}
		if x.Decision == contract.DecisionApprove || x.Decision == contract.DecisionDeny {
			return x, true
		}
	}
	return Answer{}, false
}

func (a Answer) check() error {
	if n := len(a.Result); n > contract.MaxResolutionResultBytes {
		return fmt.Errorf("answer %s: %w", a.ID, contract.Faultf(contract.ReasonChildResultTooLarge,
			"the result that was given for the call has %d bytes, more than %d", n, contract.MaxResolutionResultBytes))
	}
	return nil
}
