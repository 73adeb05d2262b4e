// Package enable judges whether programs and recipes may run in a namespace: by the
// operator's switches, and by the namespace's annotations where the operator lets
// them count.
package enable

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

// maxShown bounds how much of an annotation a message repeats, in bytes.
const maxShown = 32

// annotations are the ones that are read of a Namespace.
var annotations = []string{v1alpha1.AnnotationCodeActEnabled, v1alpha1.AnnotationRecipesEnabled}

// Verdict is what a switch means in one namespace.
type Verdict struct {
	contract.Switch
	// Why says, where it is off, who has decided that and how it is switched on; it
	// is empty where it is on.
	Why string
}

// CodeAct judges whether programs may run in the namespace, which has these
// annotations.
func CodeAct(op settings.Operator, namespace string, annotations map[string]string) Verdict {
	return judge("codeAct", op.CodeAct, namespace, v1alpha1.AnnotationCodeActEnabled, annotations)
}

// Recipes judges the same of recipes. That they need CodeAct, too, is not in it.
func Recipes(op settings.Operator, namespace string, annotations map[string]string) Verdict {
	return judge("recipes", op.Recipes, namespace, v1alpha1.AnnotationRecipesEnabled, annotations)
}

func judge(name string, s settings.Switch, namespace, key string, annotations map[string]string) Verdict {
	value, set := annotations[key]
	if !s.AllowNamespaceOverride || !set {
		v := Verdict{Switch: contract.Switch{Enabled: s.Enabled, From: contract.LayerOperator}}
		switch {
		case s.Enabled:
		case s.AllowNamespaceOverride:
			v.Why = fmt.Sprintf("%s is disabled by the operator (%s.enabled is false); set the annotation %s: \"true\" on Namespace %s, or have the operator's administrator enable it",
				name, name, key, namespace)
		default:
			v.Why = fmt.Sprintf("%s is disabled by the operator (%s.enabled is false), and no annotation of a namespace counts (%s.allowNamespaceOverride is false): its administrator must enable it",
				name, name, name)
		}
		return v
	}
	v := Verdict{Switch: contract.Switch{Enabled: value == "true", From: contract.LayerNamespace}}
	switch value {
	case "true":
	case "false":
		v.Why = fmt.Sprintf("%s is disabled by the annotation %s: \"false\" of Namespace %s; set it to \"true\", or ask whoever may update the namespace",
			name, key, namespace)
	default:
		v.Why = fmt.Sprintf("%s is disabled because the annotation %s of Namespace %s is %q, neither \"true\" nor \"false\"; mend it, or ask whoever may update the namespace",
			name, key, namespace, contract.Truncate(value, maxShown))
	}
	return v
}

// Annotations reads those of the namespace that count. Where the operator lets none
// count, nothing is read; an absent namespace is an error.
func Annotations(ctx context.Context, c client.Reader, op settings.Operator, namespace string) (map[string]string, error) {
	if !op.CodeAct.AllowNamespaceOverride && !op.Recipes.AllowNamespaceOverride {
		return nil, nil
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.Get(ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
		return nil, fmt.Errorf("get the Namespace: %w", err)
	}
	return Kept(ns.Annotations), nil
}

// Kept returns those of a Namespace's annotations that Annotations reads; nil for
// none.
func Kept(all map[string]string) (out map[string]string) {
	for _, key := range annotations {
		if value, ok := all[key]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

// Changed lets pass the updates of a Namespace that change what Annotations reads.
func Changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
		for _, key := range annotations {
			was, had := before[key]
			is, has := after[key]
			if was != is || had != has {
				return true
			}
		}
		return false
	}}
}
