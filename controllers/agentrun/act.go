package agentrun

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/runtimepod"
)

// act is the only writer of anything but the status. Before it writes, it makes
// sure that the run is still the one that was decided about: a cache may lag
// behind a claim or a report.
func (r *Reconciler) act(ctx context.Context, s Snapshot, p Plan) (Done, error) {
	if p.writes() {
		if fresh, err := r.fresh(ctx, s.Run); err != nil || !fresh {
			return Done{Stale: !fresh}, err
		}
	}
	switch p.Verb {
	case VerbIgnore, VerbWait, VerbSettle, VerbRest:
		return Done{}, nil
	case VerbLaunch:
		return r.launch(ctx, s.Run, p.Pin)
	case VerbStop:
		return Done{}, r.stop(ctx, s.Pod)
	case VerbSupersede:
		return r.confirmEnd(ctx, s, p)
	case VerbExpire:
		uid, version := s.Run.UID, s.Run.ResourceVersion
		err := r.Client.Delete(ctx, s.Run, client.PropagationPolicy("Background"),
			client.Preconditions{UID: &uid, ResourceVersion: &version})
		return Done{}, client.IgnoreNotFound(err)
	}
	return Done{}, reconcile.TerminalError(fmt.Errorf("the plan has the verb %q", p.Verb))
}

// fresh reports whether the run on the API server is the one that was looked at.
func (r *Reconciler) fresh(ctx context.Context, run *v1alpha1.AgentRun) (bool, error) {
	live, err := runtimepod.Get(ctx, r.Reader, client.ObjectKeyFromObject(run), &v1alpha1.AgentRun{})
	if err != nil {
		return false, fmt.Errorf("get the run: %w", err)
	}
	return live != nil && live.UID == run.UID && live.ResourceVersion == run.ResourceVersion, nil
}

// stop deletes exactly the pod that was looked at.
func (r *Reconciler) stop(ctx context.Context, pod *corev1.Pod) error {
	uid := pod.UID
	err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	return nil
}

// confirmEnd makes sure that no pod of the generation, but the one that was
// judged, is alive before the next generation opens.
func (r *Reconciler) confirmEnd(ctx context.Context, s Snapshot, p Plan) (Done, error) {
	key := client.ObjectKey{Namespace: s.Run.Namespace, Name: Name(s.Run, p.Generation)}
	pod, err := runtimepod.Get(ctx, r.Reader, key, &corev1.Pod{})
	if err != nil {
		return Done{}, fmt.Errorf("get the pod: %w", err)
	}
	judged := s.Pod != nil && pod != nil && s.Pod.UID == pod.UID
	return Done{Stale: ours(s.Run, pod) && !runtimepod.Ended(pod) && !judged}, nil
}

// launch makes, in this order, the identity of runtime pods, the pin and the
// pod. Each step is one that an earlier try may have done already.
func (r *Reconciler) launch(ctx context.Context, run *v1alpha1.AgentRun, pin *Pin) (Done, error) {
	var done Done
	if err := runtimepod.EnsureIdentity(ctx, r.Client, run.Namespace); err != nil {
		return r.refused(done, err)
	}
	if run.Status.Pinned == nil {
		var err error
		if done.Fault, err = r.createPin(ctx, run, pin); err != nil || done.Fault != nil {
			return r.refused(done, err)
		}
	}
	done.Pinned = true
	err := r.Client.Create(ctx, NewPod(r.Operator.Runtime, run, pin))
	if apierrors.IsAlreadyExists(err) {
		return r.adopt(ctx, run, pin, done)
	}
	if err != nil {
		return r.refused(done, err)
	}
	done.Launched = true
	return done, nil
}

// createPin writes the ConfigMap, once. One of the same name that holds other
// bytes is never replaced: it ends the run.
func (r *Reconciler) createPin(ctx context.Context, run *v1alpha1.AgentRun, pin *Pin) (*contract.Fault, error) {
	err := r.Client.Create(ctx, pin.ConfigMap(run))
	if err == nil {
		return nil, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create ConfigMap %s: %w", pin.Name, err)
	}
	key := client.ObjectKey{Namespace: run.Namespace, Name: pin.Name}
	cm, err := runtimepod.Get(ctx, r.Reader, key, &corev1.ConfigMap{})
	if err != nil || cm == nil {
		return nil, fmt.Errorf("get ConfigMap %s, which exists: %w", pin.Name, orGone(err))
	}
	if !pin.Held(run, cm) {
		return contract.Faultf(contract.ReasonInterrupted,
			"ConfigMap %s exists and does not hold what this execution would be pinned to (%s); it is never replaced: delete it and submit the run again",
			pin.Name, pin.Digest), nil
	}
	return nil, nil
}

func orGone(err error) error {
	if err == nil {
		return fmt.Errorf("it is gone again")
	}
	return err
}

// adopt looks at the pod that has the derived name already: an earlier try of
// the same launch made it, or it is in the way.
func (r *Reconciler) adopt(ctx context.Context, run *v1alpha1.AgentRun, pin *Pin, done Done) (Done, error) {
	pod, err := runtimepod.Get(ctx, r.Reader, client.ObjectKey{Namespace: run.Namespace, Name: pin.Name}, &corev1.Pod{})
	switch {
	case err != nil || pod == nil:
		return done, fmt.Errorf("get pod %s, which exists: %w", pin.Name, orGone(err))
	case !ours(run, pod):
		done.Refused = &Refusal{Reason: v1alpha1.ReasonWaiting,
			Message: fmt.Sprintf("pod %s exists and was not launched for this run; delete it", pod.Name)}
	case pod.Annotations[v1alpha1.AnnotationBundleDigest] != pin.Digest || pod.DeletionTimestamp != nil || runtimepod.Ended(pod):
		done.Stale = true
	default:
		done.Launched = true
	}
	return done, nil
}

// refused turns a refusal by quota or policy into something to wait for; what
// may be a hiccup stays an error, and is tried again soon. No error is none.
func (r *Reconciler) refused(done Done, err error) (Done, error) {
	if reason, message := runtimepod.Refused(err, "the run"); reason != "" {
		done.Refused = &Refusal{Reason: reason, Message: message}
		return done, nil
	}
	return done, err
}
