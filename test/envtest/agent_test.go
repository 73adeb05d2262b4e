package envtest

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

const modelAt = "https://models.example/v1"

// unmodelled reads why the run waits for its model, which both conditions tell.
func unmodelled(run *v1alpha1.AgentRun) string {
	GinkgoHelper()
	c := expectEnd(run, metav1.ConditionUnknown, contract.ReasonModelNotGranted)
	p := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionPinned)
	Expect(p).NotTo(BeNil())
	Expect(p.Status).To(Equal(metav1.ConditionUnknown))
	Expect(p.Reason + ": " + p.Message).To(Equal(c.Reason + ": " + c.Message))
	return p.Message
}

var _ = Describe("A run of an agent", func() {
	It("waits for its model, is pinned with it, and tells its steps", func(ctx SpecContext) {
		k := newKit(ctx)
		Expect(k.judge(create(k, builders.MakeGrant("search", "search").Obj())).Status).To(Equal(metav1.ConditionTrue))
		create(k, builders.MakeRun("r").Agent("gpt", "find it", "search").AgentWith(func(a *v1alpha1.AgentSpec) {
			a.Temperature, a.TopP, a.MaxTokens = "0.2", "1", 5000
		}).Obj())
		Expect(unmodelled(k.look("r"))).To(Equal(`model gpt (rule Grant): there is no ToolGrant "gpt" in this namespace, and none that another one offers to it`))

		g := create(k, builders.MakeGrant("gpt", "gpt-5").Model(modelAt, "gpt-5-mini").MaxTokens(4000).Obj())
		Expect(unmodelled(k.look("r"))).To(ContainSubstring("ToolGrant gpt is not Ready"))
		Expect(k.judge(g).Status).To(Equal(metav1.ConditionTrue))
		run := k.look("r")
		expectEnd(run, metav1.ConditionUnknown, v1alpha1.ReasonRunning)

		By("pinning what the API server made of the numbers and the defaults")
		b := k.bundle(run)
		Expect(b.Source).To(BeEmpty())
		Expect(b.Agent.Options.Temperature.String()).To(Equal("0.2"))
		Expect(b.Agent.Options.TopP.String()).To(Equal("1"))
		Expect(b.Agent.MaxSteps).To(BeEquivalentTo(contract.DefaultMaxSteps))
		Expect(b.Agent.MaxTokens).To(BeEquivalentTo(4000), "the lower one wins")
		Expect(b.Agent.Model).To(Equal(contract.PinnedModel{
			Grant: contract.GrantRef{Name: "gpt", UID: string(g.UID), Generation: g.Generation}, Tool: "gpt-5",
			URL: modelAt, Model: "gpt-5-mini", API: contract.ModelAPIChat, Auth: contract.Auth{Type: contract.AuthNone},
			TimeoutMs: contract.DefaultModelTimeoutMs,
		}))
		Expect(b.Catalogue.Step).To(Equal(contract.CatalogueFull))
		Expect(run.Status.Pinned.Model).To(HaveField("Grant", "gpt"))
		Expect(run.Status.Pinned.Tools).To(Equal([]string{"search"}))

		By("taking the report with its steps")
		k.report(run, nil)
		k.report(run, func(e *contract.Execution) {
			e.Steps = []contract.Step{{Step: 1, Kind: contract.StepCode, InputTokens: 10, OutputTokens: 2, Attempts: 1, Calls: 1}}
			e.Usage = &contract.Usage{InputTokens: 10, OutputTokens: 2}
			succeed(e)
		})
		run = k.look("r")
		c := expectEnd(run, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		Expect(c.Message).To(Equal("the agent gave its output in step 1"))
		Expect(run.Status.Execution.Steps).To(HaveLen(1))
	})

	It("gives up the wait for its model at its startDeadline", func(ctx SpecContext) {
		k := newKit(ctx)
		create(k, builders.MakeRun("r").Agent("gpt", "find it").StartDeadline(0).Obj())
		c := expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonModelNotGranted)
		Expect(c.Message).To(ContainSubstring("spec.startDeadline"))
	})

	It("may ask a model that another namespace offers, and no other endpoint of it", func(ctx SpecContext) {
		k := newKit(ctx)
		other := namespace(ctx)
		g := k.elsewhere(other, builders.MakeGrant("gpt", "gpt-5").Model(modelAt, "m").Allowed())
		k.judge(g)
		k.judge(k.elsewhere(other, builders.MakeGrant("secret", "gpt-6").Model(modelAt, "m")))
		create(k, builders.MakeRun("r").Agent("gpt", "find it").Obj())
		run := k.look("r")
		expectEnd(run, metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		Expect(k.bundle(run).Agent.Model.Grant).To(Equal(contract.GrantRef{Namespace: other, Name: "gpt", UID: string(g.UID), Generation: 1}))
		Expect(run.Status.Pinned.Model.GrantNamespace).To(Equal(other))

		create(k, builders.MakeRun("late").Agent("secret", "find it").Obj())
		Expect(unmodelled(k.look("late"))).To(And(ContainSubstring("there is no ToolGrant"), Not(ContainSubstring(other))))

		By("finding two of one name ambiguous")
		k.judge(create(k, builders.MakeGrant("gpt", "gpt-5").Model(modelAt, "mine").Obj()))
		create(k, builders.MakeRun("two").Agent("gpt", "find it").Obj())
		Expect(unmodelled(k.look("two"))).To(ContainSubstring("ambiguous: ToolGrants "))
	})

	It("is refused at once for what may not be passed through", func(ctx SpecContext) {
		k := newKit(ctx)
		create(k, builders.MakeRun("r").Agent("gpt", "find it").AgentWith(func(a *v1alpha1.AgentSpec) {
			a.ExtraBody = &apiextensionsv1.JSON{Raw: []byte(`{"tools":[]}`)}
		}).Obj())
		c := expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonInvalidInput)
		Expect(c.Message).To(Equal(`spec.agent: extraBody may not set "tools"`))
	})

	It("is executed anew when its prompt is edited", func(ctx SpecContext) {
		k := newKit(ctx)
		k.judge(create(k, builders.MakeGrant("gpt", "gpt-5").Model(modelAt, "m").Obj()))
		create(k, builders.MakeRun("r").Agent("gpt", "find it").Obj())
		run := k.look("r")
		k.report(run, nil)
		k.report(run, succeed)
		expectEnd(k.look("r"), metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		k.edit("r", func(r *v1alpha1.AgentRun) { r.Spec.Agent.Prompt = "find it again" })
		k.look("r") // its old pod is stopped
		k.look("r") // the next execution begins
		run = k.look("r")
		expectEnd(run, metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		Expect(run.Status.ExecutionGeneration).To(BeEquivalentTo(2))
		Expect(k.bundle(run).Agent.Prompt).To(Equal("find it again"))
	})
})

var _ = Describe("A grant of a model", func() {
	It("is refused with schemas, and mended without them", func(ctx SpecContext) {
		k := newKit(ctx)
		g := create(k, builders.MakeGrant("gpt", "gpt-5").Model(modelAt, "m").Schemas(`{"type":"object"}`, "").Obj())
		c := k.judge(g)
		Expect(c).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", string(contract.ReasonBackendInvalid)),
			HaveField("Message", ContainSubstring("drop inputSchema and outputSchema"))))
		g.Spec.Tool.InputSchema = nil
		Expect(admin.Update(ctx, g)).To(Succeed())
		Expect(k.judge(g).Status).To(Equal(metav1.ConditionTrue))
	})
})
