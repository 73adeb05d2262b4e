package envtest

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// unset takes an annotation away.
const unset = "(unset)"

// annotate sets one annotation of the kit's namespace, or takes it away.
func (k *kit) annotate(key, value string) {
	GinkgoHelper()
	ns := &corev1.Namespace{}
	Expect(admin.Get(k.ctx, client.ObjectKey{Name: k.ns}, ns)).To(Succeed())
	before := ns.DeepCopy()
	if ns.Annotations == nil {
		ns.Annotations = map[string]string{}
	}
	if ns.Annotations[key] = value; value == unset {
		delete(ns.Annotations, key)
	}
	Expect(admin.Patch(k.ctx, ns, client.MergeFrom(before))).To(Succeed())
}

// switched sets the operator's switches.
func (k *kit) switched(codeAct, recipes settings.Switch) {
	k.runs.Operator.CodeAct, k.runs.Operator.Recipes = codeAct, recipes
	k.rcps.Operator = k.runs.Operator
}

// expectDisabled holds that a run ended at once, with nothing made for it.
func (k *kit) expectDisabled(run *v1alpha1.AgentRun, why string) {
	GinkgoHelper()
	c := expectEnd(run, metav1.ConditionFalse, contract.ReasonDisabled)
	Expect(c.Message).To(ContainSubstring(why))
	Expect(run.Status.Pinned).To(BeNil())
	Expect(k.pod(run)).To(BeNil())
	err := admin.Get(k.ctx, client.ObjectKey{Namespace: k.ns, Name: agentrun.Name(run, run.Status.ExecutionGeneration)}, &corev1.ConfigMap{})
	Expect(apierrors.IsNotFound(err)).To(BeTrue(), "a bundle was pinned: %v", err)
}

