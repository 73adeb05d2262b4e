package envtest

import (
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

const (
	echo    = "function main(input) { return input }"
	calling = "function main(input) { return tools.call('search', input) }"
)

func succeed(e *contract.Execution) { _ = e.Succeed(json.RawMessage(`{"n": 1}`)) }

// launched creates a run of plain code and launches it.
func (k *kit) launched() *v1alpha1.AgentRun {
	GinkgoHelper()
	create(k, builders.MakeRun("r").Code(echo).Obj())
	run := k.look("r")
	Expect(run.Status.PodName).NotTo(BeEmpty())
	return run
}

var _ = Describe("A run", func() {
	It("waits for recipe and grant, is pinned, launched and settled from its report", func(ctx SpecContext) {
		k := newKit(ctx)
		create(k, builders.MakeRun("r").Recipe("sweep").Input(`{"q":"x"}`).Obj())
		expectEnd(k.look("r"), metav1.ConditionUnknown, contract.ReasonRecipeNotFound)

		rcp := create(k, builders.MakeRecipe("sweep", calling, "search").Obj())
		expectEnd(k.look("r"), metav1.ConditionUnknown, contract.ReasonRecipeNotReady)
		Expect(k.judge(rcp).Reason).To(Equal("ToolsNotGranted"))
		expectEnd(k.look("r"), metav1.ConditionUnknown, contract.ReasonToolsNotGranted)

		grant := create(k, builders.MakeGrant("search", "search").Effect(contract.EffectReadOnly).Obj())
		Expect(k.judge(grant).Status).To(Equal(metav1.ConditionTrue))
		Expect(k.judge(rcp).Status).To(Equal(metav1.ConditionTrue))
		run := k.look("r")
		expectEnd(run, metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		Expect(run.Status.Launches).To(Equal(int64(1)))
		Expect(run.Status.Pinned.Recipe.ManifestDigest).To(Equal(rcp.Status.ManifestDigest))
		Expect(run.Status.Pinned.Tools).To(Equal([]string{"search"}))

		By("writing the pin once, and never again")
		cm := &corev1.ConfigMap{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: k.ns, Name: run.Status.Pinned.ConfigMap}, cm)).To(Succeed())
		must(contract.DecodeBundle([]byte(cm.Data[contract.BundleKey]), run.Status.Pinned.Digest))
		cm.Data[contract.BundleKey] += " "
		Expect(admin.Update(ctx, cm)).To(MatchError(ContainSubstring("immutable")))

		By("giving the namespace the identity of runtime pods")
		key := client.ObjectKey{Namespace: k.ns, Name: contract.RuntimeServiceAccount}
		Expect(admin.Get(ctx, key, &corev1.ServiceAccount{})).To(Succeed())
		Expect(admin.Get(ctx, key, &rbacv1.RoleBinding{})).To(Succeed())

		By("writing nothing between launch and end")
		version := run.ResourceVersion
		Expect(k.look("r").ResourceVersion).To(Equal(version))
		k.report(run, nil)
		version = k.get("r").ResourceVersion
		Expect(k.look("r").ResourceVersion).To(Equal(version))

		k.report(run, succeed)
		run = k.look("r")
		expectEnd(run, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		Expect(string(run.Status.Output.Raw)).To(MatchJSON(`{"n":1}`))
		Expect(run.Status.OutputDigest).To(Equal(run.Status.Execution.OutputDigest))
		Expect(run.Status.CompletionTime).NotTo(BeNil())
		Expect(k.events.Events).To(BeEmpty(), "a successful run makes no event")

		version = run.ResourceVersion
		Expect(k.look("r").ResourceVersion).To(Equal(version))
	})

	It("settles the largest output, and null", func(ctx SpecContext) {
		k := newKit(ctx)
		run := k.launched()
		k.report(run, func(e *contract.Execution) {
			Expect(e.Succeed(json.RawMessage(`"` + strings.Repeat("x", 262142) + `"`))).To(Succeed())
		})
		run = k.look("r")
		expectEnd(run, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		Expect(run.Status.Output.Raw).To(HaveLen(262144))

		create(k, builders.MakeRun("wide").Code(echo).Obj())
		run = k.look("wide")
		k.report(run, func(e *contract.Execution) {
			// Such letters take six bytes each where the object is stored.
			Expect(e.Succeed(json.RawMessage(`"` + strings.Repeat("<", 140000) + `"`))).To(Succeed())
		})
		run = k.look("wide")
		c := expectEnd(run, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		GinkgoWriter.Println("wide:", c.Message)
		Expect(run.Status.Output != nil || strings.Contains(c.Message, "status.execution.output")).To(BeTrue())

		create(k, builders.MakeRun("null").Code(echo).Obj())
		run = k.look("null")
		k.report(run, func(e *contract.Execution) { Expect(e.Succeed(json.RawMessage(`null`))).To(Succeed()) })
		run = k.look("null")
		expectEnd(run, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		Expect(run.Status.OutputDigest).To(Equal(contract.Digest([]byte("null"))))
	})

	It("has derived names within their limits for the longest name", func(ctx SpecContext) {
		k := newKit(ctx)
		name := strings.Repeat("long-name.", 25) + "xyz"
		create(k, builders.MakeRun(name).Code(echo).Obj())
		run := k.look(name)
		Expect(len(run.Status.PodName)).To(BeNumerically("<=", 63))
		k.report(run, succeed)
		expectEnd(k.look(name), metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	})

	It("fails after its start deadline for what it waited for", func(ctx SpecContext) {
		k := newKit(ctx)
		create(k, builders.MakeRun("r").Recipe("none").Obj())
		_, res := k.lookAgain("r")
		Expect(res.RequeueAfter).To(Equal(time.Minute))
		k.step(time.Minute)
		c := expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonRecipeNotFound)
		Expect(c.Message).To(ContainSubstring("waited 1m0s"))
		Expect(k.events.Events).To(Receive(ContainSubstring("Warning RecipeNotFound")))

		By("staying so when the recipe comes")
		k.judge(create(k, builders.MakeRecipe("none", echo).Obj()))
		expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonRecipeNotFound)
	})

	DescribeTable("fails at once on", func(ctx SpecContext, b *builders.Run, reason contract.Reason, message string) {
		k := newKit(ctx)
		k.judge(create(k, builders.MakeRecipe("sweep", echo).InputSchema(`{"type":"object","required":["q"]}`).Obj()))
		create(k, b.Obj())
		c := expectEnd(k.look("r"), metav1.ConditionFalse, reason)
		Expect(c.Message).To(ContainSubstring(message))
		Expect(k.pod(k.get("r"))).To(BeNil())
		Expect(k.events.Events).To(Receive(ContainSubstring(string(reason))))
	},
		Entry("a syntax error", builders.MakeRun("r").Code("function main(x) {\n return ]\n}"), contract.ReasonSyntaxError, "main.js:2:"),
		Entry("a forbidden name", builders.MakeRun("r").Code("function main(x) {\n return eval(x)\n}"), contract.ReasonProhibited, "main.js:2:"),
		Entry("an input that breaks the schema", builders.MakeRun("r").Recipe("sweep").Input(`{}`), contract.ReasonInvalidInput, "required"),
		Entry("limits above the operator's", builders.MakeRun("r").Code(echo).Limits(contract.Limits{HeapBytes: 200 << 20}), contract.ReasonLimitsTooHigh, "heapBytes"),
		Entry("a cancel before the start", builders.MakeRun("r").Code(echo).Cancel(), contract.ReasonCancelled, "nothing was started"),
	)

	It("fails at once when runs are switched off", func(ctx SpecContext) {
		k := newKit(ctx)
		k.runs.Operator.CodeAct.Enabled = false
		create(k, builders.MakeRun("r").Code(echo).Obj())
		expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonDisabled)
	})

	It("is executed again only by a change of what is executed", func(ctx SpecContext) {
		k := newKit(ctx)
		run := k.launched()
		first := run.Status.PodName
		k.report(run, succeed)
		k.look("r")
		k.edit("r", func(r *v1alpha1.AgentRun) { r.Spec.Cancel = true })
		expectEnd(k.look("r"), metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		k.edit("r", func(r *v1alpha1.AgentRun) {
			r.Spec.Cancel, r.Spec.StartDeadline = false, &metav1.Duration{Duration: time.Second}
		})
		run = k.look("r")
		expectEnd(run, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		Expect(run.Status.ExecutionGeneration).To(Equal(int64(1)))

		k.edit("r", func(r *v1alpha1.AgentRun) { r.Spec.Code.Source = echo + " // again" })
		k.look("r") // stops the first pod, which is not on a node and so gone at once
		run = k.look("r")
		Expect(run.Status.ExecutionGeneration).To(Equal(int64(2)))
		Expect(run.Status.Previous.Result).To(Equal(contract.ResultSucceeded))
		Expect(run.Status.Previous.Output).To(BeEmpty())
		Expect(run.Status.Execution).To(BeNil())
		Expect(run.Status.Output).To(BeNil())
		run = k.look("r")
		Expect(run.Status.PodName).NotTo(Equal(first))
		k.report(run, succeed)
		expectEnd(k.look("r"), metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	})

	It("ends the old pod before an edit is executed", func(ctx SpecContext) {
		k := newKit(ctx)
		run := k.launched()
		k.bind(run)
		k.report(run, func(e *contract.Execution) {
			e.Calls = []contract.Call{{Seq: 1, ID: "x:1:1", Tool: "pay", Effect: contract.EffectEffectful, State: contract.CallDispatched}}
		})
		k.edit("r", func(r *v1alpha1.AgentRun) { r.Spec.Code.Source += " // again" })
		for range 2 {
			run = k.look("r")
			expectEnd(run, metav1.ConditionUnknown, v1alpha1.ReasonStopping)
			Expect(run.Status.ExecutionGeneration).To(Equal(int64(1)))
			Expect(k.pod(run).DeletionTimestamp).NotTo(BeNil())
		}
		k.kill(run)
		run = k.look("r")
		Expect(run.Status.ExecutionGeneration).To(Equal(int64(2)))
		Expect(run.Status.Previous.Error.Reason).To(Equal(contract.ReasonSuperseded))
		Expect(run.Status.Previous.Calls).To(HaveLen(1))
		Expect(k.events.Events).To(Receive(And(ContainSubstring("Warning Superseded"), ContainSubstring("x:1:1"))))

		By("not blaming the next one, which never began")
		k.edit("r", func(r *v1alpha1.AgentRun) { r.Spec.Code.Source += " // and again" })
		run = k.look("r")
		Expect(run.Status.ExecutionGeneration).To(Equal(int64(3)))
		Expect(run.Status.Previous.Calls).To(HaveLen(1))
		Expect(k.events.Events).To(Receive(And(ContainSubstring("Normal Superseded"), Not(ContainSubstring("x:1:1")))))
	})

	It("is stopped when it is deleted, also where a finalizer keeps it", func(ctx SpecContext) {
		k := newKit(ctx)
		run := k.launched()
		k.edit("r", func(r *v1alpha1.AgentRun) { r.Finalizers = []string{"codeact.test/kept"} })
		k.bind(run)
		k.report(run, nil)
		Expect(admin.Delete(ctx, k.get("r"))).To(Succeed())
		run = k.look("r")
		expectEnd(run, metav1.ConditionUnknown, v1alpha1.ReasonStopping)
		Expect(k.pod(run).DeletionTimestamp).NotTo(BeNil())
		k.kill(run)
		run = k.look("r")
		expectEnd(run, metav1.ConditionFalse, contract.ReasonCancelled)
		version := run.ResourceVersion
		Expect(k.look("r").ResourceVersion).To(Equal(version))
		k.edit("r", func(r *v1alpha1.AgentRun) { r.Finalizers = nil })
	})

	It("is deleted after its ttl", func(ctx SpecContext) {
		k := newKit(ctx)
		create(k, builders.MakeRun("r").Code(echo).TTL(time.Minute).Obj())
		run := k.look("r")
		k.report(run, succeed)
		k.look("r")
		_, res := k.lookAgain("r")
		Expect(res.RequeueAfter).To(Equal(time.Minute))
		k.step(time.Minute)
		must(k.runs.Reconcile(ctx, k.get("r")))
		err := admin.Get(ctx, client.ObjectKeyFromObject(run), &v1alpha1.AgentRun{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})

	It("keeps the digest of what it executes when nothing is set", func(ctx SpecContext) {
		// A default that is added to the API would have every stored run executed
		// again: this digest must never change.
		k := newKit(ctx)
		run := k.launched()
		Expect(run.Status.ExecutionDigest).To(Equal("sha256:0f60c007fa0649b5680486fd94d522ea76d8de4680859d74eb6934ef2dba928e"))
		Expect(run.Status.PodName).To(Equal(agentrun.Name(run, 1)))
	})
})
