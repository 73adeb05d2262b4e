package report

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// WriteThrough stores e, which must carry the claim, and returns when it is
// stored. It tries again for a short time: until it returns, nothing is sent to
// a tool.
func (c *Client) WriteThrough(ctx context.Context, e contract.Execution) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.WriteFor)
	defer cancel()
	return c.write(ctx, e)
}

// Final delivers the report. It tries until ctx is done, or until the API server
// says that the report will never be taken.
func (c *Client) Final(ctx context.Context, e contract.Execution) error {
	return c.write(ctx, e)
}

func (c *Client) write(ctx context.Context, e contract.Execution) error {
	b := backoff{next: c.cfg.FirstWait}
	var since time.Time // when it was first refused
	for {
		err := c.apply(ctx, e, "")
		if err == nil {
			return nil
		}
		err = fmt.Errorf("write status.execution: %w", err)
		if hopeless(err) {
			return err
		}
		// An API server that just started forbids everything for a moment, and a
		// busy object conflicts for a moment; a policy that refuses the write, or
		// another run of the same name, does so for good.
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsConflict(err) {
			if since.IsZero() {
				since = c.cfg.Now()
			}
			if c.cfg.Now().Sub(since) > c.cfg.RefusedFor {
				return err
			}
		}
		if !b.wait(ctx) {
			return err
		}
	}
}

// hopeless reports whether the same write can never succeed: the run is gone, or
// the API server does not take the object.
func hopeless(err error) bool {
	var s apierrors.APIStatus
	if !errors.As(err, &s) {
		return false
	}
	switch s.Status().Code {
	case http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge, http.StatusBadRequest:
		return true
	}
	return false
}

// StopReason asks why this pod is being stopped, and says Interrupted when the
// run does not tell. It asks once, for a bounded time.
func (c *Client) StopReason(ctx context.Context, claimed *Claimed) *contract.Fault {
	run, err := c.get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return contract.Faultf(contract.ReasonCancelled, "the run was deleted")
	case err != nil:
		return contract.Faultf(contract.ReasonInterrupted, "the pod was stopped while the program ran")
	case run.Metadata.UID != c.cfg.Run.UID:
		return contract.Faultf(contract.ReasonCancelled, "the run was deleted")
	case run.cancelled():
		return contract.Faultf(contract.ReasonCancelled, "the run was cancelled by spec.cancel")
	case run.Metadata.DeletionTimestamp != nil:
		return contract.Faultf(contract.ReasonCancelled, "the run is being deleted")
	case run.Status.ExecutionGeneration > c.cfg.Run.Generation, run.Status.ExecutionDigest != claimed.digest, run.asked() != claimed.asked:
		return contract.Faultf(contract.ReasonSuperseded, "the run's spec asks for another execution")
	}
	return contract.Faultf(contract.ReasonInterrupted, "the pod was stopped while the program ran")
}
