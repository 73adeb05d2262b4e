package envtest

import (
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

var errCrash = errors.New("the manager is gone")

func paying(s contract.CallState) func(*contract.Execution) {
	return func(e *contract.Execution) {
		e.Calls = []contract.Call{{Seq: 1, ID: e.RunUID + ":1:1", Tool: "pay", Effect: contract.EffectEffectful, State: s}}
	}
}

var _ = Describe("A run whose pod", func() {
	It("is deleted before its claim is launched again, three times in all", func(ctx SpecContext) {
		k := newKit(ctx)
		run := k.launched()
		name := run.Status.PodName
		for n := int64(2); n <= 3; n++ {
			k.kill(run)
			run = k.look("r")
			expectEnd(run, metav1.ConditionUnknown, v1alpha1.ReasonRunning)
			Expect(run.Status.Launches).To(Equal(n))
			Expect(run.Status.PodName).To(Equal(name))
			Expect(k.pod(run)).NotTo(BeNil())
		}
		k.kill(run)
		expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonWorkerLost)
	})

	It("ends before its claim is removed and launched again", func(ctx SpecContext) {
		k := newKit(ctx)
		run := k.launched()
		first := k.pod(run).UID
		k.end(run, corev1.PodFailed, "Error", 1, "")
		k.look("r")
		run = k.look("r")
		Expect(run.Status.Launches).To(Equal(int64(2)))
		Expect(k.pod(run).UID).NotTo(Equal(first))
	})

	It("is deleted after its claim is never launched again", func(ctx SpecContext) {
		k := newKit(ctx)
		run := k.launched()
		k.report(run, nil)
		k.kill(run)
		expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonInterrupted)
		Expect(k.pod(run)).To(BeNil())
	})

	It("is deleted in the middle of a call names the call", func(ctx SpecContext) {
		k := newKit(ctx)
		run := k.launched()
		e := k.report(run, paying(contract.CallDispatched))
		k.kill(run)
		c := expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonEffectsAmbiguous)
		Expect(c.Message).To(ContainSubstring("pay (" + e.Calls[0].ID + ")"))
	})

	DescribeTable("ends", func(ctx SpecContext, phase corev1.PodPhase, reason string, code int32, message func(*contract.Execution) string, want contract.Reason) {
		k := newKit(ctx)
		run := k.launched()
		e := k.report(run, nil)
		k.end(run, phase, reason, code, message(e))
		st := metav1.ConditionFalse
		if want == v1alpha1.ReasonSucceeded {
			st = metav1.ConditionTrue
		}
		run = k.look("r")
		expectEnd(run, st, want)
		if st == metav1.ConditionTrue {
			Expect(string(run.Status.Output.Raw)).To(MatchJSON(`{"n":1}`))
			Expect(run.Status.Execution.Result).To(Equal(contract.ResultSucceeded))
		}
	},
		Entry("with a whole report settles from it", corev1.PodSucceeded, "Completed", int32(0), whole, contract.Reason(v1alpha1.ReasonSucceeded)),
		Entry("without a report is no success", corev1.PodSucceeded, "Completed", int32(0), func(*contract.Execution) string { return "" }, contract.ReasonInterrupted),
		Entry("with somebody else's words is no success", corev1.PodSucceeded, "Completed", int32(0), func(*contract.Execution) string { return "done" }, contract.ReasonInterrupted),
		Entry("with a report that was cut short is no success", corev1.PodSucceeded, "Completed", int32(0),
			func(e *contract.Execution) string { s := whole(e); return s[:len(s)-1] }, contract.ReasonInterrupted),
		Entry("out of memory with exit code 0 is no success", corev1.PodSucceeded, "OOMKilled", int32(0), whole, contract.ReasonInterrupted),
		Entry("out of memory", corev1.PodFailed, "OOMKilled", int32(137), func(*contract.Execution) string { return "" }, contract.ReasonInterrupted),
		Entry("with a report of another pod is no success", corev1.PodSucceeded, "Completed", int32(0),
			func(e *contract.Execution) string { e.Claim.PodUID = "other"; return whole(e) }, contract.ReasonInterrupted),
		Entry("with a report of another generation is no success", corev1.PodSucceeded, "Completed", int32(0),
			func(e *contract.Execution) string { e.Generation = 2; return whole(e) }, contract.ReasonInterrupted),
	)

	It("is the second one is stopped and not trusted", func(ctx SpecContext) {
		k := newKit(ctx)
		run := k.launched()
		k.report(run, func(e *contract.Execution) { e.Claim.PodUID = "the-first" })
		e := k.report(run, func(e *contract.Execution) { e.Claim.PodUID = "the-first" })
		k.bind(run)
		e.Claim.PodUID = string(k.pod(run).UID)
		k.end(run, corev1.PodSucceeded, "Completed", 0, whole(e))
		expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonInterrupted)
	})

	It("is the second one does not undo what the first reported", func(ctx SpecContext) {
		k := newKit(ctx)
		run := k.launched()
		k.report(run, func(e *contract.Execution) { e.Claim.PodUID = "the-first"; succeed(e) })
		expectEnd(k.look("r"), metav1.ConditionUnknown, v1alpha1.ReasonStopping)
		Expect(k.pod(run)).To(BeNil())
		expectEnd(k.look("r"), metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	})

	It("cannot be scheduled says so, and ends at its deadline", func(ctx SpecContext) {
		k := newKit(ctx)
		run := k.launched()
		p := k.pod(run)
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available"}}
		Expect(admin.Status().Update(ctx, p)).To(Succeed())
		c := expectEnd(k.look("r"), metav1.ConditionUnknown, v1alpha1.ReasonPending)
		Expect(c.Message).To(ContainSubstring("0/1 nodes"))
		k.step(10*time.Minute + 15*time.Second)
		expectEnd(k.look("r"), metav1.ConditionUnknown, v1alpha1.ReasonStopping)
		expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonDeadlineExceeded)
	})

	It("is cancelled settles by its own report, or without one", func(ctx SpecContext) {
		k := newKit(ctx)
		run := k.launched()
		k.bind(run)
		k.report(run, nil)
		k.edit("r", func(r *v1alpha1.AgentRun) { r.Spec.Cancel = true })
		expectEnd(k.look("r"), metav1.ConditionUnknown, v1alpha1.ReasonStopping)
		k.report(run, func(e *contract.Execution) { e.Fail(contract.Faultf(contract.ReasonCancelled, "told to stop")) })
		c := expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonCancelled)
		Expect(c.Message).To(Equal("told to stop"))

		create(k, builders.MakeRun("mute").Code(echo).Obj())
		run = k.look("mute")
		k.report(run, paying(contract.CallUncertain))
		k.edit("mute", func(r *v1alpha1.AgentRun) { r.Spec.Cancel = true })
		k.look("mute")
		expectEnd(k.look("mute"), metav1.ConditionFalse, contract.ReasonEffectsAmbiguous)
	})
})

