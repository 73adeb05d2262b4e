package recipe

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/enable"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/controllers/status"
)

// Reconciler keeps the status of Recipes.
type Reconciler struct {
	// Client reads from the cache; Reader asks the API server itself.
	Client   client.Client
	Reader   client.Reader
	Events   events.EventRecorder
	Clock    clock.PassiveClock
	Operator settings.Operator

	launches sync.Mutex // one after another: their number is bounded
}

// +kubebuilder:rbac:groups=codeact.dev,resources=recipes;toolgrants,verbs=get;list;watch
// +kubebuilder:rbac:groups=codeact.dev,resources=recipes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile looks, decides, does and tells.
func (r *Reconciler) Reconcile(ctx context.Context, rcp *v1alpha1.Recipe) (ctrl.Result, error) {
	if !rcp.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	s, err := r.observe(ctx, rcp)
	if err != nil {
		return ctrl.Result{}, err
	}
	p, fresh, failed := r.act(ctx, s, Decide(r.Operator, s))
	if !fresh {
		return ctrl.Result{RequeueAfter: status.Retry}, nil
	}
	after := rcp.DeepCopy()
	after.Status = Settle(s, p)
	changed, err := status.Write(ctx, r.Client, rcp, after)
	if apierrors.IsConflict(err) && failed == nil {
		return ctrl.Result{RequeueAfter: status.Retry}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		failed = errors.Join(failed, fmt.Errorf("write the status: %w", err))
	}
	if changed && p.Verb == VerbRefuse && reason(rcp) != reason(after) {
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, string(p.Fault.Reason), "Refuse", "%s", status.Describe(p.Fault))
	}
	return ctrl.Result{RequeueAfter: p.Tests.RequeueAfter}, failed
}

func reason(r *v1alpha1.Recipe) string {
	if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

// SetupWithManager registers the reconciler. Other recipes of the same tool
// name, grants of the tools that a recipe calls, and the labels and switches of
// its namespace have it judged again, and so do its check pods. The recipes that wait for a free
// one are looked at when any has ended.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, concurrency int) error {
	changed := builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, status.ReadyChanged()))
	return ctrl.NewControllerManagedBy(mgr).
		Named("recipe").
		For(&v1alpha1.Recipe{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.Pod{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.queued), builder.WithPredicates(checkEnded())).
		Watches(&v1alpha1.Recipe{}, handler.EnqueueRequestsFromMapFunc(r.ofRecipe),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.ToolGrant{}, handler.EnqueueRequestsFromMapFunc(r.ofGrant), changed).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.ofNamespace),
			builder.WithPredicates(predicate.Or[client.Object](predicate.LabelChangedPredicate{}, enable.Changed()))).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(reconcile.AsReconciler[*v1alpha1.Recipe](r.Client, r))
}
