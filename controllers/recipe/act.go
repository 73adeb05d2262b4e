package recipe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/runtimepod"
)

// act is the only writer of anything but the status. It returns the plan as it came
// out, and whether the recipe is still the one that was decided about: a cache may
// lag behind.
func (r *Reconciler) act(ctx context.Context, s Snapshot, p Plan) (out Plan, fresh bool, err error) {
	out, fresh, err = r.do(ctx, s, p)
	if err != nil && p.Tests.Launch != nil {
		before := (&subject{Snapshot: s}).record()
		out.Tests = p.Tests.refused(before, 0, v1alpha1.ReasonPending, "the check pod could not be launched; it is tried again")
	}
	return out, fresh, err
}

func (r *Reconciler) do(ctx context.Context, s Snapshot, p Plan) (Plan, bool, error) {
	for _, pod := range p.Tests.Remove {
		if err := r.remove(ctx, pod); err != nil {
			return p, true, err
		}
	}
	if p.Tests.Launch == nil {
		return p, true, nil
	}
	live, err := runtimepod.Get(ctx, r.Reader, client.ObjectKeyFromObject(s.Recipe), &v1alpha1.Recipe{})
	if err != nil {
		return p, true, fmt.Errorf("get the recipe: %w", err)
	}
	if live == nil || live.UID != s.Recipe.UID || live.ResourceVersion != s.Recipe.ResourceVersion {
		return p, false, nil
	}
	p.Tests, err = r.launch(ctx, s, p.Tests)
	return p, true, err
}

// remove deletes exactly the pod that was looked at.
func (r *Reconciler) remove(ctx context.Context, pod *corev1.Pod) error {
	uid := pod.UID
	err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	return nil
}

// launch makes the pod, unless there are as many as may be, and then what it
// mounts, so that the ConfigMap belongs to the pod and goes with it: the manager
// needs no right to delete ConfigMaps. The kubelet waits for it that long.
func (r *Reconciler) launch(ctx context.Context, s Snapshot, t Tests) (Tests, error) {
	before := (&subject{Snapshot: s}).record()
	if err := runtimepod.EnsureIdentity(ctx, r.Client, s.Recipe.Namespace); err != nil {
		return r.refused(t, before, err)
	}
	pod := NewCheckPod(r.Operator.Runtime, s.Recipe, t.Launch, t.Record.Attempts)
	free, err := r.create(ctx, pod)
	switch {
	case apierrors.IsAlreadyExists(err):
		key := client.ObjectKeyFromObject(pod)
		if pod, err = runtimepod.Get(ctx, r.Reader, key, &corev1.Pod{}); err != nil || pod == nil {
			return t.refused(before, runtimepod.RetryQuota, v1alpha1.ReasonPending, fmt.Sprintf("pod %s comes and goes", key.Name)), err
		}
		if !ours(s.Recipe, pod) {
			return t.refused(before, runtimepod.RetryQuota, v1alpha1.ReasonPending,
				fmt.Sprintf("pod %s exists and was not launched for this recipe; delete it", pod.Name)), nil
		}
	case err != nil:
		return r.refused(t, before, err)
	case !free:
		return t.refused(before, queueFor, v1alpha1.ReasonQueued,
			fmt.Sprintf("%d check pods run, as many as the operator allows; the tests run when one of them has ended", r.Operator.RecipeTests.Pods)), nil
	}
	if err := r.Client.Create(ctx, t.Launch.ConfigMap(s.Recipe, pod)); err != nil && !apierrors.IsAlreadyExists(err) {
		// One that exists and holds something else is refused by the pod, by its digest.
		if gone := r.remove(ctx, pod); gone != nil {
			return t, gone
		}
		return r.refused(t, before, err)
	}
	return t, nil
}

// create makes the pod if fewer check pods are alive than may be. Launches are one
// after another, and each counts what the API server has, so that there are never
// more, whatever the cache has not seen yet.
func (r *Reconciler) create(ctx context.Context, pod *corev1.Pod) (bool, error) {
	full := func(from client.Reader) (bool, error) {
		var all corev1.PodList
		if err := from.List(ctx, &all, client.MatchingLabels{contract.LabelPod: contract.PodOfCheck}); err != nil {
			return false, fmt.Errorf("list the check pods: %w", err)
		}
		n := 0
		for i := range all.Items {
			p := &all.Items[i]
			if p.Name == pod.Name && p.Namespace == pod.Namespace {
				return false, apierrors.NewAlreadyExists(corev1.Resource("pods"), pod.Name)
			}
			// A pod that only looks like one has not the identity.
			if p.Spec.ServiceAccountName == contract.RuntimeServiceAccount && !runtimepod.Ended(p) && p.DeletionTimestamp == nil {
				n++
			}
		}
		return n >= r.Operator.RecipeTests.Pods, nil
	}
	if no, err := full(r.Client); no || err != nil {
		return false, err
	}
	r.launches.Lock()
	defer r.launches.Unlock()
	if no, err := full(r.Reader); no || err != nil {
		return false, err
	}
	return true, r.Client.Create(ctx, pod)
}

// refused turns a refusal by quota or policy into something to wait for; what may be
// a hiccup stays an error, and is tried again soon.
func (r *Reconciler) refused(t Tests, before *v1alpha1.RecipeTests, err error) (Tests, error) {
	if reason, message := runtimepod.Refused(err, "a check pod"); reason != "" {
		return t.refused(before, runtimepod.RetryQuota, reason, message), nil
	}
	return t, err
}
