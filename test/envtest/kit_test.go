package envtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/events"
	clock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/controllers/status"
	"github.com/codeact-dev/codeact-operator/controllers/toolgrant"
)

// kit is one namespace with reconcilers that are called directly.
type kit struct {
	ctx    context.Context
	ns     string
	clock  *clock.FakePassiveClock
	events *events.FakeRecorder
	runs   *agentrun.Reconciler
	rcps   *recipe.Reconciler
	grants *toolgrant.Reconciler
	// fail, when set, may answer a write of the manager in the API server's place.
	fail func(verb string, o client.Object) error
}

// indexes are the manager's own, kept as functions: the API server has none.
type indexes map[string]client.IndexerFunc

func (i indexes) IndexField(_ context.Context, o client.Object, field string, f client.IndexerFunc) error {
	i[fmt.Sprintf("%T %s", o, field)] = f
	return nil
}

func newKit(ctx context.Context) *kit {
	GinkgoHelper()
	k := &kit{
		ctx: ctx, ns: namespace(ctx), events: events.NewFakeRecorder(100),
		clock: clock.NewFakePassiveClock(time.Now().Truncate(time.Second)),
	}
	index := indexes{}
	Expect(controllers.Index(ctx, index)).To(Succeed())
	c := interceptor.NewClient(admin, interceptor.Funcs{
		List: index.list,
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return k.or("create", o, func() error { return c.Create(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return k.or("status", o, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
	op := settings.Default()
	op.Runtime.Image = "registry.example/codeact:v0"
	k.runs = &agentrun.Reconciler{Client: c, Reader: c, Events: k.events, Clock: k.clock, Operator: op}
	k.rcps = &recipe.Reconciler{Client: c, Reader: c, Events: k.events, Clock: k.clock, Operator: op}
	k.grants = &toolgrant.Reconciler{Client: c, Events: k.events, Clock: k.clock}
	return k
}

func (k *kit) or(verb string, o client.Object, do func() error) error {
	if k.fail != nil {
		if err := k.fail(verb, o); err != nil {
			return err
		}
	}
	return do()
}

// list answers lists by index as the manager's cache would.
func (i indexes) list(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	want := fields.Everything()
	if o.FieldSelector != nil {
		want, o.FieldSelector = o.FieldSelector, nil
	}
	if err := c.List(ctx, l, o); err != nil {
		return err
	}
	all, err := meta.ExtractList(l)
	if err != nil {
		return err
	}
	kept := all[:0]
	for _, x := range all {
		ok := true
		for _, r := range want.Requirements() {
			f := i[fmt.Sprintf("%T %s", x, r.Field)]
			ok = ok && f != nil && slices.Contains(f(x.(client.Object)), r.Value)
		}
		if ok {
			kept = append(kept, x)
		}
	}
	return meta.SetList(l, kept)
}

// create submits an object as a user would.
func create[T client.Object](k *kit, o T) T {
	GinkgoHelper()
	o.SetNamespace(k.ns)
	o.SetUID("")
	o.SetGeneration(0)
	Expect(admin.Create(k.ctx, o)).To(Succeed())
	return o
}

// judge has a recipe or grant judged, and holds the kstatus invariants.
func (k *kit) judge(o client.Object) metav1.Condition {
	GinkgoHelper()
	Expect(admin.Get(k.ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
	var conditions []metav1.Condition
	var observed int64
	switch o := o.(type) {
	case *v1alpha1.Recipe:
		must(k.rcps.Reconcile(k.ctx, o.DeepCopy()))
		Expect(admin.Get(k.ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		conditions, observed = o.Status.Conditions, o.Status.ObservedGeneration
	case *v1alpha1.ToolGrant:
		must(k.grants.Reconcile(k.ctx, o.DeepCopy()))
		Expect(admin.Get(k.ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		conditions, observed = o.Status.Conditions, o.Status.ObservedGeneration
	}
	Expect(status.CheckKstatus(o.GetGeneration(), observed, conditions, v1alpha1.ConditionReady)).To(Succeed())
	return *meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
}

// get reads the run.
func (k *kit) get(name string) *v1alpha1.AgentRun {
	GinkgoHelper()
	run := &v1alpha1.AgentRun{}
	Expect(admin.Get(k.ctx, client.ObjectKey{Namespace: k.ns, Name: name}, run)).To(Succeed())
	return run
}

// look reconciles the run once, holds the kstatus invariants, and returns it.
func (k *kit) look(name string) *v1alpha1.AgentRun {
	GinkgoHelper()
	run, _ := k.lookAgain(name)
	return run
}

func (k *kit) lookAgain(name string) (*v1alpha1.AgentRun, ctrl.Result) {
	GinkgoHelper()
	res := must(k.runs.Reconcile(k.ctx, k.get(name)))
	run := k.get(name)
	Expect(status.CheckKstatus(run.Generation, run.Status.ObservedGeneration, run.Status.Conditions, v1alpha1.ConditionSucceeded)).To(Succeed())
	return run, res
}

// succeeded returns the run's Succeeded condition.
func succeeded(run *v1alpha1.AgentRun) metav1.Condition {
	GinkgoHelper()
	c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	Expect(c).NotTo(BeNil())
	return *c
}

// expectEnd holds how the run ended.
func expectEnd(run *v1alpha1.AgentRun, s metav1.ConditionStatus, reason contract.Reason) metav1.Condition {
	GinkgoHelper()
	c := succeeded(run)
	Expect(string(c.Status)+" "+c.Reason).To(Equal(string(s)+" "+string(reason)), c.Message)
	return c
}

// pod reads the run's pod, or nil.
func (k *kit) pod(run *v1alpha1.AgentRun) *corev1.Pod {
	GinkgoHelper()
	p := &corev1.Pod{}
	err := admin.Get(k.ctx, client.ObjectKey{Namespace: k.ns, Name: agentrun.Name(run, max(run.Status.ExecutionGeneration, 1))}, p)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return p
}

// report writes status.execution as the runtime does, by server-side apply.
func (k *kit) report(run *v1alpha1.AgentRun, edit func(*contract.Execution)) *contract.Execution {
	GinkgoHelper()
	pod := k.pod(run)
	Expect(pod).NotTo(BeNil())
	e := &contract.Execution{
		Generation: run.Status.ExecutionGeneration, RunUID: string(run.UID), BundleDigest: run.Status.Pinned.Digest,
		Claim: contract.Claim{PodName: pod.Name, PodUID: string(pod.UID), Time: "2026-03-01T12:00:00Z"},
	}
	if edit != nil {
		edit(e)
	}
	k.apply(run, e)
	return e
}

func (k *kit) apply(run *v1alpha1.AgentRun, e *contract.Execution) {
	GinkgoHelper()
	var x any
	Expect(json.Unmarshal(must(json.Marshal(e)), &x)).To(Succeed())
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"execution": x}}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AgentRun"))
	u.SetNamespace(k.ns)
	u.SetName(run.Name)
	Expect(admin.Status().Apply(k.ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(contract.RuntimeFieldManager))).To(Succeed())
}

// end has the run's pod end as a kubelet would tell.
func (k *kit) end(run *v1alpha1.AgentRun, phase corev1.PodPhase, reason string, code int32, message string) {
	GinkgoHelper()
	p := k.pod(run)
	p.Status.Phase = phase
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: contract.RuntimeContainer, Image: "x", ImageID: "x",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, Message: message}}}}
	Expect(admin.Status().Update(k.ctx, p)).To(Succeed())
}

// bind puts the run's pod on a node, so that it is not deleted at once.
func (k *kit) bind(run *v1alpha1.AgentRun) {
	GinkgoHelper()
	p := k.pod(run)
	Expect(admin.SubResource("binding").Create(k.ctx, p, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "node-1"},
	})).To(Succeed())
}

// kill deletes the run's pod at once.
func (k *kit) kill(run *v1alpha1.AgentRun) {
	GinkgoHelper()
	Expect(admin.Delete(k.ctx, k.pod(run), client.GracePeriodSeconds(0))).To(Succeed())
}

// edit changes the run's spec as a user would.
func (k *kit) edit(name string, change func(*v1alpha1.AgentRun)) *v1alpha1.AgentRun {
	GinkgoHelper()
	run := k.get(name)
	change(run)
	Expect(admin.Update(k.ctx, run)).To(Succeed())
	return run
}

// step moves the clock.
func (k *kit) step(d time.Duration) { k.clock.SetTime(k.clock.Now().Add(d)) }
