package recipe

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/enable"
	"github.com/codeact-dev/codeact-operator/controllers/runtimepod"
	"github.com/codeact-dev/codeact-operator/controllers/toolgrant"
)

// The indexes by which Recipes are found.
const (
	// IndexToolName is the recipe's own effective tool name.
	IndexToolName = "effectiveToolName"
	// IndexTools is each tool that the recipe may call.
	IndexTools = "spec.tools"
	// IndexQueued finds the recipes that wait for a free check pod: those with the
	// value "true".
	IndexQueued = "queued"
)

// Queued reports whether a recipe waits for a free check pod.
func Queued(rcp *v1alpha1.Recipe) bool {
	c := meta.FindStatusCondition(rcp.Status.Conditions, v1alpha1.ConditionTestsPassed)
	return c != nil && c.Reason == v1alpha1.ReasonQueued
}

// observe is the only reader: it looks at the objects that have, or are called
// by, the recipe's names.
func (r *Reconciler) observe(ctx context.Context, rcp *v1alpha1.Recipe) (Snapshot, error) {
	s := Snapshot{Now: r.Clock.Now(), Recipe: rcp}
	var err error
	// A Namespace that the cache has not seen yet has the recipe judged again.
	if s.NamespaceAnnotations, err = enable.Annotations(ctx, r.Client, r.Operator, rcp.Namespace); client.IgnoreNotFound(err) != nil {
		return s, err
	}
	names := slices.Clone(rcp.Spec.Tools)
	if own := rcp.EffectiveToolName(); !slices.Contains(names, own) {
		names = append(names, own)
	}
	for _, name := range names {
		var recipes v1alpha1.RecipeList
		if err := r.Client.List(ctx, &recipes, client.InNamespace(rcp.Namespace), client.MatchingFields{IndexToolName: name}); err != nil {
			return s, fmt.Errorf("list the Recipes named %s: %w", name, err)
		}
		s.Recipes = append(s.Recipes, recipes.Items...)
	}
	offer, err := toolgrant.FindOffer(ctx, r.Client, rcp.Namespace, names)
	s.Grants, s.NamespaceLabels = offer.Grants, offer.NamespaceLabels
	if err != nil {
		return s, err
	}
	return s, r.observePods(ctx, &s)
}

// observePods finds the check pods of the recipe. That the present one is gone is
// only believed from the API server: the cache may not have seen it yet.
func (r *Reconciler) observePods(ctx context.Context, s *Snapshot) error {
	rcp := s.Recipe
	if len(rcp.Spec.Tests) == 0 && rcp.Status.Tests == nil {
		return nil
	}
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(rcp.Namespace),
		client.MatchingLabels{contract.LabelPod: contract.PodOfCheck, v1alpha1.LabelRecipeUID: string(rcp.UID)})
	if err != nil {
		return fmt.Errorf("list the check pods: %w", err)
	}
	s.Pods = pods.Items
	t := rcp.Status.Tests
	if t == nil || t.Attempts == 0 || t.Lost != "" || t.Finished() {
		return nil
	}
	name := CheckName(rcp, t.ManifestDigest, t.Attempts)
	if slices.ContainsFunc(s.Pods, func(p corev1.Pod) bool { return p.Name == name }) {
		return nil
	}
	pod, err := runtimepod.Get(ctx, r.Reader, client.ObjectKey{Namespace: rcp.Namespace, Name: name}, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("get pod %s: %w", name, err)
	}
	if pod != nil {
		s.Pods = append(s.Pods, *pod)
	}
	return nil
}

// checkEnded passes check pods that have come to their end.
func checkEnded() predicate.Predicate {
	is := func(o client.Object) bool { return o.GetLabels()[contract.LabelPod] == contract.PodOfCheck }
	over := func(o client.Object) bool {
		p, ok := o.(*corev1.Pod)
		return ok && (runtimepod.Ended(p) || p.DeletionTimestamp != nil)
	}
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return is(e.ObjectNew) && !over(e.ObjectOld) && over(e.ObjectNew) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return is(e.Object) },
	}
}

// queued finds the recipes that have waited longest for a free check pod, as many
// as there may be.
func (r *Reconciler) queued(ctx context.Context, _ client.Object) []reconcile.Request {
	var l v1alpha1.RecipeList
	if err := r.Client.List(ctx, &l, client.MatchingFields{IndexQueued: "true"}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the Recipes that wait for a check pod")
		return nil
	}
	since := func(rcp v1alpha1.Recipe) time.Time {
		if c := meta.FindStatusCondition(rcp.Status.Conditions, v1alpha1.ConditionTestsPassed); c != nil {
			return c.LastTransitionTime.Time
		}
		return time.Time{}
	}
	slices.SortFunc(l.Items, func(a, b v1alpha1.Recipe) int { return since(a).Compare(since(b)) })
	var out []reconcile.Request
	for i := range min(len(l.Items), r.Operator.RecipeTests.Pods) {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
	}
	return out
}

// ofRecipe finds the other recipes that a recipe's name matters to.
func (r *Reconciler) ofRecipe(ctx context.Context, o client.Object) []reconcile.Request {
	rcp, ok := o.(*v1alpha1.Recipe)
	if !ok {
		return nil
	}
	out := r.named(ctx, rcp.Namespace, rcp.EffectiveToolName())
	for i := range out {
		if out[i].Name == rcp.Name {
			return append(out[:i], out[i+1:]...)
		}
	}
	return out
}

// ofGrant finds the recipes that a grant's tool matters to.
func (r *Reconciler) ofGrant(ctx context.Context, o client.Object) []reconcile.Request {
	g, ok := o.(*v1alpha1.ToolGrant)
	if !ok {
		return nil
	}
	if g.Offered() {
		return r.named(ctx, metav1.NamespaceAll, g.Spec.Tool.Name)
	}
	return r.named(ctx, g.Namespace, g.Spec.Tool.Name)
}

// ofNamespace finds the recipes of a namespace.
func (r *Reconciler) ofNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	var l v1alpha1.RecipeList
	if err := r.Client.List(ctx, &l, client.InNamespace(o.GetName())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the Recipes of a namespace", "namespace", o.GetName())
		return nil
	}
	var out []reconcile.Request
	for i := range l.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
	}
	return out
}

// named finds the recipes that have, or call, the name, in one namespace or in all.
func (r *Reconciler) named(ctx context.Context, namespace, name string) []reconcile.Request {
	var out []reconcile.Request
	seen := map[client.ObjectKey]bool{}
	for _, index := range []string{IndexToolName, IndexTools} {
		var l v1alpha1.RecipeList
		if err := r.Client.List(ctx, &l, client.InNamespace(namespace), client.MatchingFields{index: name}); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot find the Recipes of a name", "name", name)
			continue
		}
		for i := range l.Items {
			if key := client.ObjectKeyFromObject(&l.Items[i]); !seen[key] {
				seen[key] = true
				out = append(out, reconcile.Request{NamespacedName: key})
			}
		}
	}
	return out
}
