package status

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Retry is how long a decision on an old look waits for a newer one.
const Retry = 100 * time.Millisecond

// FieldManager is the manager's name on all that it writes.
const FieldManager = "codeact-operator"

// Write writes the status of after when it differs from that of before, and
// reports whether it did. The write is refused by the API server when the
// object has changed since before was read; nothing was told then.
func Write(ctx context.Context, c client.Client, before, after client.Object) (bool, error) {
	if equality.Semantic.DeepEqual(before, after) {
		return false, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, after, patch, client.FieldOwner(FieldManager)); err != nil {
		return false, err
	}
	return true, nil
}
