package e2e

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

var _ = Describe("a run that goes well", func() {
	var s *scene
	BeforeEach(func(ctx SpecContext) { s = newScene(ctx) })

	It("executes the sample recipe with its two grants", func(ctx SpecContext) {
		samples := command(ctx, os.Getenv("KUSTOMIZE"), "build", filepath.Join("..", "..", "config", "samples"))
		samples = strings.ReplaceAll(samples, "http://toolserver:8080", toolURL(""))
		kubectlApply(ctx, samples, "-n", s.ns)
		r := &v1alpha1.AgentRun{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "reorder-bolts"}}
		r = succeeds(ctx, r)

		out := output(r).(map[string]any)
		Expect(out).To(And(HaveKeyWithValue("stock", 12.0), HaveKeyWithValue("ordered", 238.0)))
		Expect(states(r.Status.Execution)).To(Equal([]string{"lookup_stock Completed", "place_order Completed"}))
		Expect(r.Status.Pinned.Tools).To(Equal([]string{"lookup_stock", "place_order"}))
		Expect(r.Status.Launches).To(BeEquivalentTo(1))

		calls := received(ctx, r)
		Expect(keys(calls)).To(Equal([]string{callID(r, 1, 1), callID(r, 1, 2)}))
		Expect(calls[0].Run).To(BeEmpty(), "lookup_stock has no run.identity")
		Expect(calls[1].Run).To(Equal("reorder-bolts"))

		By("showing it to a person")
		Expect(kubectl(ctx, "-n", s.ns, "get", "ar")).To(MatchRegexp(`reorder-bolts\s+True\s+Succeeded\s+reorder`))
		Expect(kubectl(ctx, "-n", s.ns, "get", "codeact")).To(And(ContainSubstring("recipe"), ContainSubstring("toolgrant")))
		Expect(kubectl(ctx, "-n", s.ns, "wait", "--for=condition=Succeeded", "ar/reorder-bolts", "--timeout=5s")).To(ContainSubstring("condition met"))
		Expect(kubectl(ctx, "-n", s.ns, "describe", "ar", "reorder-bolts")).To(ContainSubstring("Succeeded"))

		By("leaving a pin that cannot change")
		cm, err := kube.CoreV1().ConfigMaps(s.ns).Get(ctx, r.Status.Pinned.ConfigMap, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(cm.Immutable).To(HaveValue(BeTrue()))
		Expect(contract.Digest([]byte(cm.Data[contract.BundleKey]))).To(Equal(r.Status.Pinned.Digest))
	})

	DescribeTable("returns every JSON value of a program of its own",
		func(ctx SpecContext, source, in, want string) {
			r := succeeds(ctx, s.code(ctx, source, nil, input(in)))
			Expect(r.Status.Execution.Output).To(MatchJSON(want))
			Expect(r.Status.OutputDigest).To(Equal(contract.Digest([]byte(r.Status.Execution.Output))))
			if want != "null" { // which a merge patch cannot write
				Expect(string(r.Status.Output.Raw)).To(MatchJSON(want))
			}
		},
		Entry("an object", `function main(i) { return {sum: i.a + i.b} }`, `{"a":1,"b":2}`, `{"sum":3}`),
		Entry("null", `function main() { return null }`, `null`, `null`),
	)

	It("works for the longest names, and under the most restricted names of pods", func(ctx SpecContext) {
		name := strings.Repeat(strings.Repeat("a", 62)+".", 4) + "b" // 253 bytes
		r := succeeds(ctx, s.run(ctx, name, func(r *v1alpha1.AgentRunSpec) {
			r.Code = &v1alpha1.CodeSpec{Source: `function main() { return 1 }`}
		}))
		Expect(len(r.Status.PodName)).To(BeNumerically("<=", 63))
	})

	It("removes what it made with the run, and the run after its ttl", func(ctx SpecContext) {
		r := succeeds(ctx, s.code(ctx, `function main() { return 1 }`, nil))
		edit(ctx, r, func(spec *v1alpha1.AgentRunSpec) { spec.TTLAfterFinished = &metav1.Duration{} })
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, types.NamespacedName{Namespace: s.ns, Name: r.Name}, &v1alpha1.AgentRun{})).NotTo(Succeed())
			g.Expect(k8s.Get(ctx, types.NamespacedName{Namespace: s.ns, Name: r.Status.PodName}, &corev1.Pod{})).NotTo(Succeed())
			g.Expect(k8s.Get(ctx, types.NamespacedName{Namespace: s.ns, Name: r.Status.Pinned.ConfigMap}, &corev1.ConfigMap{})).NotTo(Succeed())
		}).WithContext(ctx).Should(Succeed())
	})
})
