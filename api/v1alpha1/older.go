package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Older reports whether a comes before b where both want one name: the older
// object has it, and of two of one age the one whose name sorts first, so that
// the answer does not depend on the order of events.
func Older(a, b metav1.Object) bool {
	x, y := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if !x.Equal(&y) {
		return x.Before(&y)
	}
	return a.GetName() < b.GetName()
}
