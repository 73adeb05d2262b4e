package policy

import (
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

var succeeded = map[string]any{"result": "Succeeded", "output": `{"n":1}`, "outputDigest": "sha256:x"}

func ended(status metav1.ConditionStatus) func(*v1alpha1.AgentRunStatus) {
	return func(st *v1alpha1.AgentRunStatus) { st.Conditions[1].Status = status }
}

var _ = Describe("codeact-runtime-report", func() {
	var s *stage
	BeforeEach(func(ctx SpecContext) { s = newStage(ctx) })

	It("lets a pod claim its run, keep the journal and end it, by server-side apply", func(ctx SpecContext) {
		Expect(s.apply(ctx, s.token, s.report())).To(Succeed())
		calls := map[string]any{"calls": []any{map[string]any{"seq": int64(1), "tool": "t", "state": "Dispatched"}}}
		Expect(s.apply(ctx, s.token, s.report(calls))).To(Succeed())
		Expect(s.apply(ctx, s.token, s.report(calls, succeeded))).To(Succeed())
		By("saying the same again after a lost answer")
		Expect(s.apply(ctx, s.token, s.report(calls, succeeded))).To(Succeed())
	})

	It("lets a pod write by merge patch, too", func(ctx SpecContext) {
		Expect(s.merge(ctx, s.token, map[string]any{"status": map[string]any{"execution": s.report()}}, "status")).To(Succeed())
	})

	It("keeps the rules when the manager writes between two reports", func(ctx SpecContext) {
		Expect(s.apply(ctx, s.token, s.report())).To(Succeed())
		s.change(ctx, func(st *v1alpha1.AgentRunStatus) { st.Conditions[1].Message = "running" })
		Expect(s.apply(ctx, s.token, s.report(succeeded))).To(Succeed())
	})

	DescribeTable("refuses a first report that is not about its own execution",
		func(ctx SpecContext, edit func() map[string]any, want string) {
			Expect(s.apply(ctx, s.token, s.report(edit()))).To(beForbidden(want))
		},
		Entry("another generation", func() map[string]any { return map[string]any{"generation": int64(2)} }, "not about the execution that is pinned"),
		Entry("another run's UID", func() map[string]any { return map[string]any{"runUID": "other"} }, "not about the execution that is pinned"),
		Entry("another bundle", func() map[string]any { return map[string]any{"bundleDigest": "sha256:other"} }, "not about the execution that is pinned"),
		Entry("a claim by another pod", func() map[string]any {
			return map[string]any{"claim": map[string]any{"podName": "other", "podUID": string(s.pod.UID), "time": "now"}}
		}, "must name the pod of this token"),
		Entry("a claim by another UID", func() map[string]any {
			return map[string]any{"claim": map[string]any{"podName": s.pod.Name, "podUID": "other", "time": "now"}}
		}, "must name the pod of this token"),
	)

	DescribeTable("refuses every token that is not the run's own pod's",
		func(ctx SpecContext, token func(SpecContext) string, want string) {
			tok := token(ctx)
			Expect(s.apply(ctx, tok, s.report())).To(beForbidden(want))
			Expect(s.merge(ctx, tok, map[string]any{"status": map[string]any{"execution": s.report()}}, "status")).To(beForbidden(want))
		},
		Entry("bound to nothing", func(ctx SpecContext) string { return s.requestToken(ctx, nil) }, "bound to no pod"),
		Entry("bound to a Secret", func(ctx SpecContext) string {
			sec := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "sec"}}
			Expect(admin.Create(ctx, sec)).To(Succeed())
			return s.requestToken(ctx, &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: sec.Name, UID: sec.UID})
		}, "bound to no pod"),
		Entry("another run's pod", func(ctx SpecContext) string {
			_, pod := s.launch(ctx, "other", "other-pod")
			return s.tokenFor(ctx, pod)
		}, "not the pod of this token"),
		Entry("a pod of that name in another namespace", func(ctx SpecContext) string { return newStage(ctx).token }, "not the pod of this token"),
	)

	It("refuses the impersonated ServiceAccount", func(ctx SpecContext) {
		_, err := as("system:serviceaccount:"+s.ns+":codeact-runtime").runs(s.ns).Patch(ctx, s.run.Name,
			types.MergePatchType, []byte(`{"status":{"podName":"mine"}}`), metav1.PatchOptions{}, "status")
		Expect(err).To(beForbidden("bound to no pod"))
	})

	It("never lets a second pod of the same name take a claim", func(ctx SpecContext) {
		Expect(s.apply(ctx, s.token, s.report())).To(Succeed())
		second := s.replacePod(ctx)
		token := s.tokenFor(ctx, second)
		Expect(s.apply(ctx, token, s.report(map[string]any{"claim": claim(second)}))).To(beForbidden("already claimed"))
		Expect(s.apply(ctx, token, s.report())).To(beForbidden("must name the pod of this token"))
	})

	It("lets a second pod claim what nobody claimed", func(ctx SpecContext) {
		second := s.replacePod(ctx)
		Expect(s.apply(ctx, s.tokenFor(ctx, second), s.report(map[string]any{"claim": claim(second)}))).To(Succeed())
	})

	It("opens the claim for a new execution generation only", func(ctx SpecContext) {
		Expect(s.apply(ctx, s.token, s.report(succeeded))).To(Succeed())
		s.change(ctx, func(st *v1alpha1.AgentRunStatus) { st.ExecutionGeneration = 2; st.PodName = "pod-2" })
		Expect(s.apply(ctx, s.token, s.report())).To(beForbidden("not the pod of this token"))
		pod, err := manager().CoreV1().Pods(s.ns).Create(ctx, runtimePod("pod-2"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.apply(ctx, s.tokenFor(ctx, pod), s.report(map[string]any{"claim": claim(pod)}))).To(Succeed())
	})

	It("never lets an ended report change", func(ctx SpecContext) {
		Expect(s.apply(ctx, s.token, s.report(succeeded))).To(Succeed())
		for _, edit := range []map[string]any{
			{"result": "Failed"}, {"output": `{"n":2}`}, {"completionTime": "later"}, {"refusedCalls": int64(1)},
		} {
			Expect(s.apply(ctx, s.token, s.report(succeeded, edit))).To(beForbidden("never changes"))
		}
		Expect(s.apply(ctx, s.token, s.report())).To(beForbidden("never changes"))
	})

	It("never lets a claim go away or move", func(ctx SpecContext) {
		Expect(s.apply(ctx, s.token, s.report())).To(Succeed())
		moved := claim(s.pod)
		moved["time"] = "2026-01-02T04:00:00Z"
		Expect(s.apply(ctx, s.token, s.report(map[string]any{"claim": moved}))).To(beForbidden("a claim never changes"))
		Expect(s.merge(ctx, s.token, map[string]any{"status": map[string]any{"execution": nil}}, "status")).To(beForbidden("not about the execution"))
		Expect(s.merge(ctx, s.token, map[string]any{"status": nil}, "status")).To(beForbidden("not about the execution"))
	})

	DescribeTable("refuses everything once the run ended",
		func(ctx SpecContext, status metav1.ConditionStatus) {
			s.change(ctx, ended(status))
			Expect(s.apply(ctx, s.token, s.report(succeeded))).To(beForbidden("the run has ended"))
		},
		Entry("well", metav1.ConditionTrue),
		Entry("badly", metav1.ConditionFalse),
	)

	DescribeTable("refuses a change of any other part of the status",
		func(ctx SpecContext, edit map[string]any) {
			status := map[string]any{"execution": s.report()}
			maps.Copy(status, edit)
			Expect(s.merge(ctx, s.token, map[string]any{"status": status}, "status")).To(beForbidden("nothing of the status but"))
		},
		Entry("a number", map[string]any{"launches": int64(0)}),
		Entry("a new field", map[string]any{"output": "mine"}),
		Entry("a field taken away", map[string]any{"launches": nil}),
		Entry("the conditions", map[string]any{"conditions": []any{}}),
	)

	It("refuses other parts of the status by server-side apply", func(ctx SpecContext) {
		Expect(s.applyStatus(ctx, s.token, map[string]any{
			"execution":  s.report(),
			"conditions": []any{map[string]any{"type": "Succeeded", "status": "True", "reason": "Forged", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}},
		})).To(beForbidden("nothing of the status but"))
	})

	It("has no other verb or resource for a runtime pod, whatever RBAC says", func(ctx SpecContext) {
		own := withToken(s.token).Resource(runsResource).Namespace(s.ns)
		const want = "may only write the status of its own AgentRun"
		Expect(s.merge(ctx, s.token, map[string]any{"spec": map[string]any{"cancel": true}})).To(beForbidden(want))
		Expect(s.merge(ctx, s.token, map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "b"}}})).To(beForbidden(want))
		Expect(own.Delete(ctx, s.run.Name, metav1.DeleteOptions{})).To(beForbidden(want))
		_, err := own.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "codeact.dev/v1alpha1", "kind": "AgentRun", "metadata": map[string]any{"name": "mine"},
			"spec": map[string]any{"code": map[string]any{"source": "function main() {}"}},
		}}, metav1.CreateOptions{})
		Expect(err).To(beForbidden(want))
		_, err = withToken(s.token).Resource(schema.GroupVersionResource{Group: "codeact.dev", Version: "v1alpha1", Resource: "recipes"}).
			Namespace(s.ns).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "codeact.dev/v1alpha1", "kind": "Recipe", "metadata": map[string]any{"name": "mine"},
			"spec": map[string]any{"source": "function main() {}"},
		}}, metav1.CreateOptions{})
		Expect(err).To(beForbidden(want))
	})

	It("drops changes of spec and metadata that come with a report", func(ctx SpecContext) {
		Expect(s.merge(ctx, s.token, map[string]any{
			"spec":     map[string]any{"cancel": true},
			"metadata": map[string]any{"labels": map[string]any{"team": "b"}, "finalizers": []any{"codeact.dev/mine"}},
			"status":   map[string]any{"execution": s.report()},
		}, "status")).To(Or(Succeed(), beForbidden("neither the spec nor the metadata")))
		s.change(ctx, func(*v1alpha1.AgentRunStatus) {})
		Expect(s.run.Spec.Cancel).To(BeFalse())
		Expect(s.run.Labels).To(HaveKeyWithValue("team", "a"))
		Expect(s.run.Finalizers).To(BeEmpty())
	})

	It("does not stand in the manager's way", func(ctx SpecContext) {
		_, err := manager().runs(s.ns).Patch(ctx, s.run.Name,
			types.MergePatchType, []byte(`{"status":{"podName":"next","execution":null}}`), metav1.PatchOptions{}, "status")
		Expect(err).NotTo(HaveOccurred())
	})
})
