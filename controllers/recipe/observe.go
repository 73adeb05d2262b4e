package recipe

import (
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/toolgrant"
)

// The indexes by which Recipes are found.
const (
	// IndexToolName is the recipe's own effective tool name.
	IndexToolName = "effectiveToolName"
	// IndexTools is each tool that the recipe may call.
	IndexTools = "spec.tools"
)

// observe is the only reader: it looks at the namespace's objects that have, or
// are called by, the recipe's names.
func (r *Reconciler) observe(ctx context.Context, rcp *v1alpha1.Recipe) (Snapshot, error) {
	s := Snapshot{Now: r.Clock.Now(), Recipe: rcp}
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
		var grants v1alpha1.ToolGrantList
		if err := r.Client.List(ctx, &grants, client.InNamespace(rcp.Namespace), client.MatchingFields{toolgrant.IndexTool: name}); err != nil {
			return s, fmt.Errorf("list the ToolGrants of tool %s: %w", name, err)
		}
		s.Grants = append(s.Grants, grants.Items...)
	}
	return s, nil
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
	return r.named(ctx, g.Namespace, g.Spec.Tool.Name)
}

// named finds the recipes that have, or call, the name.
func (r *Reconciler) named(ctx context.Context, namespace, name string) []reconcile.Request {
	var out []reconcile.Request
	seen := map[string]bool{}
	for _, index := range []string{IndexToolName, IndexTools} {
		var l v1alpha1.RecipeList
		if err := r.Client.List(ctx, &l, client.InNamespace(namespace), client.MatchingFields{index: name}); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot find the Recipes of a name", "name", name)
			continue
		}
		for i := range l.Items {
			if n := l.Items[i].Name; !seen[n] {
				seen[n] = true
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
			}
		}
	}
	return out
}
