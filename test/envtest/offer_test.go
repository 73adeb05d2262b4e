package envtest

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// elsewhere submits a grant in another namespace.
func (k *kit) elsewhere(ns string, b *builders.Grant) *v1alpha1.ToolGrant {
	GinkgoHelper()
	g := b.In(ns).UID("").Obj()
	g.Generation = 0
	Expect(admin.Create(k.ctx, g)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, g))).To(Succeed()) })
	return g
}

// label sets one label of the kit's namespace.
func (k *kit) label(key, value string) {
	GinkgoHelper()
	ns := &corev1.Namespace{}
	Expect(admin.Get(k.ctx, client.ObjectKey{Name: k.ns}, ns)).To(Succeed())
	ns.Labels[key] = value
	Expect(admin.Update(k.ctx, ns)).To(Succeed())
}

// pinnedTools reads the tools of the run's pin.
func (k *kit) pinnedTools(run *v1alpha1.AgentRun) []contract.PinnedTool {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	Expect(run.Status.Pinned).NotTo(BeNil())
	Expect(admin.Get(k.ctx, client.ObjectKey{Namespace: k.ns, Name: run.Status.Pinned.ConfigMap}, cm)).To(Succeed())
	b := must(contract.DecodeBundle([]byte(cm.Data[contract.BundleKey]), run.Status.Pinned.Digest))
	return b.Tools
}

// refusal reads why the run waits, which both conditions tell.
func refusal(run *v1alpha1.AgentRun) string {
	GinkgoHelper()
	c := expectEnd(run, metav1.ConditionUnknown, contract.ReasonToolsNotGranted)
	p := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionPinned)
	Expect(p).NotTo(BeNil())
	Expect(p.Reason + ": " + p.Message).To(Equal(c.Reason + ": " + c.Message))
	return p.Message
}

