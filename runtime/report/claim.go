package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Claimed is an execution that belongs to this pod.
type Claimed struct {
	// Execution is the report so far: the claim.
	Execution contract.Execution
	// Time is when the claim was made.
	Time time.Time

	asked  string // see agentRun.asked
	digest string // status.executionDigest
}

// errRefused is the chain's end of every claim that must not be made.
var errRefused = errors.New("not claimed")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errRefused, fmt.Sprintf(format, args...))
}

// Claim makes this pod the one that executes. It succeeds once in the life of an
// execution generation: the write carries the version of the object that was
// read, so of two pods one finds the other's claim. It waits, for a bounded
// time, until the controller's own record of the launch is there. After an
// error nothing may be executed.
func (c *Client) Claim(ctx context.Context) (*Claimed, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.ClaimFor)
	defer cancel()
	at := c.cfg.Now()
	mine := contract.Execution{
		Generation: c.cfg.Run.Generation, RunUID: c.cfg.Run.UID, BundleDigest: c.cfg.BundleDigest,
		// Nanoseconds tell this process's claim from one of an earlier container
		// of the same pod.
		Claim: contract.Claim{PodName: c.cfg.Pod.Name, PodUID: c.cfg.Pod.UID, Time: at.UTC().Format(time.RFC3339Nano)},
	}
	b := backoff{next: c.cfg.FirstWait}
	var last error
	for {
		run, err := c.tryClaim(ctx, mine)
		if err == nil {
			return &Claimed{Execution: mine, Time: at, asked: run.asked(), digest: run.Status.ExecutionDigest}, nil
		}
		if last == nil || ctx.Err() == nil {
			last = err // what an answer said tells more than that the time ran out
		}
		if errors.Is(err, errRefused) || !b.wait(ctx) {
			return nil, last
		}
	}
}

func (c *Client) tryClaim(ctx context.Context, mine contract.Execution) (*agentRun, error) {
	run, err := c.get(ctx)
	if apierrors.IsNotFound(err) {
		return nil, refused("there is no AgentRun %s/%s", c.cfg.Run.Namespace, c.cfg.Run.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the AgentRun: %w", err)
	}
	done, err := c.mayClaim(run, mine)
	if done || err != nil {
		return run, err
	}
	if err := c.apply(ctx, mine, run.Metadata.ResourceVersion); err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return run, nil
}

// mayClaim decides whether the run is this pod's to claim. Done means that the
// claim stands already, since only the answer to it was lost. An error that is
// not a refusal may pass with time.
func (c *Client) mayClaim(run *agentRun, mine contract.Execution) (done bool, err error) {
	s := run.Status
	switch {
	case run.Metadata.UID != mine.RunUID:
		return false, refused("the AgentRun has the UID %s, not %s", run.Metadata.UID, mine.RunUID)
	case run.Metadata.DeletionTimestamp != nil:
		return false, refused("the AgentRun is being deleted")
	case s.ExecutionGeneration > mine.Generation:
		return false, refused("the run is at execution generation %d already", s.ExecutionGeneration)
	}
	if e := s.Execution; e != nil && e.RunUID == mine.RunUID && e.Generation >= mine.Generation {
		return held(e, mine)
	}
	return false, launched(run, mine)
}

// held judges a claim that stands.
func held(e *contract.Execution, mine contract.Execution) (done bool, err error) {
	switch {
	case e.Claim == mine.Claim && e.Generation == mine.Generation:
		return true, nil
	case e.Claim.PodUID == mine.Claim.PodUID:
		return false, refused("an earlier container of this pod made the claim at %s", e.Claim.Time)
	}
	return false, refused("pod %s has the claim", e.Claim.PodName)
}

// launched judges whether the controller has launched exactly this pod.
func launched(run *agentRun, mine contract.Execution) error {
	s := run.Status
	switch {
	case s.ExecutionGeneration < mine.Generation:
		return fmt.Errorf("the run's status is at execution generation %d, not at %d yet", s.ExecutionGeneration, mine.Generation)
	case s.CompletionTime != nil:
		return refused("the run has ended")
	case run.cancelled():
		return refused("the run is cancelled")
	case s.PodName != mine.Claim.PodName:
		return fmt.Errorf("the run's status does not name this pod yet, but %q", s.PodName)
	case s.Pinned == nil:
		return errors.New("the run's status does not name its pin yet")
	case s.Pinned.Digest != mine.BundleDigest:
		return refused("the run is pinned to another bundle")
	}
	return nil
}
