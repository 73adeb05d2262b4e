package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/test/modelserver/script"
)

// code is an answer with a program, which had so many tokens.
func code(program string, edits ...func(*script.Turn)) script.Turn {
	text, _ := json.Marshal(map[string]string{"type": "code", "language": "javascript", "code": program})
	return turn(string(text), edits...)
}

// final is an answer that ends the run with the JSON text.
func final(output string, edits ...func(*script.Turn)) script.Turn {
	return turn(`{"type":"final","output":`+output+`}`, edits...)
}

func turn(text string, edits ...func(*script.Turn)) script.Turn {
	t := script.Turn{Text: text, Usage: &script.Usage{InputTokens: 90, OutputTokens: 10}}
	for _, e := range edits {
		e(&t)
	}
	return t
}

// after holds how the message began that the turn answers.
func after(prefix string) func(*script.Turn) {
	return func(t *script.Turn) { t.LastPrefix = prefix }
}

func modelServerURL(name string) string {
	return "http://modelserver." + toolsNamespace + ".svc.cluster.local:8080/s/" + name + "/v1"
}

// model has the scene's model say these turns, and grants it to every run of the scene.
func (s *scene) model(ctx context.Context, turns []script.Turn, edits ...func(*v1alpha1.ToolGrantSpec)) {
	GinkgoHelper()
	s.script(ctx, script.Script{Turns: turns, Model: "scripted", System: []string{"function main(input)"}})
	s.secret(ctx, credential)
	g := &v1alpha1.ToolGrant{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "gpt"}}
	g.Spec.Tool = v1alpha1.ToolDeclaration{Name: "gpt", Kind: contract.KindModel}
	g.Spec.Backend.Model = &v1alpha1.ModelBackend{URL: modelServerURL(s.ns), Model: "scripted"}
	for _, e := range append([]func(*v1alpha1.ToolGrantSpec){authorised}, edits...) {
		e(&g.Spec)
	}
	Expect(k8s.Create(ctx, g)).To(Succeed())
}

func (s *scene) script(ctx context.Context, x script.Script) {
	GinkgoHelper()
	body, err := json.Marshal(x)
	Expect(err).NotTo(HaveOccurred())
	_, err = kube.CoreV1().RESTClient().Post().Namespace(toolsNamespace).Resource("services").Name("http:modelserver:8080").
		SubResource("proxy").Suffix("script").Param("name", s.ns).Body(body).DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
}

// asked is what the scene's model was sent, in order.
func (s *scene) asked(ctx context.Context) []script.Received {
	GinkgoHelper()
	raw, err := kube.CoreV1().Services(toolsNamespace).
		ProxyGet("http", "modelserver", "8080", "/log", map[string]string{"name": s.ns}).DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	var out []script.Received
	Expect(json.Unmarshal(raw, &out)).To(Succeed())
	return out
}

// agent submits a run whose programs the scene's model writes.
func (s *scene) agent(ctx context.Context, edits ...func(*v1alpha1.AgentSpec)) *v1alpha1.AgentRun {
	GinkgoHelper()
	return s.run(ctx, "run", func(r *v1alpha1.AgentRunSpec) {
		r.Agent = &v1alpha1.AgentSpec{Model: "gpt", Prompt: "do it", Tools: []string{"t"}}
		for _, e := range edits {
			e(r.Agent)
		}
	})
}

// steps are the steps of the run's report, in order.
func steps(r *v1alpha1.AgentRun) []string {
	GinkgoHelper()
	Expect(r.Status.Execution).NotTo(BeNil())
	out := []string{}
	for _, x := range r.Status.Execution.Steps {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s", x.Kind, x.Reason)))
	}
	return out
}

