package recipe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// IndexConfigMap is the name of each ConfigMap that the recipe takes a text from.
const IndexConfigMap = "configMapKeyRef.name"

// ConfigMaps reads the ConfigMaps that the recipes, all of one namespace, take texts
// from. c is the API server itself: no cache of the manager holds their contents. One
// that is not there is absent in the result.
func ConfigMaps(ctx context.Context, c client.Reader, recipes ...*v1alpha1.Recipe) (map[string]*corev1.ConfigMap, error) {
	var out map[string]*corev1.ConfigMap
	for _, r := range recipes {
		for _, name := range r.ConfigMapNames() {
			if _, twice := out[name]; twice {
				continue
			}
			cm := &corev1.ConfigMap{}
			err := c.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, cm)
			switch {
			case apierrors.IsNotFound(err):
				cm = nil
			case err != nil:
				return nil, fmt.Errorf("get the ConfigMap %s of Recipe %s: %w", name, r.Name, err)
			}
			if out == nil {
				out = map[string]*corev1.ConfigMap{}
			}
			out[name] = cm
		}
	}
	return out, nil
}

// ofConfigMap finds the recipes that take a text from a ConfigMap.
func (r *Reconciler) ofConfigMap(ctx context.Context, o client.Object) []reconcile.Request {
	var l v1alpha1.RecipeList
	err := r.Client.List(ctx, &l, client.InNamespace(o.GetNamespace()), client.MatchingFields{IndexConfigMap: o.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the Recipes of a ConfigMap", "configMap", o.GetName())
		return nil
	}
	var out []reconcile.Request
	for i := range l.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
	}
	return out
}
