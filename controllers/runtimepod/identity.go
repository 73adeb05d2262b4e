package runtimepod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/controllers/status"
)

// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=bind,resourceNames=codeact-runtime

// runtimeClusterRole is what a runtime pod may do; it has the name of the
// ServiceAccount.
const runtimeClusterRole = contract.RuntimeServiceAccount

// EnsureIdentity gives the namespace the one ServiceAccount of its runtime pods
// and binds it to what they may do. It writes only what is absent or different.
func EnsureIdentity(ctx context.Context, c client.Client, namespace string) error {
	key := client.ObjectKey{Namespace: namespace, Name: contract.RuntimeServiceAccount}
	sa, err := Get(ctx, c, key, &corev1.ServiceAccount{})
	if err != nil {
		return fmt.Errorf("get ServiceAccount %s: %w", key.Name, err)
	}
	managed := map[string]string{"app.kubernetes.io/managed-by": "codeact-operator"}
	if sa == nil {
		apply := corev1ac.ServiceAccount(key.Name, namespace).WithLabels(managed)
		if err := c.Apply(ctx, apply, client.FieldOwner(status.FieldManager), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply ServiceAccount %s: %w", key.Name, err)
		}
	}
	rb, err := Get(ctx, c, key, &rbacv1.RoleBinding{})
	if err != nil {
		return fmt.Errorf("get RoleBinding %s: %w", key.Name, err)
	}
	if rb != nil && bindsRuntime(rb) {
		return nil
	}
	apply := rbacv1ac.RoleBinding(key.Name, namespace).WithLabels(managed).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(runtimeClusterRole)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(key.Name).WithNamespace(namespace))
	if err := c.Apply(ctx, apply, client.FieldOwner(status.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply RoleBinding %s: %w", key.Name, err)
	}
	return nil
}

func bindsRuntime(rb *rbacv1.RoleBinding) bool {
	return rb.RoleRef == rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: runtimeClusterRole} &&
		len(rb.Subjects) == 1 && rb.Subjects[0].Kind == rbacv1.ServiceAccountKind &&
		rb.Subjects[0].Name == contract.RuntimeServiceAccount && rb.Subjects[0].Namespace == rb.Namespace
}

// Get returns nil for an object that is absent.
func Get[T client.Object](ctx context.Context, c client.Reader, key client.ObjectKey, into T) (T, error) {
	err := c.Get(ctx, key, into)
	if err == nil {
		return into, nil
	}
	var none T
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	return none, err
}
