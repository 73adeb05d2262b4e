package e2e

import (
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

const callT = `function main() { return tools.call("t", {}) }`

var _ = Describe("a tool that misbehaves", func() {
	var s *scene
	BeforeEach(func(ctx SpecContext) { s = newScene(ctx) })

	DescribeTable("ends the run with what is proven about the call",
		func(ctx SpecContext, effect contract.Effect, url string, call contract.Reason, state contract.CallState) {
			s.grant(ctx, "t", effect, "/", timeout(2*time.Second), func(g *v1alpha1.ToolGrantSpec) {
				g.Backend.HTTP.URL = url
			})
			want := call
			if call.Class() == contract.ClassCatchable {
				want = contract.ReasonJavaScriptError // which the program did not catch
			}
			run := fails(ctx, s.code(ctx, callT, []string{"t"}), want)
			Expect(run.Status.Execution.Calls[0].Reason).To(Equal(call))
			Expect(states(run.Status.Execution)).To(Equal([]string{"t " + string(state)}))
			Expect(pods(ctx, run)).To(HaveLen(1))
			Expect(len(received(ctx, run))).To(BeNumerically("<=", 1), "sent more than once")
		},
		Entry("is not there", contract.EffectEffectful, "http://toolserver."+toolsNamespace+".svc.cluster.local:1/", contract.ReasonToolFailed, contract.CallFailed),
		Entry("has no such host", contract.EffectEffectful, "http://nowhere.invalid/", contract.ReasonToolFailed, contract.CallFailed),
		Entry("is slow, read-only", contract.EffectReadOnly, toolURL("/slow?ms=60000"), contract.ReasonToolFailed, contract.CallFailed),
		Entry("is slow, effectful", contract.EffectEffectful, toolURL("/slow?ms=60000"), contract.ReasonEffectUncertain, contract.CallUncertain),
		Entry("answers too much", contract.EffectEffectful, toolURL("/huge?bytes=3000000"), contract.ReasonChildResultTooLarge, contract.CallCompleted),
		Entry("answers no JSON, read-only", contract.EffectReadOnly, toolURL("/notjson"), contract.ReasonToolFailed, contract.CallFailed),
		Entry("answers no JSON, effectful", contract.EffectEffectful, toolURL("/notjson"), contract.ReasonEffectUncertain, contract.CallUncertain),
		Entry("redirects", contract.EffectEffectful, toolURL("/redirect"), contract.ReasonToolFailed, contract.CallFailed),
		Entry("fails, read-only", contract.EffectReadOnly, toolURL("/fail?status=500"), contract.ReasonToolFailed, contract.CallFailed),
		Entry("fails, effectful", contract.EffectEffectful, toolURL("/fail?status=500"), contract.ReasonEffectUncertain, contract.CallUncertain),
		Entry("refuses", contract.EffectEffectful, toolURL("/fail?status=409"), contract.ReasonToolFailed, contract.CallFailed),
		Entry("breaks off", contract.EffectIdempotent, toolURL("/break"), contract.ReasonEffectUncertain, contract.CallUncertain),
	)

	It("can be caught by the program when nothing happened", func(ctx SpecContext) {
		s.grant(ctx, "t", contract.EffectEffectful, "/fail?status=404")
		run := succeeds(ctx, s.code(ctx, `function main() { try { tools.call("t", {}) } catch (e) { return "caught" } }`, []string{"t"}))
		Expect(output(run)).To(Equal("caught"))
	})

	It("cannot be called without being declared, whatever the program catches", func(ctx SpecContext) {
		s.grant(ctx, "t", contract.EffectEffectful, "/echo")
		run := fails(ctx, s.code(ctx, `function main() { try { tools.call("t", {}) } catch (e) {} return 1 }`, nil), contract.ReasonToolNotAllowed)
		Expect(states(run.Status.Execution)).To(Equal([]string{"t Refused"}))
		Expect(received(ctx, run)).To(BeEmpty())
	})
})

var _ = Describe("a credential", func() {
	var s *scene
	BeforeEach(func(ctx SpecContext) { s = newScene(ctx) })

	secretRef := func(g *v1alpha1.ToolGrantSpec) {
		g.Auth = &v1alpha1.ToolAuth{SecretRef: &v1alpha1.SecretKeyReference{Name: "cred", Key: "token"}}
	}

	It("comes from a Secret and is seen nowhere but in the call", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "cred"}, StringData: map[string]string{"token": credential},
		})).To(Succeed())
		s.grant(ctx, "t", contract.EffectReadOnly, "/auth", secretRef, capability(contract.CapabilityAuth))
		run := succeeds(ctx, s.code(ctx, callT, []string{"t"}))
		Expect(output(run)).To(HaveKeyWithValue("authenticated", true))
		Expect(received(ctx, run)[0].Bearer).To(Equal("Expected"))

		whole, err := json.Marshal(run)
		Expect(err).NotTo(HaveOccurred())
		cm, err := kube.CoreV1().ConfigMaps(s.ns).Get(ctx, run.Status.Pinned.ConfigMap, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		for what, text := range map[string]string{
			"run":      string(whole),
			"bundle":   cm.Data[contract.BundleKey],
			"pod":      kubectl(ctx, "-n", s.ns, "get", "pod", run.Status.PodName, "-o", "yaml"),
			"pod log":  kubectl(ctx, "-n", s.ns, "logs", run.Status.PodName),
			"manager":  kubectl(ctx, "-n", operatorNamespace, "logs", "deployment/"+managerName, "--tail=200"),
			"events":   kubectl(ctx, "-n", s.ns, "get", "events", "-o", "yaml"),
			"tool log": kubectl(ctx, "-n", toolsNamespace, "logs", "deployment/toolserver"),
		} {
			Expect(text).NotTo(ContainSubstring(credential), what)
		}
	})

	It("that is wrong fails the call and nothing else", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "cred"}, StringData: map[string]string{"token": "wrong"},
		})).To(Succeed())
		s.grant(ctx, "t", contract.EffectReadOnly, "/auth", secretRef, capability(contract.CapabilityAuth))
		run := fails(ctx, s.code(ctx, callT, []string{"t"}), contract.ReasonJavaScriptError)
		Expect(run.Status.Execution.Calls[0].Reason).To(Equal(contract.ReasonToolFailed))
		Expect(succeededOf(run).Message).To(And(ContainSubstring("401"), Not(ContainSubstring("wrong"))))
	})

	It("can be a token for one audience", func(ctx SpecContext) {
		for audience, want := range map[string]bool{"tools.example.test": true, "other.example.test": false} {
			g := s.grant(ctx, "t", contract.EffectReadOnly, "/review?audience=tools.example.test", capability(contract.CapabilityAuth),
				func(g *v1alpha1.ToolGrantSpec) {
					g.Auth = &v1alpha1.ToolAuth{ServiceAccountToken: &v1alpha1.ServiceAccountToken{Audience: audience}}
				})
			run := s.code(ctx, callT, []string{"t"})
			if want {
				run = succeeds(ctx, run)
				Expect(output(run)).To(HaveKeyWithValue("user", "system:serviceaccount:"+s.ns+":"+contract.RuntimeServiceAccount))
			} else {
				run = fails(ctx, run, contract.ReasonJavaScriptError)
				Expect(run.Status.Execution.Calls[0].Reason).To(Equal(contract.ReasonToolFailed))
			}
			Expect(k8s.Delete(ctx, run)).To(Succeed())
			Expect(k8s.Delete(ctx, g)).To(Succeed())
			Eventually(func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(run), run) }).WithContext(ctx).ShouldNot(Succeed())
		}
	})

	It("that is missing keeps the pod waiting", func(ctx SpecContext) {
		s.grant(ctx, "t", contract.EffectReadOnly, "/auth", secretRef, capability(contract.CapabilityAuth))
		run := s.code(ctx, callT, []string{"t"}, runTimeout(time.Minute))
		run = waits(ctx, run, v1alpha1.ReasonPending)
		Expect(succeededOf(run).Message).To(ContainSubstring("Secret"))
		By("starting as soon as it is there")
		Expect(k8s.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "cred"}, StringData: map[string]string{"token": credential},
		})).To(Succeed())
		succeeds(ctx, run)
	})
})
