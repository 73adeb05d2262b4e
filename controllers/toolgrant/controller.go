package toolgrant

import (
	"context"
	"fmt"

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
	"github.com/codeact-dev/codeact-operator/controllers/status"
)

// Reconciler keeps the status of ToolGrants.
type Reconciler struct {
	Client client.Client
	Events events.EventRecorder
	Clock  clock.PassiveClock
}

// +kubebuilder:rbac:groups=codeact.dev,resources=toolgrants,verbs=get;list;watch
// +kubebuilder:rbac:groups=codeact.dev,resources=toolgrants/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile looks, decides and tells.
func (r *Reconciler) Reconcile(ctx context.Context, g *v1alpha1.ToolGrant) (ctrl.Result, error) {
	if !g.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	s := Snapshot{Now: r.Clock.Now(), Grant: g}
	var same v1alpha1.ToolGrantList
	if err := r.Client.List(ctx, &same, client.InNamespace(g.Namespace), client.MatchingFields{IndexTool: g.Spec.Tool.Name}); err != nil {
		return ctrl.Result{}, fmt.Errorf("list the ToolGrants of tool %s: %w", g.Spec.Tool.Name, err)
	}
	s.Others = same.Items
	p := Decide(s)
	after := g.DeepCopy()
	after.Status = Settle(s, p)
	changed, err := status.Write(ctx, r.Client, g, after)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: status.Retry}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("write the status: %w", err)
	}
	if changed && p.Verb == VerbRefuse && reason(g) != reason(after) {
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, string(p.Fault.Reason), "Refuse", "%s", p.Fault.Message)
	}
	return ctrl.Result{RequeueAfter: p.RequeueAfter}, nil
}

func reason(g *v1alpha1.ToolGrant) string {
	if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

// SetupWithManager registers the reconciler. A grant that comes, goes, changes
// or expires has the others of its tool judged again.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, concurrency int) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("toolgrant").
		For(&v1alpha1.ToolGrant{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.ToolGrant{}, handler.EnqueueRequestsFromMapFunc(r.sameTool),
			builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, status.ReadyChanged()))).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(reconcile.AsReconciler[*v1alpha1.ToolGrant](r.Client, r))
}

func (r *Reconciler) sameTool(ctx context.Context, o client.Object) []reconcile.Request {
	g, ok := o.(*v1alpha1.ToolGrant)
	if !ok {
		return nil
	}
	var same v1alpha1.ToolGrantList
	if err := r.Client.List(ctx, &same, client.InNamespace(g.Namespace), client.MatchingFields{IndexTool: g.Spec.Tool.Name}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the ToolGrants of one tool", "tool", g.Spec.Tool.Name)
		return nil
	}
	var out []reconcile.Request
	for i := range same.Items {
		if same.Items[i].UID != g.UID {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&same.Items[i])})
		}
	}
	return out
}