func whole(e *contract.Execution) string {
	succeed(e)
	return string(must(e.TerminationMessage()))
}

var _ = Describe("A launch", func() {
	It("that is refused by quota waits, and goes on when there is room", func(ctx SpecContext) {
		k := newKit(ctx)
		q := create(k, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}})
		q.Status.Hard, q.Status.Used = q.Spec.Hard, q.Spec.Hard
		Expect(admin.Status().Update(ctx, q)).To(Succeed())
		create(k, builders.MakeRun("r").Code(echo).Obj())
		create(k, builders.MakeRun("late").Code(echo).Obj())
		run, res := k.lookAgain("r")
		c := expectEnd(run, metav1.ConditionUnknown, contract.ReasonQuotaExceeded)
		Expect(c.Message).To(ContainSubstring("exceeded quota"))
		Expect(res.RequeueAfter).To(Equal(5 * time.Second))
		k.look("late")
		version := run.ResourceVersion
		Expect(k.look("r").ResourceVersion).To(Equal(version))

		k.step(time.Minute)
		expectEnd(k.look("late"), metav1.ConditionFalse, contract.ReasonQuotaExceeded)
		Expect(admin.Delete(ctx, q)).To(Succeed())
		Eventually(func(g Gomega) { g.Expect(k.look("r").Status.PodName).NotTo(BeEmpty()) }).
			WithTimeout(20 * time.Second).WithPolling(200 * time.Millisecond).Should(Succeed())
	})

	It("that a LimitRange refuses waits as for quota", func(ctx SpecContext) {
		k := newKit(ctx)
		create(k, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "l"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Mi")}}}}})
		create(k, builders.MakeRun("r").Code(echo).Obj())
		Eventually(func(g Gomega) { // The API server caches LimitRanges for a moment.
			g.Expect(succeeded(k.look("r")).Reason).To(Equal(string(contract.ReasonQuotaExceeded)))
		}).WithTimeout(20 * time.Second).WithPolling(200 * time.Millisecond).Should(Succeed())
	})

	It("whose pin a quota refuses waits as for the pod's", func(ctx SpecContext) {
		k := newKit(ctx)
		k.fail = func(verb string, o client.Object) error {
			if cm, ok := o.(*corev1.ConfigMap); ok && verb == "create" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, cm.Name, errors.New("exceeded quota: q"))
			}
			return nil
		}
		create(k, builders.MakeRun("r").Code(echo).Obj())
		run, res := k.lookAgain("r")
		c := expectEnd(run, metav1.ConditionUnknown, contract.ReasonQuotaExceeded)
		Expect(c.Message).To(ContainSubstring("exceeded quota"))
		Expect(res.RequeueAfter).To(Equal(5 * time.Second))
		k.step(time.Minute)
		expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonQuotaExceeded)
	})

	It("that is refused otherwise ends with the start deadline", func(ctx SpecContext) {
		k := newKit(ctx)
		create(k, builders.MakeRun("r").Code(echo).Pod(v1alpha1.PodOptions{PriorityClassName: "none-such"}).Obj())
		c := expectEnd(k.look("r"), metav1.ConditionUnknown, v1alpha1.ReasonWaiting)
		Expect(c.Message).To(ContainSubstring("none-such"))
		k.step(time.Minute)
		expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonStartDeadlineExceeded)
	})

	It("that ends between pin and pod goes on from the same pin", func(ctx SpecContext) {
		k := newKit(ctx)
		create(k, builders.MakeRun("r").Code(echo).Obj())
		k.fail = func(verb string, o client.Object) error {
			if _, pod := o.(*corev1.Pod); pod || verb == "status" {
				return errCrash
			}
			return nil
		}
		_, err := k.runs.Reconcile(ctx, k.get("r"))
		Expect(err).To(MatchError(errCrash))
		Expect(k.get("r").Status.ExecutionGeneration).To(BeZero())
		k.fail = nil
		k.step(time.Hour)
		run := k.look("r")
		expectEnd(run, metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		k.report(run, succeed)
		expectEnd(k.look("r"), metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	})

	It("whose status write is lost is found again by its names", func(ctx SpecContext) {
		k := newKit(ctx)
		k.judge(create(k, builders.MakeGrant("search", "search").Obj()))
		create(k, builders.MakeRun("r").Code(calling, "search").Obj())
		k.fail = func(verb string, _ client.Object) error {
			if verb == "status" {
				return errCrash
			}
			return nil
		}
		_, err := k.runs.Reconcile(ctx, k.get("r"))
		Expect(err).To(MatchError(errCrash))
		k.fail = nil
		pod := k.pod(k.get("r"))
		Expect(pod).NotTo(BeNil())

		By("also when the authority has gone meanwhile")
		Expect(admin.DeleteAllOf(ctx, &v1alpha1.ToolGrant{}, client.InNamespace(k.ns))).To(Succeed())
		run := k.look("r")
		Expect(run.Status.PodName).To(Equal(pod.Name))
		Expect(run.Status.Launches).To(Equal(int64(1)))
		Expect(run.Status.Pinned.Digest).To(Equal(pod.Annotations[v1alpha1.AnnotationBundleDigest]))
		Expect(k.pod(run).UID).To(Equal(pod.UID))
		k.report(run, succeed)
		expectEnd(k.look("r"), metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	})

	It("is not decided on an old look", func(ctx SpecContext) {
		k := newKit(ctx)
		run := k.launched()
		old := k.get("r")
		k.report(run, nil)
		k.kill(run)
		res, err := k.runs.Reconcile(ctx, old)
		Expect(err).NotTo(HaveOccurred())
		Expect(res.RequeueAfter).To(BeNumerically(">", 0))
		Expect(k.pod(run)).To(BeNil())
		expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonInterrupted)
	})

	It("never takes or replaces a ConfigMap of its name that holds something else", func(ctx SpecContext) {
		k := newKit(ctx)
		run := create(k, builders.MakeRun("r").Code(echo).Obj())
		create(k, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: agentrun.Name(run, 1)}, Data: map[string]string{contract.BundleKey: "{}"}})
		expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonInterrupted)
		Expect(k.pod(run)).To(BeNil())
	})

	It("never takes a pod of its name that somebody else made", func(ctx SpecContext) {
		k := newKit(ctx)
		run := create(k, builders.MakeRun("r").Code(echo).Obj())
		p := agentrun.NewPod(k.runs.Operator.Runtime, run, &agentrun.Pin{Name: agentrun.Name(run, 1)})
		p.Spec.ServiceAccountName = "default"
		create(k, p)
		c := expectEnd(k.look("r"), metav1.ConditionUnknown, v1alpha1.ReasonWaiting)
		Expect(c.Message).To(ContainSubstring("was not launched for this run"))
		k.step(time.Minute)
		expectEnd(k.look("r"), metav1.ConditionFalse, contract.ReasonStartDeadlineExceeded)
	})
})
