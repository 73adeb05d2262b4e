package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/test/toolserver/tools"
)

// authorised grants calls the credential of the scene's Secret.
func authorised(g *v1alpha1.ToolGrantSpec) {
	g.Auth = &v1alpha1.ToolAuth{SecretRef: &v1alpha1.SecretKeyReference{Name: "cred", Key: "token"}}
	capability(contract.CapabilityAuth)(g)
}

func (s *scene) secret(ctx context.Context, value string) {
	GinkgoHelper()
	Expect(k8s.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "cred"}, StringData: map[string]string{"token": value},
	})).To(Succeed())
}

// everywhere is all that is kept of a run, and what it left in logs.
func everywhere(ctx context.Context, run *v1alpha1.AgentRun) map[string]string {
	GinkgoHelper()
	whole, err := json.Marshal(run)
	Expect(err).NotTo(HaveOccurred())
	maps := kubectl(ctx, "-n", run.Namespace, "get", "configmaps", "-o", "yaml")
	return map[string]string{
		"run": string(whole), "configmaps": maps,
		"pod":      kubectl(ctx, "-n", run.Namespace, "get", "pods", "-o", "yaml"),
		"pod log":  kubectl(ctx, "-n", run.Namespace, "logs", run.Status.PodName),
		"manager":  kubectl(ctx, "-n", operatorNamespace, "logs", "deployment/"+managerName, "--tail=500"),
		"events":   kubectl(ctx, "-n", run.Namespace, "get", "events", "-o", "yaml"),
		"spans":    string(toolServer(ctx, "/traces")),
		"tool log": kubectl(ctx, "-n", toolsNamespace, "logs", "deployment/toolserver"),
	}
}

var _ = Describe("a credential in a run that fails", func() {
	var s *scene
	BeforeEach(func(ctx SpecContext) { s = newScene(ctx) })

	DescribeTable("is seen nowhere",
		func(ctx SpecContext, effect contract.Effect, path string, reason contract.Reason, edits ...func(*v1alpha1.ToolGrantSpec)) {
			s.secret(ctx, credential)
			s.grant(ctx, "t", effect, path, append([]func(*v1alpha1.ToolGrantSpec){authorised, timeout(time.Second)}, edits...)...)
			run := fails(ctx, s.code(ctx, callT, []string{"t"}), reason)
			Expect(received(ctx, run)[0].Bearer).To(Equal("Expected"), "the call must have carried it")
			for what, text := range everywhere(ctx, run) {
				Expect(text).NotTo(ContainSubstring(credential), what)
			}
		},
		Entry("by a refusal", contract.EffectReadOnly, "/fail?status=403", contract.ReasonJavaScriptError),
		Entry("by an error", contract.EffectEffectful, "/fail?status=500", contract.ReasonEffectUncertain),
		Entry("by a lost answer", contract.EffectEffectful, "/break", contract.ReasonEffectUncertain),
		Entry("by an answer that is late", contract.EffectIdempotent, "/slow?ms=20000", contract.ReasonEffectUncertain),
		Entry("by an answer that is no JSON", contract.EffectEffectful, "/notjson", contract.ReasonEffectUncertain),
		Entry("by an answer that is too large", contract.EffectEffectful, "/huge?bytes=300000", contract.ReasonChildResultTooLarge),
		Entry("by a redirect", contract.EffectEffectful, "/redirect", contract.ReasonJavaScriptError),
		Entry("by an answer that is not as declared", contract.EffectEffectful, "/echo", contract.ReasonChildResultInvalid, outputSchema(`{"type":"string"}`)),
		Entry("by a tool that answers with it", contract.EffectEffectful, "/leak", contract.ReasonChildResultInvalid),
		Entry("by a tool that refuses with it", contract.EffectReadOnly, "/leak?status=400", contract.ReasonJavaScriptError),
		Entry("by a tool that fails with it", contract.EffectEffectful, "/leak?status=500", contract.ReasonEffectUncertain),
	)
})

var _ = Describe("a credential that is rotated", func() {
	It("counts from the next call on, in a pod that goes on", func(ctx SpecContext) {
		s := newScene(ctx)
		s.secret(ctx, "the-old-one")
		s.grant(ctx, "t", contract.EffectReadOnly, "/auth", authorised)
		s.grant(ctx, "wait", contract.EffectReadOnly, "/slow?ms=500", timeout(5*time.Second))
		run := s.code(ctx, `function main() {
			for (let i = 1; i < 32; i++) {
				try { tools.call("t", {}); return i } catch (e) { tools.call("wait", {}) }
			}
			return 0;
		}`, []string{"t", "wait"})
		Eventually(func() []tools.Received { return received(ctx, run) }).WithContext(ctx).ShouldNot(BeEmpty())
		_, err := kube.CoreV1().Secrets(s.ns).Patch(ctx, "cred", types.MergePatchType,
			[]byte(fmt.Sprintf(`{"stringData":{"token":%q}}`, credential)), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		run = get(ctx, run)
		// A kubelet renews the files of a pod once a minute, or when the pod changes.
		_, err = kube.CoreV1().Pods(s.ns).Patch(ctx, run.Status.PodName, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"example.test/renew":"now"}}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		run = succeeds(ctx, run)
		Expect(output(run)).To(BeNumerically(">", 1))
		Expect(run.Status.Launches).To(BeEquivalentTo(1))
		Expect(pods(ctx, run)).To(HaveLen(1))
	})
})
