package recipe

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// observe is the only reader: it looks at the objects that have, or are called
// by, the recipe's names.
func (r *Reconciler) observe(ctx context.Context, rcp *v1alpha1.Recipe) (Snapshot, error) {
	s := Snapshot{Now: r.Clock.Now(), Recipe: rcp}
	var err error
	if s.ConfigMaps, err = ConfigMaps(ctx, r.Reader, rcp); err != nil {
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
	return s, err
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
