package envtest

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

var _ = Describe("A call that waits", func() {
	waits := func(id string, kind contract.PendingKind) func(*contract.Execution) {
		return func(e *contract.Execution) {
			e.Pending = []contract.Pending{{
				ID: id, Kind: kind, Tool: "pay", Grant: "pay", Effect: contract.EffectEffectful, CallID: e.RunUID + ":1:1",
				Arguments: `{"n":1}`, ArgumentsDigest: contract.Digest([]byte(`{"n":1}`)), Since: "2026-03-01T12:00:00Z",
			}}
		}
	}

	It("is shown until it is answered, and its answer starts nothing", func(ctx SpecContext) {
		k := newKit(ctx)
		run := k.launched()
		digest, pod := run.Status.ExecutionDigest, run.Status.PodName
		k.report(run, waits("1-1-aa", contract.PendingApproval))
		run = k.look("r")
		Expect(run.Status.Pending).To(Equal(run.Status.Execution.Pending))
		Expect(run.Status.Pending).To(HaveLen(1))
		Expect(succeeded(run)).To(And(HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", v1alpha1.ReasonAwaitingApproval),
			HaveField("Message", ContainSubstring("codeact approve r 1-1-aa -n "+k.ns))))
		Expect(k.events.Events).To(Receive(HavePrefix("Normal AwaitingApproval the call 1-1-aa of tool pay waits")))
		k.look("r")
		Expect(k.events.Events).To(BeEmpty())

		By("an answer")
		run.Spec.Resolutions = []v1alpha1.Resolution{{ID: "1-1-aa", Decision: contract.DecisionApprove, By: "ann"}}
		before := run.Generation
		Expect(admin.Update(ctx, run)).To(Succeed())
		run = k.look("r")
		Expect(run.Generation).To(Equal(before + 1))
		Expect(run.Status.ObservedGeneration).To(Equal(run.Generation))
		Expect(run.Status.ExecutionDigest).To(Equal(digest))
		Expect(run.Status.ExecutionGeneration).To(Equal(int64(1)))
		Expect(run.Status.PodName).To(Equal(pod))
		Expect(run.Status.Pending).To(BeEmpty())
		Expect(succeeded(run)).To(HaveField("Reason", v1alpha1.ReasonRunning))

		By("the pod that has taken it, and waits for the next")
		k.report(run, nil)
		Expect(k.look("r").Status.Execution.Pending).To(BeEmpty())
		k.report(run, waits("1-2-bb", contract.PendingResult))
		run = k.look("r")
		Expect(succeeded(run)).To(HaveField("Reason", v1alpha1.ReasonAwaitingResult))
		Expect(k.events.Events).To(Receive(HavePrefix("Normal AwaitingResult the call 1-2-bb")))

		By("the end")
		k.report(run, succeed)
		run = k.look("r")
		expectEnd(run, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		Expect(run.Status.Pending).To(BeEmpty())
		run.Spec.Resolutions = append(run.Spec.Resolutions, v1alpha1.Resolution{ID: "1-2-bb", Decision: contract.DecisionDeny, By: "ann"})
		Expect(admin.Update(ctx, run)).To(Succeed())
		run = k.look("r")
		expectEnd(run, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		Expect(run.Status.ExecutionGeneration).To(Equal(int64(1)))
	})

	DescribeTable("has answers of a form", func(ctx SpecContext, edit func(*v1alpha1.Resolution), want string) {
		k := newKit(ctx)
		run := k.launched()
		r := v1alpha1.Resolution{ID: "1-1-aa", Decision: contract.DecisionApprove, By: "ann"}
		edit(&r)
		run.Spec.Resolutions = []v1alpha1.Resolution{r}
		Expect(admin.Update(ctx, run)).To(MatchError(ContainSubstring(want)))
	},
		Entry("an id", func(r *v1alpha1.Resolution) { r.ID = "" }, "spec.resolutions[0].id"),
		Entry("a decision that is known", func(r *v1alpha1.Resolution) { r.Decision = "Perhaps" }, `"Approve", "Deny"`),
		Entry("a decision", func(r *v1alpha1.Resolution) { r.Decision = "" }, "spec.resolutions[0].decision"),
		Entry("a name", func(r *v1alpha1.Resolution) { r.By = "" }, "spec.resolutions[0].by"),
	)

	It("has one answer", func(ctx SpecContext) {
		k := newKit(ctx)
		run := k.launched()
		run.Spec.Resolutions = []v1alpha1.Resolution{
			{ID: "1-1-aa", Decision: contract.DecisionApprove, By: "ann"}, {ID: "1-1-aa", Decision: contract.DecisionDeny, By: "bob"},
		}
		Expect(admin.Update(ctx, run)).To(MatchError(ContainSubstring("Duplicate value")))
	})
})
