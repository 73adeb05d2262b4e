package e2e

import (
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// toolServer reads from the tool server, through the API server.
func toolServer(ctx context.Context, path string) []byte {
	GinkgoHelper()
	raw, err := kube.CoreV1().Services(toolsNamespace).ProxyGet("http", "toolserver", "8080", path, nil).DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	return raw
}

func inputSchema(text string) func(*v1alpha1.ToolGrantSpec) {
	return func(g *v1alpha1.ToolGrantSpec) { g.Tool.InputSchema = &apiextensionsv1.JSON{Raw: []byte(text)} }
}

func outputSchema(text string) func(*v1alpha1.ToolGrantSpec) {
	return func(g *v1alpha1.ToolGrantSpec) { g.Tool.OutputSchema = &apiextensionsv1.JSON{Raw: []byte(text)} }
}

var _ = Describe("a whole ToolGrant", func() {
	var s *scene
	BeforeEach(func(ctx SpecContext) { s = newScene(ctx) })

	It("puts arguments into a URL behind a CA of its own, and never further", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "roots"}, Data: map[string]string{"ca.crt": string(toolServer(ctx, "/ca"))},
		})).To(Succeed())
		s.grant(ctx, "item", contract.EffectReadOnly, "/", inputSchema(`{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"q":{}}}`),
			func(g *v1alpha1.ToolGrantSpec) {
				g.Backend.HTTP = &v1alpha1.HTTPBackend{
					URL: "https://toolserver." + toolsNamespace + ".svc.cluster.local:8443/items/{id}?q={q}", Method: "GET",
					Headers:  []v1alpha1.HTTPHeader{{Name: "X-Shop", Value: "north"}},
					CABundle: &v1alpha1.ConfigMapKeyReference{Name: "roots", Key: "ca.crt"},
				}
			})
		run := succeeds(ctx, s.code(ctx, `function main() {
			const got = [tools.call("item", {id: "a b", q: ["x&y=1", 2]})];
			for (const id of ["..", "../admin", "%2e%2e%2fadmin", ""]) {
				try { got.push(tools.call("item", {id})) } catch (e) { got.push(e.name) }
			}
			return got;
		}`, []string{"item"}))
		out := output(run).([]any)
		Expect(out[0]).To(Equal(map[string]any{"id": "a b", "path": "/items/a%20b", "shop": "north", "query": map[string]any{"q": []any{"x&y=1", "2"}}}))
		Expect(received(ctx, run)).To(HaveLen(1), "only the first call may leave")
		Expect(out[1:]).To(HaveLen(4))
	})

	It("is not fooled by a server that its CA does not know", func(ctx SpecContext) {
		s.grant(ctx, "item", contract.EffectEffectful, "/", func(g *v1alpha1.ToolGrantSpec) {
			g.Backend.HTTP.URL = "https://toolserver." + toolsNamespace + ".svc.cluster.local:8443/echo"
		})
		run := fails(ctx, s.code(ctx, `function main() { return tools.call("item", {}) }`, []string{"item"}), contract.ReasonJavaScriptError)
		Expect(states(run.Status.Execution)).To(Equal([]string{"item Failed"}))
		Expect(received(ctx, run)).To(BeEmpty())
	})

	It("refuses loopback and link-local addresses, whatever name leads there", func(ctx SpecContext) {
		for name, host := range map[string]string{"a": "127.0.0.1", "b": "localhost", "c": "169.254.169.254", "d": "[::ffff:127.0.0.1]"} {
			s.grant(ctx, name, contract.EffectEffectful, "/", func(g *v1alpha1.ToolGrantSpec) { g.Backend.HTTP.URL = "http://" + host + ":8080/" })
		}
		run := succeeds(ctx, s.code(ctx, `function main() { return ["a", "b", "c", "d"].map(n => { try { return tools.call(n, {}) } catch (e) { return e.message } }) }`,
			[]string{"a", "b", "c", "d"}))
		for _, message := range output(run).([]any) {
			Expect(message).To(ContainSubstring("does not allow"))
		}
		Expect(states(run.Status.Execution)).To(Equal([]string{"a Failed", "b Failed", "c Failed", "d Failed"}))
	})

	It("tries an Idempotent call again with the same key, and no other", func(ctx SpecContext) {
		retry := func(g *v1alpha1.ToolGrantSpec) {
			g.Grant.Retry = &v1alpha1.Retry{Attempts: 3, Backoff: &metav1.Duration{Duration: 10 * time.Millisecond}}
		}
		s.grant(ctx, "t", contract.EffectIdempotent, "/flaky?fails=2", retry)
		run := succeeds(ctx, s.code(ctx, callT, []string{"t"}))
		Expect(output(run)).To(HaveKeyWithValue("attempt", 3.0))
		Expect(run.Status.Execution.Calls[0].Attempts).To(BeEquivalentTo(3))
		id := callID(run, 1, 1)
		Expect(keys(received(ctx, run))).To(Equal([]string{id, id, id}))
		Expect(run.Status.Execution.Usage.Tools).To(HaveLen(1))
	})

	It("holds a call to its constraints", func(ctx SpecContext) {
		s.grant(ctx, "t", contract.EffectEffectful, "/echo", func(g *v1alpha1.ToolGrantSpec) {
			g.Grant.Constraints = []v1alpha1.Constraint{{Expression: "args.amount <= 100 && run.namespace == '" + s.ns + "'", Message: "too much"}}
		})
		run := fails(ctx, s.code(ctx, `function main() { tools.call("t", {amount: 100}); try { tools.call("t", {amount: 101}) } catch (e) {} return 1 }`,
			[]string{"t"}), contract.ReasonConstraintViolated)
		Expect(succeededOf(run).Message).To(ContainSubstring("too much"))
		Expect(states(run.Status.Execution)).To(Equal([]string{"t Completed", "t Refused"}))
		Expect(received(ctx, run)).To(HaveLen(1))
	})

	It("leaves pictures for the result, and none for the program", func(ctx SpecContext) {
		s.grant(ctx, "t", contract.EffectEffectful, "/show")
		run := succeeds(ctx, s.code(ctx, callT, []string{"t"}))
		Expect(output(run)).To(Equal(map[string]any{"shown": true}))
		ref := run.Status.Media
		Expect(ref).NotTo(BeNil())
		Expect(ref.Geometry).To(Equal(contract.Geometry{Width: 1, Height: 1}))
		cm, err := kube.CoreV1().ConfigMaps(s.ns).Get(ctx, ref.ConfigMap, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(contract.Digest([]byte(cm.Data[contract.MediaKey]))).To(Equal(ref.Digest))
		var m contract.Media
		Expect(json.Unmarshal([]byte(cm.Data[contract.MediaKey]), &m)).To(Succeed())
		Expect(m.Pictures).To(HaveLen(1))
		Expect(run.Status.Execution.Calls[0].Receipt).To(Equal("receipt-of-" + callID(run, 1, 1)))
		By("going with the run")
		Expect(k8s.Delete(ctx, run)).To(Succeed())
		Eventually(func() error {
			_, err := kube.CoreV1().ConfigMaps(s.ns).Get(ctx, ref.ConfigMap, metav1.GetOptions{})
			return err
		}).WithContext(ctx).ShouldNot(Succeed())
	})

	It("is offered to namespaces by their labels", func(ctx SpecContext) {
		other := newScene(ctx)
		other.grant(ctx, "t", contract.EffectReadOnly, "/echo", func(g *v1alpha1.ToolGrantSpec) {
			g.AllowedNamespaces = &v1alpha1.AllowedNamespaces{
				From: v1alpha1.NamespacesSelector, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": s.ns}},
			}
		})
		run := s.code(ctx, callT, []string{"t"})
		run = waits(ctx, run, string(contract.ReasonToolsNotGranted))
		Expect(succeededOf(run).Message).To(ContainSubstring("rule Grant"))
		_, err := kube.CoreV1().Namespaces().Patch(ctx, s.ns, types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":"`+s.ns+`"}}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		run = succeeds(ctx, run)
		Expect(run.Status.Execution.Calls[0].GrantNamespace).To(Equal(other.ns))
		By("naming both when two may be used")
		own := s.grant(ctx, "t", contract.EffectReadOnly, "/echo")
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(own), own)).To(Succeed())
			g.Expect(v1alpha1.IsReady(own.Status.Conditions, own.Generation)).To(BeTrue())
		}).WithContext(ctx).Should(Succeed())
		second := s.run(ctx, "second", func(r *v1alpha1.AgentRunSpec) {
			r.Code = &v1alpha1.CodeSpec{Source: callT, Tools: []string{"t"}}
		}, startDeadline(0))
		second = fails(ctx, second, contract.ReasonToolsNotGranted)
		Expect(meta.FindStatusCondition(second.Status.Conditions, v1alpha1.ConditionPinned).Message).
			To(And(ContainSubstring("ambiguous"), ContainSubstring(other.ns+"/t")))
	})

	It("has one span for each call below that of the execution", func(ctx SpecContext) {
		s.grant(ctx, "t", contract.EffectReadOnly, "/echo")
		run := succeeds(ctx, s.code(ctx, `function main() { return tools.call("t", {secret: "not-for-spans"}).arguments }`, []string{"t"}))
		Eventually(func() string { return string(toolServer(ctx, "/traces")) }).WithContext(ctx).
			Should(And(ContainSubstring(string(run.UID)), ContainSubstring(callID(run, 1, 1)), ContainSubstring(`"execute_tool t"`)))
		Expect(string(toolServer(ctx, "/traces"))).NotTo(ContainSubstring("not-for-spans"))
	})
})
