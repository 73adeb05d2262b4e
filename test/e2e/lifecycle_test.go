package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

func cancel(r *v1alpha1.AgentRunSpec) { r.Cancel = true }

var _ = Describe("what a user changes", func() {
	var s *scene
	BeforeEach(func(ctx SpecContext) { s = newScene(ctx) })

	It("cancels a run before it starts", func(ctx SpecContext) {
		run := waits(ctx, s.run(ctx, "run", ofRecipe("nowhere")), string(contract.ReasonRecipeNotFound))
		edit(ctx, run, cancel)
		run = fails(ctx, run, contract.ReasonCancelled)
		Expect(pods(ctx, run)).To(BeEmpty())
	})

	It("cancels a run that waits for a read-only tool", func(ctx SpecContext) {
		run := s.held(ctx, contract.EffectReadOnly)
		edit(ctx, run, cancel)
		run = fails(ctx, run, contract.ReasonCancelled)
		Expect(received(ctx, run)).To(HaveLen(1))
	})

	It("cancels a run in the middle of an effect, and names it", func(ctx SpecContext) {
		run := s.held(ctx, contract.EffectEffectful)
		edit(ctx, run, cancel)
		run = fails(ctx, run, contract.ReasonCancelled)
		Expect(states(run.Status.Execution)).To(Equal([]string{"hold Uncertain"}))
		Expect(succeededOf(run).Message).To(ContainSubstring(callID(run, 1, 1)))
	})

	It("changes nothing by cancelling a run that has ended", func(ctx SpecContext) {
		run := succeeds(ctx, s.code(ctx, plain, nil))
		edit(ctx, run, cancel)
		Eventually(func() int64 { return get(ctx, run).Status.ObservedGeneration }).WithContext(ctx).Should(BeEquivalentTo(2))
		run = succeeds(ctx, run)
		edit(ctx, run, func(r *v1alpha1.AgentRunSpec) { r.Cancel = false })
		Eventually(func() int64 { return get(ctx, run).Status.ObservedGeneration }).WithContext(ctx).Should(BeEquivalentTo(3))
		run = succeeds(ctx, run)
		Expect(run.Status.ExecutionGeneration).To(BeEquivalentTo(1))
		Expect(pods(ctx, run)).To(HaveLen(1))
	})

	It("re-executes a run whose spec is edited, after its pod has ended", func(ctx SpecContext) {
		run := s.held(ctx, contract.EffectEffectful, input(`"first"`))
		edit(ctx, run, input(`"second"`))
		Eventually(func() []string { return keys(received(ctx, run)) }).WithContext(ctx).
			Should(Equal([]string{callID(run, 1, 1), callID(run, 2, 1)}))
		s.release(ctx)
		run = succeeds(ctx, run)
		Expect(run.Status.ExecutionGeneration).To(BeEquivalentTo(2))
		Expect(run.Status.Execution.Generation).To(BeEquivalentTo(2))
		By("keeping what the first execution may have done")
		Expect(run.Status.Previous).NotTo(BeNil())
		Expect(run.Status.Previous.Generation).To(BeEquivalentTo(1))
		Expect(states(run.Status.Previous)).To(Or(Equal([]string{"hold Uncertain"}), Equal([]string{"hold Dispatched"})))
		Eventually(func() string { return kubectl(ctx, "-n", s.ns, "describe", "ar", "run") }).WithContext(ctx).
			Should(MatchRegexp(`Warning\s+Superseded`))
	})

	It("ends a run at its timeout", func(ctx SpecContext) {
		run := s.held(ctx, contract.EffectReadOnly, runTimeout(3*time.Second))
		run = ends(ctx, run, metav1.ConditionFalse, string(contract.ReasonDeadlineExceeded))
		Expect(received(ctx, run)).To(HaveLen(1))
	})

	It("ends a program at its wall clock", func(ctx SpecContext) {
		run := fails(ctx, s.code(ctx, `function main() { for (;;) {} }`, nil, func(r *v1alpha1.AgentRunSpec) {
			r.Limits = &contract.Limits{WallClockMs: 500}
		}), contract.ReasonTimeout)
		Expect(run.Status.Execution.Usage.WallMs).To(BeNumerically("<", 5000))
	})
})

var _ = Describe("what the cluster refuses", func() {
	var s *scene
	BeforeEach(func(ctx SpecContext) { s = newScene(ctx) })

	quota := func(ctx SpecContext) *corev1.ResourceQuota {
		q := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "none"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
		}
		Expect(k8s.Create(ctx, q)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, types.NamespacedName{Namespace: s.ns, Name: "none"}, q)).To(Succeed())
			g.Expect(q.Status.Hard).NotTo(BeEmpty())
		}).WithContext(ctx).Should(Succeed())
		return q
	}

	It("is waited for, until the startDeadline", func(ctx SpecContext) {
		quota(ctx)
		run := fails(ctx, s.code(ctx, plain, nil, startDeadline(3*time.Second)), contract.ReasonQuotaExceeded)
		Expect(succeededOf(run).Message).To(ContainSubstring("none"))
	})

	It("is tried again when there is room", func(ctx SpecContext) {
		q := quota(ctx)
		run := waits(ctx, s.code(ctx, plain, nil, startDeadline(10*time.Minute)), string(contract.ReasonQuotaExceeded))
		Expect(k8s.Delete(ctx, q)).To(Succeed())
		succeeds(ctx, run)
	})

	It("survives a manager that is killed between pin and launch", func(ctx SpecContext) {
		q := quota(ctx)
		run := waits(ctx, s.code(ctx, plain, nil, startDeadline(10*time.Minute)), string(contract.ReasonQuotaExceeded))
		Expect(run.Status.Pinned).NotTo(BeNil())
		pin, err := kube.CoreV1().ConfigMaps(s.ns).Get(ctx, run.Status.Pinned.ConfigMap, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())

		scaleManager(ctx, 0)
		DeferCleanup(func(ctx SpecContext) { scaleManager(ctx, 1) })
		Expect(k8s.Delete(ctx, q)).To(Succeed())
		scaleManager(ctx, 1)

		run = succeeds(ctx, run)
		again, err := kube.CoreV1().ConfigMaps(s.ns).Get(ctx, run.Status.Pinned.ConfigMap, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(again.UID).To(Equal(pin.UID))
		Expect(run.Status.Launches).To(BeEquivalentTo(1))
	}, SpecTimeout(4*time.Minute))

	It("takes the report of a run that ended without a manager", func(ctx SpecContext) {
		run := s.held(ctx, contract.EffectEffectful)
		scaleManager(ctx, 0)
		DeferCleanup(func(ctx SpecContext) { scaleManager(ctx, 1) })
		s.release(ctx)
		Eventually(func() contract.Result { return get(ctx, run).Status.Execution.Result }).WithContext(ctx).Should(Equal(contract.ResultSucceeded))
		Expect(succeededOf(get(ctx, run)).Status).To(Equal(metav1.ConditionUnknown))
		scaleManager(ctx, 1)
		run = succeeds(ctx, run)
		Expect(received(ctx, run)).To(HaveLen(1))
	}, SpecTimeout(4*time.Minute))
})