var _ = Describe("The switches", func() {
	const codeAct, recipes = v1alpha1.AnnotationCodeActEnabled, v1alpha1.AnnotationRecipesEnabled
	on, free := settings.Switch{Enabled: true}, settings.Switch{Enabled: true, AllowNamespaceOverride: true}

	It("hold in every combination of operator, override and annotation", func(ctx SpecContext) {
		k := newKit(ctx)
		n := 0
		for _, enabled := range []bool{true, false} {
			for _, override := range []bool{true, false} {
				for _, value := range []string{unset, "true", "false", "", "True", "yes"} {
					s := settings.Switch{Enabled: enabled, AllowNamespaceOverride: override}
					want, from, why := enabled, contract.LayerOperator, ".enabled is false"
					if override && value != unset {
						want, from, why = value == "true", contract.LayerNamespace, "of Namespace "+k.ns
					}
					for _, key := range []string{codeAct, recipes} {
						k.annotate(codeAct, unset)
						k.annotate(recipes, unset)
						k.annotate(key, value)
						n++
						name := fmt.Sprintf("r%d", n)
						by := fmt.Sprintf("operator %v, override %v, %s %q", enabled, override, key, value)
						b := builders.MakeRun(name).Code(echo)
						if k.switched(s, on); key == recipes {
							k.switched(on, s)
							b = builders.MakeRun(name).Recipe("none")
						}
						create(k, b.Obj())
						run := k.look(name)
						switch {
						case !want:
							By(by + ": Disabled")
							k.expectDisabled(run, why)
						case key == recipes:
							By(by + ": waits for the recipe")
							expectEnd(run, metav1.ConditionUnknown, contract.ReasonRecipeNotFound)
						default:
							By(by + ": runs")
							expectEnd(run, metav1.ConditionUnknown, v1alpha1.ReasonRunning)
							Expect(run.Status.Pinned.CodeAct).To(Equal(&contract.Switch{Enabled: true, From: from}))
							Expect(run.Status.Pinned.Recipes).To(Equal(&contract.Switch{Enabled: true, From: contract.LayerOperator}))
							Expect(k.bundle(run).CodeAct).To(Equal(contract.Switch{Enabled: true, From: from}))
						}
					}
				}
			}
		}
	})

	It("let a pinned run go on, and count for every run after it", func(ctx SpecContext) {
		k := newKit(ctx)
		k.switched(free, free)
		run := k.launched()
		k.annotate(codeAct, "false")

		By("going on from the pin, also for a pod that is lost before its claim")
		expectEnd(k.look("r"), metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		k.kill(run)
		run = k.look("r")
		Expect(run.Status.Launches).To(BeEquivalentTo(2))
		k.report(run, succeed)
		expectEnd(k.look("r"), metav1.ConditionTrue, v1alpha1.ReasonSucceeded)

		By("executing nothing again after an edit")
		k.edit("r", func(r *v1alpha1.AgentRun) { r.Spec.Code.Source = echo + " // again" })
		k.look("r") // removes the pod
		k.look("r") // supersedes
		run = k.look("r")
		Expect(run.Status.ExecutionGeneration).To(BeEquivalentTo(2))
		k.expectDisabled(run, `the annotation codeact.dev/codeact-enabled: "false" of Namespace `+k.ns)
		Expect(run.Status.Previous.Result).To(Equal(contract.ResultSucceeded))

		By("leaving what has ended ended, and taking the next one")
		version := run.ResourceVersion
		k.annotate(codeAct, unset)
		Expect(k.look("r").ResourceVersion).To(Equal(version))
		create(k, builders.MakeRun("next").Code(echo).Obj())
		expectEnd(k.look("next"), metav1.ConditionUnknown, v1alpha1.ReasonRunning)
	})

	It("stop a running run for its re-execution, which is then refused", func(ctx SpecContext) {
		k := newKit(ctx)
		k.switched(free, free)
		run := k.launched()
		k.report(run, nil)
		k.annotate(codeAct, "false")
		k.edit("r", func(r *v1alpha1.AgentRun) { r.Spec.Code.Source = echo + " // again" })
		k.look("r") // stops the pod
		k.look("r") // supersedes
		k.expectDisabled(k.look("r"), "disabled by the annotation")
	})

	It("end a run that waits, and one whose bundle would be pinned in the same look", func(ctx SpecContext) {
		k := newKit(ctx)
		k.switched(free, free)
		create(k, builders.MakeRun("r").Recipe("sweep").Obj())
		expectEnd(k.look("r"), metav1.ConditionUnknown, contract.ReasonRecipeNotFound)
		k.annotate(recipes, "false")
		k.judge(create(k, builders.MakeRecipe("sweep", echo).Obj()))
		k.expectDisabled(k.look("r"), "recipes is disabled by the annotation")
	})

	It("are believed from the API server, not from a cache that is late", func(ctx SpecContext) {
		k := newKit(ctx)
		k.switched(free, free)
		k.runs.Client = interceptor.NewClient(k.runs.Client.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				err := c.Get(ctx, key, o, opts...)
				if ns, ok := o.(*metav1.PartialObjectMetadata); ok {
					ns.Annotations = nil // as it was before
				}
				return err
			},
		})
		k.annotate(codeAct, "false")
		create(k, builders.MakeRun("r").Code(echo).Obj())
		k.expectDisabled(k.look("r"), "disabled by the annotation")
	})

	It("refuse an agent with recipes as a whole, and let one without go on", func(ctx SpecContext) {
		k := newKit(ctx)
		k.switched(on, settings.Switch{})
		k.judge(create(k, builders.MakeGrant("gpt", "gpt").Model("https://models.example/v1", "m").Obj()))
		k.judge(create(k, builders.MakeRecipe("sweep", echo).Obj()))
		native := func(name string, of ...string) {
			create(k, builders.MakeRun(name).Agent("gpt", "do it").AgentWith(func(a *v1alpha1.AgentSpec) {
				a.Protocol, a.Recipes = contract.ProtocolTools, of
			}).Obj())
		}
		native("with", "sweep")
		native("without")
		k.expectDisabled(k.look("with"), "recipes is disabled by the operator")
		expectEnd(k.look("without"), metav1.ConditionUnknown, v1alpha1.ReasonRunning)
	})

	It("leave the review of recipes alone", func(ctx SpecContext) {
		k := newKit(ctx)
		k.switched(on, free)
		k.annotate(recipes, "off")
		rcp := create(k, builders.MakeRecipe("sweep", echo).Obj())
		Expect(k.judge(rcp).Status).To(Equal(metav1.ConditionTrue))
		c := meta.FindStatusCondition(rcp.Status.Conditions, v1alpha1.ConditionEnabled)
		Expect(c).NotTo(BeNil())
		Expect(string(c.Status) + " " + c.Reason).To(Equal("False Disabled"))
		Expect(c.Message).To(ContainSubstring(`is "off", neither "true" nor "false"`))
		k.annotate(recipes, "true")
		k.judge(rcp)
		Expect(meta.IsStatusConditionTrue(rcp.Status.Conditions, v1alpha1.ConditionEnabled)).To(BeTrue())
	})
})

var _ = Describe("The annotation of a namespace", func() {
	It("is for whoever may update the namespace, and so for no tenant", func(ctx SpecContext) {
		k := newKit(ctx)
		role := func(name string, rules ...rbacv1.PolicyRule) {
			cr := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + k.ns}, Rules: rules}
			Expect(admin.Create(ctx, cr)).To(Succeed())
			Expect(admin.Create(ctx, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: k.ns, Name: name},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: cr.Name},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
			})).To(Succeed())
		}
		Expect(admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.ns, Name: "tenant"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tenant"}},
		})).To(Succeed())
		role("owner", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "patch"}})
		set := func(user string) error {
			c := must(client.New(must(cluster.AddUser(envtest.User{Name: user}, nil)).Config(), client.Options{Scheme: admin.Scheme()}))
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.ns}}
			return c.Patch(ctx, ns, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"codeact.dev/codeact-enabled":"true"}}}`)))
		}
		Eventually(func() error { return set("owner") }).WithTimeout(30 * time.Second).Should(Succeed())
		Expect(apierrors.IsForbidden(set("tenant"))).To(BeTrue())
	})
})
