package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// CheckKstatus reports the first kstatus invariant that the conditions break.
// outcome is the kind's own condition: Ready or Succeeded.
func CheckKstatus(generation, observed int64, conditions []metav1.Condition, outcome string) error {
	if observed != generation {
		return fmt.Errorf("status.observedGeneration is %d, the object's is %d", observed, generation)
	}
	for _, c := range conditions {
		if c.ObservedGeneration != generation {
			return fmt.Errorf("condition %s is about generation %d, not %d", c.Type, c.ObservedGeneration, generation)
		}
		if c.Reason == "" || c.LastTransitionTime.IsZero() {
			return fmt.Errorf("condition %s has no reason or no transition time", c.Type)
		}
	}
	working := meta.FindStatusCondition(conditions, v1alpha1.ConditionReconciling)
	stuck := meta.FindStatusCondition(conditions, v1alpha1.ConditionStalled)
	for _, c := range []*metav1.Condition{working, stuck} {
		if c != nil && c.Status != metav1.ConditionTrue {
			return fmt.Errorf("condition %s is %s: it is only present while it is True", c.Type, c.Status)
		}
	}
	if working != nil && stuck != nil {
		return fmt.Errorf("both Reconciling and Stalled are there")
	}
	end := meta.FindStatusCondition(conditions, outcome)
	switch {
	case end == nil:
		return fmt.Errorf("there is no condition %s", outcome)
	case end.Status == metav1.ConditionTrue && (working != nil || stuck != nil):
		return fmt.Errorf("%s is True beside Reconciling or Stalled", outcome)
	case end.Status == metav1.ConditionUnknown && working == nil:
		return fmt.Errorf("%s is Unknown without Reconciling", outcome)
	case end.Status == metav1.ConditionFalse && working == nil && stuck == nil:
		return fmt.Errorf("%s is False without Reconciling or Stalled", outcome)
	}
	return nil
}
