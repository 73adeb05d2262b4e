// Package status holds how the controllers tell what they found: conditions
// that follow kstatus, and the one status write.
package status

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// Conditions writes conditions about one generation of one object.
type Conditions struct {
	list       *[]metav1.Condition
	generation int64
	now        metav1.Time
}

// On returns a writer of the list. It changes a condition's transition time to
// now only when the condition's status changes.
func On(list *[]metav1.Condition, generation int64, now time.Time) Conditions {
	return Conditions{list: list, generation: generation, now: metav1.NewTime(now)}
}

// Set writes one condition; the message is cut to contract.MaxMessageBytes.
func (c Conditions) Set(kind string, s metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(c.list, metav1.Condition{
		Type: kind, Status: s, Reason: reason, Message: contract.Truncate(message, contract.MaxMessageBytes),
		ObservedGeneration: c.generation, LastTransitionTime: c.now,
	})
}

// Drop removes conditions.
func (c Conditions) Drop(kinds ...string) {
	for _, k := range kinds {
		meta.RemoveStatusCondition(c.list, k)
	}
}

// Observed moves every condition to this generation and changes nothing else.
func (c Conditions) Observed() {
	for i := range *c.list {
		(*c.list)[i].ObservedGeneration = c.generation
	}
}

// Working says that the controller still works towards the spec.
func (c Conditions) Working(reason, message string) {
	c.Drop(v1alpha1.ConditionStalled)
	c.Set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, reason, message)
}

// Stuck says that nothing will change before the spec, or the object that is in
// the way, does.
func (c Conditions) Stuck(reason, message string) {
	c.Drop(v1alpha1.ConditionReconciling)
	c.Set(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, message)
}

// Done says that the spec is reached.
func (c Conditions) Done() {
	c.Drop(v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled)
}

// SourceFile is how messages call the program.
const SourceFile = "main.js"

// Describe words a fault for a person: where it is in the program, when that is
// known, and what it is.
func Describe(f *contract.Fault) string {
	return Locate(f.Line, f.Column, f.Message)
}

// Locate puts the place in the program before the message. A line of 0 is unknown.
func Locate(line, column int, message string) string {
	switch {
	case line <= 0:
		return message
	case column <= 0:
		return fmt.Sprintf("%s:%d: %s", SourceFile, line, message)
	default:
		return fmt.Sprintf("%s:%d:%d: %s", SourceFile, line, column, message)
	}
}