var _ = Describe("A grant of another namespace", func() {
	developers := metav1.LabelSelector{MatchLabels: map[string]string{"env": "dev"}}

	It("is used by the runs and recipes of the namespaces that it allows", func(ctx SpecContext) {
		k := newKit(ctx)
		other := namespace(ctx)
		rcp := create(k, builders.MakeRecipe("sweep", calling, "search").Obj())
		create(k, builders.MakeRun("r").Recipe("sweep").Input(`{}`).Obj())
		g := k.elsewhere(other, builders.MakeGrant("shared", "search").Allowed())

		Expect(k.judge(rcp).Message).To(ContainSubstring("search (Grant: ToolGrant " + other + "/shared is not Ready"))
		Expect(refusal(k.look("r"))).To(ContainSubstring("search (rule Grant): ToolGrant " + other + "/shared is not Ready"))

		Expect(k.judge(g).Status).To(Equal(metav1.ConditionTrue))
		Expect(k.judge(rcp).Status).To(Equal(metav1.ConditionTrue))
		Expect(rcp.Status.Tools).To(Equal([]v1alpha1.RecipeTool{{Name: "search", Usable: true, Grant: "shared", GrantNamespace: other}}))
		run := k.look("r")
		expectEnd(run, metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		tools := k.pinnedTools(run)
		Expect(tools).To(HaveLen(1))
		Expect(tools[0].Grant).To(Equal(contract.GrantRef{Namespace: other, Name: "shared", UID: string(g.UID), Generation: 1}))
		Expect(tools[0].Digest).To(Equal(g.Status.DeclarationDigest))
	})

	It("is not told of where it is not offered", func(ctx SpecContext) {
		k := newKit(ctx)
		other := namespace(ctx)
		k.judge(k.elsewhere(other, builders.MakeGrant("private", "search")))
		k.judge(k.elsewhere(other, builders.MakeGrant("selective", "lookup").AllowedBy(developers)))
		create(k, builders.MakeRun("r").Label("env", "dev").Code(calling, "search", "lookup").Obj())
		message := refusal(k.look("r"))
		Expect(message).To(ContainSubstring(`declares a tool named "lookup"`))
		Expect(message).To(ContainSubstring(`declares a tool named "search"`))
		Expect(message).NotTo(Or(ContainSubstring("private"), ContainSubstring("selective"), ContainSubstring(other)))
	})

	It("follows the labels of the run's namespace until the run is pinned", func(ctx SpecContext) {
		k := newKit(ctx)
		other := namespace(ctx)
		k.judge(k.elsewhere(other, builders.MakeGrant("shared", "search").AllowedBy(developers)))
		create(k, builders.MakeRun("r").Code(calling, "search").Obj())
		k.label("env", "prod")
		Expect(refusal(k.look("r"))).To(ContainSubstring("no ToolGrant of this namespace"))
		k.label("env", "dev")
		run := k.look("r")
		expectEnd(run, metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		k.label("env", "prod")
		expectEnd(k.look("r"), metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		create(k, builders.MakeRun("late").Code(calling, "search").Obj())
		Expect(refusal(k.look("late"))).To(ContainSubstring("no ToolGrant of this namespace"))
	})

	It("makes a name ambiguous beside another grant, whoever was first", func(ctx SpecContext) {
		k := newKit(ctx)
		other, third := namespace(ctx), namespace(ctx)
		rcp := create(k, builders.MakeRecipe("sweep", calling, "search").Obj())
		k.judge(k.elsewhere(other, builders.MakeGrant("shared", "search").Allowed()))
		own := create(k, builders.MakeGrant("own", "search").Obj())
		Expect(k.judge(own).Status).To(Equal(metav1.ConditionTrue))
		want := "ambiguous: ToolGrants " + other + "/shared and own both give it to this run"
		if other > "own" {
			want = "ambiguous: ToolGrants own and " + other + "/shared both give it to this run"
		}
		Expect(k.judge(rcp).Message).To(ContainSubstring("search (Grant: " + want))
		create(k, builders.MakeRun("r").Recipe("sweep").Input(`{}`).Obj())
		Expect(refusal(k.look("r"))).To(ContainSubstring("search (rule Grant): " + want))

		By("naming two of other namespaces as well")
		Expect(admin.Delete(ctx, own)).To(Succeed())
		k.judge(k.elsewhere(third, builders.MakeGrant("shared", "search").Allowed()))
		message := refusal(k.look("r"))
		Expect(message).To(ContainSubstring(other + "/shared"))
		Expect(message).To(ContainSubstring(third + "/shared"))
	})
})

var _ = Describe("A tool", func() {
	It("whose calls need approval is refused by rule, in recipe and run", func(ctx SpecContext) {
		k := newKit(ctx)
		rcp := create(k, builders.MakeRecipe("sweep", calling, "search").Obj())
		g := create(k, builders.MakeGrant("search", "search").Approval(contract.ApprovalRequired).Obj())
		Expect(k.judge(g).Status).To(Equal(metav1.ConditionTrue))
		k.judge(rcp)
		Expect(rcp.Status.Tools).To(HaveLen(1))
		Expect(rcp.Status.Tools[0].Rule).To(Equal("Approval"))
		Expect(rcp.Status.Tools[0].Message).To(ContainSubstring("approval: Required"))
		create(k, builders.MakeRun("r").Recipe("sweep").Input(`{}`).Obj())
		Expect(refusal(k.look("r"))).To(ContainSubstring("search (rule Approval): ToolGrant search has approval: Required"))
	})

	It("that a recipe of the namespace is called like is denied to code", func(ctx SpecContext) {
		k := newKit(ctx)
		k.judge(create(k, builders.MakeGrant("search", "search").Obj()))
		create(k, builders.MakeRecipe("other", echo).ToolName("search").Obj())
		create(k, builders.MakeRun("r").Code(calling, "search").Obj())
		Expect(refusal(k.look("r"))).To(ContainSubstring("search (rule HardDeny): Recipe other is called the same"))
		rcp := create(k, builders.MakeRecipe("sweep", calling, "search").Obj())
		k.judge(rcp)
		Expect(rcp.Status.Tools[0].Rule).To(Equal("HardDeny"))
	})

	It("of a model is never callable from code", func(ctx SpecContext) {
		k := newKit(ctx)
		k.judge(create(k, builders.MakeGrant("search", "search").Model("https://models.example/v1", "m").CodeAct(contract.CodeActAllow).Obj()))
		create(k, builders.MakeRun("r").Code(calling, "search").Obj())
		Expect(refusal(k.look("r"))).To(ContainSubstring("search (rule Kind)"))
	})
})
