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

var _ = Describe("a pod that is lost", func() {
	var s *scene
	BeforeEach(func(ctx SpecContext) { s = newScene(ctx) })

	// elsewhere keeps a pod from being scheduled until the node gets the label.
	elsewhere := func(r *v1alpha1.AgentRunSpec) {
		r.Pod = &v1alpha1.PodOptions{NodeSelector: map[string]string{"codeact.dev/e2e": s.ns}}
	}
	pending := func(ctx SpecContext, run *v1alpha1.AgentRun, launches int) *v1alpha1.AgentRun {
		Eventually(func(g Gomega) {
			run = get(ctx, run)
			g.Expect(run.Status.Launches).To(BeEquivalentTo(launches))
			g.Expect(pods(ctx, run)).To(HaveLen(1))
		}).WithContext(ctx).Should(Succeed())
		return run
	}

	It("before its claim is launched again, and executes once", func(ctx SpecContext) {
		s.grant(ctx, "t", contract.EffectEffectful, "/echo")
		run := pending(ctx, s.code(ctx, callT, []string{"t"}, elsewhere), 1)
		first := killPod(ctx, s.ns, run.Status.PodName)
		run = pending(ctx, run, 2)
		Expect(pods(ctx, run)[0].UID).NotTo(Equal(first))

		nodes, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		label := func(ctx SpecContext, value string) {
			_, err := kube.CoreV1().Nodes().Patch(ctx, nodes.Items[0].Name, types.MergePatchType,
				[]byte(`{"metadata":{"labels":{"codeact.dev/e2e":`+value+`}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		label(ctx, `"`+s.ns+`"`)
		DeferCleanup(func(ctx SpecContext) { label(ctx, "null") })
		run = succeeds(ctx, run)
		Expect(keys(received(ctx, run))).To(Equal([]string{callID(run, 1, 1)}))
	})

	It("before its claim is not launched again for ever", func(ctx SpecContext) {
		run := s.code(ctx, plain, nil, elsewhere)
		for n := 1; n <= 3; n++ {
			run = pending(ctx, run, n)
			killPod(ctx, s.ns, run.Status.PodName)
		}
		fails(ctx, run, contract.ReasonWorkerLost)
	})

	It("after its claim is never launched again: Interrupted", func(ctx SpecContext) {
		run := s.held(ctx, contract.EffectReadOnly)
		killPod(ctx, s.ns, run.Status.PodName)
		run = fails(ctx, run, contract.ReasonInterrupted)
		Expect(pods(ctx, run)).To(BeEmpty())
		Expect(received(ctx, run)).To(HaveLen(1))
	})

	It("in the middle of an effect ends as EffectsAmbiguous and names the call", func(ctx SpecContext) {
		run := s.held(ctx, contract.EffectIdempotent)
		Expect(states(run.Status.Execution)).To(Equal([]string{"hold Dispatched"}), "the intent is written before the call is sent")
		killPod(ctx, s.ns, run.Status.PodName)
		run = fails(ctx, run, contract.ReasonEffectsAmbiguous)
		Expect(succeededOf(run).Message).To(And(ContainSubstring("hold"), ContainSubstring(callID(run, 1, 1))))
		Expect(received(ctx, run)).To(HaveLen(1))
	})

	It("is told apart from one that is stopped in order", func(ctx SpecContext) {
		run := s.held(ctx, contract.EffectReadOnly)
		Expect(kube.CoreV1().Pods(s.ns).Delete(ctx, run.Status.PodName, metav1.DeleteOptions{})).To(Succeed())
		run = fails(ctx, run, contract.ReasonInterrupted)
		Expect(run.Status.Execution.Result).To(Equal(contract.ResultFailed), "the pod itself reported")
	})

	It("by running out of memory never counts as a success", func(ctx SpecContext) {
		s.grant(ctx, "t", contract.EffectReadOnly, "/echo")
		run := s.code(ctx, `function main() { tools.call("t", {}); const a = []; for (;;) a.push("x".repeat(1 << 20) + a.length) }`, []string{"t"},
			func(r *v1alpha1.AgentRunSpec) {
				r.Pod = &v1alpha1.PodOptions{Resources: &v1alpha1.PodResources{
					Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("40Mi")},
				}}
			})
		run = ends(ctx, run, metav1.ConditionFalse, string(contract.ReasonInterrupted))
		Expect(succeededOf(run).Message).To(ContainSubstring("OOMKilled"))
		Expect(pods(ctx, run)).To(HaveLen(1))
	})

	It("has no second that could take its place", func(ctx SpecContext) {
		run := s.held(ctx, contract.EffectEffectful)
		first, err := kube.CoreV1().Pods(s.ns).Get(ctx, run.Status.PodName, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		By("making a copy of the pod, as only the manager may")
		second := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.ns, Name: first.Name + "-2", Labels: first.Labels, Annotations: first.Annotations, OwnerReferences: first.OwnerReferences,
		}, Spec: first.Spec}
		second.Spec.NodeName = ""
		second.Spec.Volumes = append([]corev1.Volume{}, first.Spec.Volumes...)
		_, err = asUser(managerUser, "system:serviceaccounts").CoreV1().Pods(s.ns).Create(ctx, second, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			p, err := kube.CoreV1().Pods(s.ns).Get(ctx, second.Name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.Status.Phase).To(Equal(corev1.PodFailed))
		}).WithContext(ctx).Should(Succeed())
		Expect(received(ctx, run)).To(HaveLen(1))
		s.release(ctx)
		run = succeeds(ctx, run)
		Expect(run.Status.Execution.Claim.PodUID).To(BeEquivalentTo(first.UID))
		Expect(received(ctx, run)).To(HaveLen(1))
	}, SpecTimeout(3*time.Minute))
})
