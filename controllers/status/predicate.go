package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// ReadyChanged passes updates of Recipes and ToolGrants whose Ready condition
// has another status, reason or generation than before.
func ReadyChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := ready(e.ObjectOld), ready(e.ObjectNew)
		if a == nil || b == nil {
			return a != b
		}
		return a.Status != b.Status || a.Reason != b.Reason || a.ObservedGeneration != b.ObservedGeneration
	}}
}

func ready(o client.Object) *metav1.Condition {
	switch o := o.(type) {
	case *v1alpha1.Recipe:
		return meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady)
	case *v1alpha1.ToolGrant:
		return meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady)
	}
	return nil
}