var _ = Describe("an agent", func() {
	var s *scene
	BeforeEach(func(ctx SpecContext) {
		s = newScene(ctx)
		s.grant(ctx, "t", contract.EffectIdempotent, "/echo")
	})
	const callTool = `function main(input) { tools.call("t", {n: 1}); return {found: 7} }`

	It("ends with the first usable result of a program, and leaves the credential nowhere", func(ctx SpecContext) {
		s.model(ctx, []script.Turn{code(callTool)})
		run := succeeds(ctx, s.agent(ctx, func(a *v1alpha1.AgentSpec) { a.Temperature = "0.2" }))
		Expect(output(run)).To(Equal(map[string]any{"found": 7.0}))
		Expect(steps(run)).To(Equal([]string{"Code"}))
		Expect(states(run.Status.Execution)).To(Equal([]string{"t Completed"}))
		Expect(keys(received(ctx, run))).To(Equal([]string{callID(run, 1, 1)}))
		u := run.Status.Execution.Usage
		Expect([]int64{u.InputTokens, u.OutputTokens}).To(Equal([]int64{90, 10}))
		Expect(run.Status.Pinned.Model).To(HaveField("Grant", "gpt"))

		asked := s.asked(ctx)
		Expect(asked).To(HaveLen(1))
		Expect(asked[0].Bearer).To(Equal("Expected"))
		Expect(asked[0].Problem).To(BeEmpty())
		Expect(string(asked[0].Body)).To(ContainSubstring(`"temperature":0.2`))
		s.credentialNowhere(ctx, run)
	})

	It("repairs a program that failed", func(ctx SpecContext) {
		s.model(ctx, []script.Turn{
			code(`function main(input) { return input.missing.field }`),
			code(`function main(input) { return "mended" }`, after("CODE_ERROR: ")),
		})
		run := succeeds(ctx, s.agent(ctx))
		Expect(output(run)).To(Equal("mended"))
		Expect(steps(run)).To(Equal([]string{"Code JavaScriptError", "Code"}))
	})

	It("has the model close the run, where that is asked for", func(ctx SpecContext) {
		s.model(ctx, []script.Turn{code(callTool), final(`{"answer":7}`, after("CODE_RESULT: "))})
		run := succeeds(ctx, s.agent(ctx, func(a *v1alpha1.AgentSpec) { a.Finalize = contract.FinalizeModel }))
		Expect(output(run)).To(Equal(map[string]any{"answer": 7.0}))
		Expect(steps(run)).To(Equal([]string{"Code", "Final"}))
	})

	It("ends at its last step, with the last useful result as evidence", func(ctx SpecContext) {
		again := code(callTool)
		s.model(ctx, []script.Turn{again, again})
		run := fails(ctx, s.agent(ctx, func(a *v1alpha1.AgentSpec) {
			a.Finalize, a.MaxSteps = contract.FinalizeModel, 2
		}), contract.ReasonStepLimitExceeded)
		Expect(run.Status.Execution.Steps).To(HaveLen(2))
		Expect(run.Status.Execution.Error.Evidence).To(ContainSubstring(`"found":7`))
		Expect(run.Status.Output).To(BeNil())
	})

	It("ends at the grant's tokens, whatever the run asks for", func(ctx SpecContext) {
		s.model(ctx, []script.Turn{code(`function main(input) { return null }`), code(`function main(input) { return null }`), final("1")},
			func(g *v1alpha1.ToolGrantSpec) { most := int64(150); g.Grant.MaxTokensPerRun = &most })
		run := fails(ctx, s.agent(ctx, func(a *v1alpha1.AgentSpec) { a.MaxTokens = 100000 }), contract.ReasonTokenBudgetExceeded)
		Expect(len(s.asked(ctx))).To(BeNumerically("<", 3))
		Expect(run.Status.Execution.Usage.InputTokens).To(BeNumerically(">", 0))
	})

	It("is cancelled while its model thinks", func(ctx SpecContext) {
		s.model(ctx, []script.Turn{code(callTool, func(t *script.Turn) { t.Hold = s.ns })})
		run := s.agent(ctx)
		Eventually(func() []script.Received { return s.asked(ctx) }).WithContext(ctx).Should(HaveLen(1))
		edit(ctx, run, cancel)
		run = fails(ctx, run, contract.ReasonCancelled)
		Expect(received(ctx, run)).To(BeEmpty())
	})

	It("asks again when its model is busy", func(ctx SpecContext) {
		s.model(ctx, []script.Turn{code(callTool, func(t *script.Turn) {
			t.Status, t.Times, t.RetryAfter = 429, 1, "1"
		})})
		run := succeeds(ctx, s.agent(ctx))
		Expect(run.Status.Execution.Steps[0].Attempts).To(BeEquivalentTo(2))
	})

	It("fails with the model, and leaves the credential nowhere", func(ctx SpecContext) {
		s.model(ctx, []script.Turn{{Status: 403, Error: "not with " + credential}})
		run := fails(ctx, s.agent(ctx), contract.ReasonModelError)
		Expect(s.asked(ctx)[0].Bearer).To(Equal("Expected"), "the request must have carried it")
		s.credentialNowhere(ctx, run)
	})

	It("waits for its model's grant", func(ctx SpecContext) {
		run := waits(ctx, s.agent(ctx), string(contract.ReasonModelNotGranted))
		Expect(pods(ctx, run)).To(BeEmpty())
		s.model(ctx, []script.Turn{code(callTool)})
		succeeds(ctx, run)
	})
})

// credentialNowhere holds that nothing that is kept has the model's credential.
func (s *scene) credentialNowhere(ctx context.Context, run *v1alpha1.AgentRun) {
	GinkgoHelper()
	all := everywhere(ctx, run)
	all["model log"] = kubectl(ctx, "-n", toolsNamespace, "logs", "deployment/modelserver")
	for what, text := range all {
		Expect(text).NotTo(ContainSubstring(credential), what)
	}
}

var _ = Describe("the sample of an agent", func() {
	It("counts with its tool and ends", func(ctx SpecContext) {
		s := newScene(ctx)
		s.script(ctx, script.Script{Model: "gpt-5-mini", Turns: []script.Turn{code(`function main(input) {
			return ["bolt-m8", "nut-m8"].map(sku => tools.call("count_stock", {sku})).sort((a, b) => a.stock - b.stock)[0];
		}`)}})
		Expect(k8s.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "openai"}, StringData: map[string]string{"token": credential},
		})).To(Succeed())
		samples := command(ctx, os.Getenv("KUSTOMIZE"), "build", filepath.Join("..", "..", "config", "samples", "agent"))
		samples = strings.ReplaceAll(samples, "http://toolserver:8080", toolURL(""))
		samples = strings.ReplaceAll(samples, "https://api.openai.com/v1", modelServerURL(s.ns))
		kubectlApply(ctx, samples, "-n", s.ns)
		run := succeeds(ctx, &v1alpha1.AgentRun{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "which-runs-out"}})
		Expect(output(run)).To(HaveKeyWithValue("sku", "bolt-m8"))
		Expect(states(run.Status.Execution)).To(Equal([]string{"count_stock Completed", "count_stock Completed"}))
	})
})
