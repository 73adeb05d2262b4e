// Package controllers is the one list of what the manager runs.
package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/enable"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/controllers/toolgrant"
)

// Scheme returns the kinds that the manager knows.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		return nil, err
	}
	return s, v1alpha1.AddToScheme(s)
}

// CacheOptions keeps the manager's memory to what it owns: pods of the runtime, the
// runtime's identity and the product's kinds, and the labels and switches of namespaces. Of ConfigMaps it
// holds the names, so that a Recipe that takes a text from one learns of a change, and not
// those of the bundles and transcripts of runs, nor of the checks of recipes. What ConfigMaps hold is never cached, and
// Secrets are never read.
func CacheOptions() (cache.Options, error) {
	runtimePods, err := labels.NewRequirement(contract.LabelPod, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	notOurs := labels.NewSelector()
	for _, key := range []string{v1alpha1.LabelRunUID, v1alpha1.LabelRecipeUID} {
		r, err := labels.NewRequirement(key, selection.DoesNotExist, nil)
		if err != nil {
			return cache.Options{}, err
		}
		notOurs = notOurs.Add(*r)
	}
	identity := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", contract.RuntimeServiceAccount)}
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.AgentRun{}:     {Transform: slim},
			&corev1.Pod{}:            {Label: labels.NewSelector().Add(*runtimePods)},
			&corev1.ServiceAccount{}: identity,
			&rbacv1.RoleBinding{}:    identity,
			&corev1.Namespace{}:      {Transform: onlyAsked},
			&corev1.ConfigMap{}:      {Label: notOurs, Transform: onlyName},
		},
	}, nil
}

// onlyAsked keeps of each Namespace what grants ask for, and its switches.
func onlyAsked(o any) (any, error) {
	if ns, ok := o.(*metav1.PartialObjectMetadata); ok {
		ns.ManagedFields, ns.OwnerReferences, ns.Finalizers = nil, nil, nil
		ns.Annotations = enable.Kept(ns.Annotations)
	}
	return o, nil
}

// onlyName keeps of each ConfigMap that it is there, and in which version: an
// annotation may hold all that the ConfigMap does.
func onlyName(o any) (any, error) {
	if cm, ok := o.(*metav1.PartialObjectMetadata); ok {
		cm.ObjectMeta = metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name, UID: cm.UID, ResourceVersion: cm.ResourceVersion}
	}
	return o, nil
}

// slim keeps of each run only what is looked at again.
func slim(o any) (any, error) {
	if run, ok := o.(*v1alpha1.AgentRun); ok {
		run.ManagedFields = nil
		agentrun.Slim(run)
	}
	return o, nil
}

// Setup registers indexes and reconcilers with the manager. concurrency bounds
// how many objects of one kind are looked at at once.
func Setup(ctx context.Context, mgr ctrl.Manager, op settings.Operator, concurrency int) error {
	if err := Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	m, err := agentrun.NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	recorder := mgr.GetEventRecorder("codeact-operator")
	now := clock.RealClock{}
	grants := &toolgrant.Reconciler{Client: mgr.GetClient(), Events: recorder, Clock: now}
	if err := grants.SetupWithManager(mgr, concurrency); err != nil {
		return fmt.Errorf("set up ToolGrants: %w", err)
	}
	recipes := &recipe.Reconciler{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: recorder, Clock: now, Operator: op}
	if err := recipes.SetupWithManager(mgr, concurrency); err != nil {
		return fmt.Errorf("set up Recipes: %w", err)
	}
	runs := &agentrun.Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: recorder, Clock: now, Operator: op, Metrics: m,
	}
	if err := runs.SetupWithManager(mgr, concurrency); err != nil {
		return fmt.Errorf("set up AgentRuns: %w", err)
	}
	return nil
}

func offered(o client.Object) []string {
	if g := o.(*v1alpha1.ToolGrant); g.Offered() {
		return []string{g.Spec.Tool.Name}
	}
	return nil
}

func offeredModel(o client.Object) []string {
	if g := o.(*v1alpha1.ToolGrant); g.Offered() && g.Spec.Backend.Model != nil {
		return []string{g.Name}
	}
	return nil
}

// Index registers the indexes by which the reconcilers find objects.
func Index(ctx context.Context, i client.FieldIndexer) error {
	for _, x := range []struct {
		object client.Object
		field  string
		of     client.IndexerFunc
	}{
		{&v1alpha1.ToolGrant{}, toolgrant.IndexTool, func(o client.Object) []string {
			return []string{o.(*v1alpha1.ToolGrant).Spec.Tool.Name}
		}},
		{&v1alpha1.ToolGrant{}, toolgrant.IndexOffered, offered},
		{&v1alpha1.ToolGrant{}, toolgrant.IndexOfferedModel, offeredModel},
		{&v1alpha1.Recipe{}, recipe.IndexToolName, func(o client.Object) []string {
			return []string{o.(*v1alpha1.Recipe).EffectiveToolName()}
		}},
		{&v1alpha1.Recipe{}, recipe.IndexTools, func(o client.Object) []string {
			return o.(*v1alpha1.Recipe).Spec.Tools
		}},
		{&v1alpha1.Recipe{}, recipe.IndexQueued, func(o client.Object) []string {
			return []string{fmt.Sprint(recipe.Queued(o.(*v1alpha1.Recipe)))}
		}},
		{&v1alpha1.Recipe{}, recipe.IndexConfigMap, func(o client.Object) []string {
			return o.(*v1alpha1.Recipe).ConfigMapNames()
		}},
		{&v1alpha1.AgentRun{}, agentrun.IndexWaiting, func(o client.Object) []string {
			return []string{fmt.Sprint(agentrun.Waiting(o.(*v1alpha1.AgentRun)))}
		}},
	} {
		if err := i.IndexField(ctx, x.object, x.field, x.of); err != nil {
			return fmt.Errorf("index %T by %s: %w", x.object, x.field, err)
		}
	}
	return nil
}
