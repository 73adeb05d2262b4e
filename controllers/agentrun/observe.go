package agentrun

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/enable"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/controllers/runtimepod"
	"github.com/codeact-dev/codeact-operator/controllers/toolgrant"
)

// observe is the only reader. It reads what the state of the run makes
// necessary, from the cache where a stale answer does no harm.
func (r *Reconciler) observe(ctx context.Context, run *v1alpha1.AgentRun) (Snapshot, error) {
	s := Snapshot{Now: r.Clock.Now(), Run: run}
	name := client.ObjectKey{Namespace: run.Namespace, Name: Name(run, currentGeneration(run))}
	var err error
	if s.Pod, err = runtimepod.Get(ctx, r.Client, name, &corev1.Pod{}); err != nil {
		return s, fmt.Errorf("get the pod: %w", err)
	}
	if isFinished(run) {
		return s, nil
	}
	if s.Pod == nil && run.Status.PodName != "" {
		// The cache may not have seen the pod yet. That a pod is gone is only
		// believed from the API server.
		if s.Pod, err = runtimepod.Get(ctx, r.Reader, name, &corev1.Pod{}); err != nil {
			return s, fmt.Errorf("get the pod: %w", err)
		}
	}
	pod := s.Pod
	if !ours(run, pod) {
		pod = nil
	}
	if want := pinnedDigest(run, pod); want != "" && (pod == nil || run.Status.Pinned == nil) {
		if s.Pin, err = runtimepod.Get(ctx, r.Reader, name, &corev1.ConfigMap{}); err != nil {
			return s, fmt.Errorf("get the pinned ConfigMap: %w", err)
		}
	}
	if pod != nil || run.Status.Pinned != nil || !run.DeletionTimestamp.IsZero() {
		return s, nil
	}
	return s, r.observeAuthority(ctx, &s)
}

// observeAuthority reads the recipe, the grants and what bears on them: what a run is pinned from,
// and never again after that.
func (r *Reconciler) observeAuthority(ctx context.Context, s *Snapshot) error {
	var err error
	// A cache that is late would start what was switched off before the run came.
	if s.NamespaceAnnotations, err = enable.Annotations(ctx, r.Reader, r.Operator, s.Run.Namespace); err != nil {
		return err
	}
	if ref := s.Run.Spec.Recipe; ref != nil {
		key := client.ObjectKey{Namespace: s.Run.Namespace, Name: ref.Name}
		if s.Recipe, err = runtimepod.Get(ctx, r.Client, key, &v1alpha1.Recipe{}); err != nil {
			return fmt.Errorf("get the Recipe: %w", err)
		}
	}
	if a := s.Run.Spec.Agent; a != nil {
		for _, name := range a.Recipes {
			r, err := runtimepod.Get(ctx, r.Client, client.ObjectKey{Namespace: s.Run.Namespace, Name: name}, &v1alpha1.Recipe{})
			if err != nil {
				return fmt.Errorf("get the Recipe: %w", err)
			}
			if r != nil {
				s.Recipes = append(s.Recipes, *r)
			}
		}
	}
	l := &look{Snapshot: *s}
	asked := slices.Clone(l.asked())
	for _, r := range l.agentRecipes() {
		asked = slices.Concat(asked, r.Spec.Tools)
	}
	slices.Sort(asked)
	asked = slices.Compact(asked)
	for _, tool := range asked {
		var same v1alpha1.RecipeList
		err := r.Client.List(ctx, &same, client.InNamespace(s.Run.Namespace), client.MatchingFields{recipe.IndexToolName: tool})
		if err != nil {
			return fmt.Errorf("list the Recipes named %s: %w", tool, err)
		}
		s.Recipes = append(s.Recipes, same.Items...)
	}
	offer, err := toolgrant.FindOffer(ctx, r.Client, s.Run.Namespace, asked)
	s.Grants, s.NamespaceLabels = offer.Grants, offer.NamespaceLabels
	if err != nil || s.Run.Spec.Agent == nil {
		return err
	}
	models, err := toolgrant.FindModel(ctx, r.Client, s.Run.Namespace, s.Run.Spec.Agent.Model)
	s.Models = models.Grants
	if s.NamespaceLabels == nil {
		s.NamespaceLabels = models.NamespaceLabels
	}
	return err
}
