package agentrun

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/codeact-dev/codeact-operator/controllers/runtimepod"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/controllers/status"
)

// IndexWaiting finds the runs that wait for recipe or grants: those with the
// value "true".
const IndexWaiting = "waiting"

// Waiting reports whether a run still waits to be launched.
func Waiting(run *v1alpha1.AgentRun) bool {
	return !isFinished(run) && run.Status.Launches == 0
}

// Reconciler brings AgentRuns to their end.
type Reconciler struct {
	// Client reads from the cache; Reader asks the API server itself.
	Client   client.Client
	Reader   client.Reader
	Events   events.EventRecorder
	Clock    clock.PassiveClock
	Operator settings.Operator
	Metrics  *Metrics

	replaced replaced
}

// +kubebuilder:rbac:groups=codeact.dev,resources=agentruns,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=codeact.dev,resources=agentruns/status,verbs=patch
// +kubebuilder:rbac:groups=codeact.dev,resources=recipes;toolgrants,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile looks, decides, does and tells.
func (r *Reconciler) Reconcile(ctx context.Context, run *v1alpha1.AgentRun) (ctrl.Result, error) {
	if r.replaced.old(run) {
		return ctrl.Result{RequeueAfter: status.Retry}, nil
	}
	s, err := r.observe(ctx, run)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := Decide(r.Operator, s)
	done, failed := r.act(ctx, s, p)
	if done.Stale {
		return ctrl.Result{RequeueAfter: status.Retry}, nil
	}
	after := run.DeepCopy()
	after.Status = Settle(r.Operator, s, p, done)
	changed, err := r.write(ctx, run, after)
	switch {
	case apierrors.IsConflict(err) && failed == nil:
		return ctrl.Result{RequeueAfter: status.Retry}, nil
	case client.IgnoreNotFound(err) != nil:
		failed = errors.Join(failed, fmt.Errorf("write the status: %w", err))
	case changed:
		r.replaced.by(run)
		r.tell(run, after)
	}
	if failed != nil {
		return ctrl.Result{}, failed
	}
	if done.Refused != nil && !isFinished(after) {
		return ctrl.Result{RequeueAfter: runtimepod.RetryQuota}, nil
	}
	return ctrl.Result{RequeueAfter: p.RequeueAfter}, nil
}

// write is the one status write. An output that does not fit the object beside
// the report that holds it, too, stays in the report alone: the end of a run is
// never lost to its size.
func (r *Reconciler) write(ctx context.Context, run, after *v1alpha1.AgentRun) (bool, error) {
	short := after.DeepCopy()
	changed, err := status.Write(ctx, r.Client, run, after)
	if after.Status.Output == nil || !tooLarge(err) {
		return changed, err
	}
	short.Status.Output = nil
	message := "its output is only in status.execution.output, because it does not fit the object twice"
	if c := meta.FindStatusCondition(short.Status.Conditions, v1alpha1.ConditionSucceeded); c != nil {
		message = c.Message + "; " + message
	}
	status.On(&short.Status.Conditions, run.Generation, r.Clock.Now()).Set(v1alpha1.ConditionSucceeded, metav1.ConditionTrue,
		v1alpha1.ReasonSucceeded, message)
	changed, err = status.Write(ctx, r.Client, run, short)
	*after = *short
	return changed, err
}

// tooLarge tells the refusals of an object by its size; etcd's own comes as an
// error without a type.
func tooLarge(err error) bool {
	return err != nil && (apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		strings.Contains(err.Error(), "request is too large") || strings.Contains(err.Error(), "larger than max"))
}

// SetupWithManager registers the reconciler. The runs that wait are looked at
// again whenever a recipe or a grant of their namespace changes, a grant that
// another namespace offers, or their namespace's labels or switches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, concurrency int) error {
	changed := builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, status.ReadyChanged()))
	return ctrl.NewControllerManagedBy(mgr).
		Named("agentrun").
		For(&v1alpha1.AgentRun{}).
		Owns(&corev1.Pod{}).
		Watches(&v1alpha1.Recipe{}, handler.EnqueueRequestsFromMapFunc(r.waiting), changed).
		Watches(&v1alpha1.ToolGrant{}, handler.EnqueueRequestsFromMapFunc(r.waiting), changed).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.waiting),
			builder.WithPredicates(predicate.Or[client.Object](predicate.LabelChangedPredicate{}, enable.Changed()))).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(reconcile.AsReconciler[*v1alpha1.AgentRun](r.Client, r))
}

// waiting finds the runs that wait and that the object may matter to.
func (r *Reconciler) waiting(ctx context.Context, o client.Object) []reconcile.Request {
	where := client.InNamespace(o.GetNamespace())
	switch o := o.(type) {
	case *v1alpha1.ToolGrant:
		if o.Offered() {
			where = metav1.NamespaceAll
		}
	case *metav1.PartialObjectMetadata: // a Namespace
		where = client.InNamespace(o.Name)
	}
	var runs v1alpha1.AgentRunList
	err := r.Client.List(ctx, &runs, where, client.MatchingFields{IndexWaiting: "true"})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the runs that wait")
		return nil
	}
	var out []reconcile.Request
	for i := range runs.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&runs.Items[i])})
	}
	return out
}
