package agentrun

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// inline puts the texts of ConfigMaps into the recipes, and holds them to the
// recipes' verdicts: what was judged is what is pinned.
func (l *look) inline() {
	l.unlike = map[string]string{}
	if l.Recipe != nil {
		l.Recipe = l.effective(l.Recipe)
	}
	all := make([]v1alpha1.Recipe, 0, len(l.Recipes))
	for i := range l.Recipes {
		r := &l.Recipes[i]
		if r.Namespace == l.Run.Namespace {
			r = l.effective(r)
		}
		all = append(all, *r)
	}
	l.Recipes = all
}

func (l *look) effective(r *v1alpha1.Recipe) *v1alpha1.Recipe {
	if len(r.ConfigMapNames()) == 0 {
		return r
	}
	out, bad := r.Effective(l.ConfigMaps)
	if f := bad.Any(); f != nil {
		l.unlike[r.Name] = fmt.Sprintf("Recipe %s: %s: %s", r.Name, f.Reason, f.Message)
		return out
	}
	if d, err := out.ManifestDigest(); err != nil || d != r.Status.ManifestDigest {
		l.unlike[r.Name] = fmt.Sprintf("Recipe %s has not been checked yet with what its ConfigMaps hold now", r.Name)
	}
	return out
}

// judgedAnew passes updates of Recipes whose verdict is about another manifest:
// another text in a ConfigMap changes neither generation nor condition.
func judgedAnew() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, ok := e.ObjectOld.(*v1alpha1.Recipe)
		b, also := e.ObjectNew.(*v1alpha1.Recipe)
		return ok && also && a.Status.ManifestDigest != b.Status.ManifestDigest
	}}
}
