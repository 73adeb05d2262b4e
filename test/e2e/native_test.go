package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/test/modelserver/script"
)

// calls is an answer that calls native tools: a name, then its arguments.
func calls(pairs ...string) script.Turn {
	t := turn("")
	for i := 0; i < len(pairs); i += 2 {
		t.ToolCalls = append(t.ToolCalls, script.ToolCall{Name: pairs[i], Arguments: pairs[i+1]})
	}
	return t
}

// runs are the arguments of run_code with the program.
func runs(program string) string {
	text, _ := json.Marshal(map[string]string{"source": program})
	return string(text)
}

// native submits a run whose model is offered native tools.
func (s *scene) native(ctx context.Context, turns []script.Turn, edits ...func(*v1alpha1.AgentSpec)) *v1alpha1.AgentRun {
	GinkgoHelper()
	s.model(ctx, turns)
	s.script(ctx, script.Script{Turns: turns, Model: "scripted", System: []string{"run_code"}})
	return s.agent(ctx, append([]func(*v1alpha1.AgentSpec){func(a *v1alpha1.AgentSpec) { a.Protocol = contract.ProtocolTools }}, edits...)...)
}

// transcript is what is stored of the run's.
func (s *scene) transcript(ctx context.Context, run *v1alpha1.AgentRun) []byte {
	GinkgoHelper()
	ref := run.Status.Execution.Transcript
	Expect(ref).NotTo(BeNil())
	cm, err := kube.CoreV1().ConfigMaps(s.ns).Get(ctx, ref.ConfigMap, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return cm.BinaryData[contract.TranscriptKey]
}

// printed is the run's transcript as codeact prints it.
func (s *scene) printed(ctx context.Context, run *v1alpha1.AgentRun) string {
	GinkgoHelper()
	binary := filepath.Join(GinkgoT().TempDir(), "codeact")
	command(ctx, "go", "build", "-o", binary, "../../cmd/codeact")
	text := command(ctx, binary, "transcript", run.Name, "-n", s.ns, "--kubeconfig", os.Getenv("KUBECONFIG"))
	AddReportEntry("transcript", text)
	return text
}

func approval(g *v1alpha1.ToolGrantSpec) { g.Grant.Approval = contract.ApprovalRequired }

// bind gives a user one of the cluster's roles in the scene.
func (s *scene) bind(ctx context.Context, user, role string) {
	GinkgoHelper()
	Expect(k8s.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: user + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
}

// answer writes an answer to a call that waits, as the user.
func (s *scene) answer(ctx context.Context, user string, r v1alpha1.Resolution) (string, error) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"resolutions": []v1alpha1.Resolution{r}}})
	Expect(err).NotTo(HaveOccurred())
	out, err := exec.CommandContext(ctx, os.Getenv("CODEACT_CLUSTER"), "kubectl", "-n", s.ns, "--as", user,
		"patch", "agentrun", "run", "--type=merge", "-p", string(patch)).CombinedOutput()
	return string(out), err
}

var _ = Describe("an agent with native tools", func() {
	var s *scene
	BeforeEach(func(ctx SpecContext) {
		s = newScene(ctx)
		s.grant(ctx, "t", contract.EffectIdempotent, "/echo")
	})

	It("is offered run_code, recipes and tools, all through one broker", func(ctx SpecContext) {
		s.recipe(ctx, "sum", `function main(input) { tools.call("t", {from: "sum"}); return input.a + input.b }`, func(r *v1alpha1.RecipeSpec) {
			r.Tools = []string{"t"}
			r.InputSchema = &apiextensionsv1.JSON{Raw: []byte(`{"type":"object","required":["a","b"]}`)}
		})
		run := succeeds(ctx, s.native(ctx, []script.Turn{
			calls("run_code", runs(`function main() { tools.call("t", {from: "code"}); return 4 }`), "sum", `{"a":1}`),
			calls("sum", `{"a":1,"b":2}`, "t", `{"from":"model"}`),
			turn("It is 3."),
		}, func(a *v1alpha1.AgentSpec) { a.Recipes = []string{"sum"} }))
		Expect(output(run)).To(Equal("It is 3."))
		Expect(steps(run)).To(Equal([]string{"Tools", "Tools", "Final"}))
		Expect(states(run.Status.Execution)).To(Equal([]string{"t Completed", "t Completed", "t Completed"}))
		Expect(keys(received(ctx, run))).To(Equal([]string{callID(run, 1, 1), callID(run, 1, 2), callID(run, 1, 3)}))
		Expect(run.Status.Execution.Steps[0].Tools).To(ConsistOf(
			HaveField("Name", "run_code"), And(HaveField("Name", "sum"), HaveField("Reason", string(contract.ReasonInvalidArguments)))))

		asked := s.asked(ctx)
		Expect(asked).To(HaveLen(3))
		for _, a := range asked {
			Expect(a.Problem).To(BeEmpty())
			Expect(string(a.Body)).To(And(ContainSubstring(`"name":"run_code"`), ContainSubstring(`"name":"sum"`), ContainSubstring(`"name":"t"`)))
		}
		s.credentialNowhere(ctx, run)

		var said []contract.EventType
		Expect(contract.VerifyTranscript(bytes.NewReader(s.transcript(ctx, run)),
			contract.TranscriptOrigin{RunUID: string(run.UID), Generation: 1, BundleDigest: run.Status.Pinned.Digest}, *run.Status.Execution.Transcript,
			func(_ []byte, e contract.Event) error { said = append(said, e.Type); return nil })).To(Succeed())
		Expect(said).To(ContainElements(contract.EventExecutionStarted, contract.EventModelAnswered, contract.EventToolStarted,
			contract.EventToolFinished, contract.EventFinal, contract.EventExecutionFinished))
	})

	It("is printed with what it said, once every record holds", func(ctx SpecContext) {
		run := succeeds(ctx, s.native(ctx, []script.Turn{calls("t", `{"from":"model"}`), turn("It is done.")}))
		Expect(s.printed(ctx, run)).To(And(ContainSubstring("do it"), ContainSubstring(`{"from":"model"}`), ContainSubstring("It is done.")))
	})

	It("is printed with the programs that it wrote, where it writes all of them", func(ctx SpecContext) {
		s.model(ctx, []script.Turn{
			code(`function main(input) { return input.missing.field }`),
			code(`function main(input) { tools.call("t", {from: "code"}); return {found: 7} }`, after("CODE_ERROR: ")),
		})
		run := succeeds(ctx, s.agent(ctx))
		Expect(s.printed(ctx, run)).To(And(ContainSubstring("input.missing.field"), ContainSubstring(`{"from":"code"}`), ContainSubstring(`{"found":7}`)))
	})

	It("keeps no contents, where that is asked for", func(ctx SpecContext) {
		s.model(ctx, []script.Turn{code(`function main(input) { return tools.call("t", {private: "argument"}) }`)})
		run := succeeds(ctx, s.run(ctx, "run", func(r *v1alpha1.AgentRunSpec) {
			r.Transcript = contract.TranscriptNone
			r.Agent = &v1alpha1.AgentSpec{Model: "gpt", Prompt: "private prompt", Tools: []string{"t"}}
		}))
		Expect(run.Status.Execution.Transcript).To(BeNil())
		Expect(kubectl(ctx, "-n", s.ns, "logs", run.Status.PodName)).To(And(ContainSubstring("execution.finished"), Not(ContainSubstring("private"))))
		Expect(kubectl(ctx, "-n", s.ns, "get", "configmaps", "-o", "name")).NotTo(ContainSubstring("-transcript"))
	})

	It("goes on when a tool fails, and is told", func(ctx SpecContext) {
		s.grant(ctx, "bad", contract.EffectReadOnly, "/fail?status=404")
		run := succeeds(ctx, s.native(ctx, []script.Turn{calls("bad", `{}`, "nobody", `{}`), turn("There is none.")},
			func(a *v1alpha1.AgentSpec) { a.Tools = []string{"bad"} }))
		Expect(output(run)).To(Equal("There is none."))
		Expect(string(s.asked(ctx)[1].Body)).To(And(ContainSubstring("ToolFailed"), ContainSubstring("ToolNotAllowed")))
	})
})

var _ = Describe("a call that needs an answer", func() {
	var s *scene
	BeforeEach(func(ctx SpecContext) {
		s = newScene(ctx)
		s.grant(ctx, "t", contract.EffectEffectful, "/echo", approval)
		s.bind(ctx, "tenant", "edit")
		s.bind(ctx, "boss", "codeact-approver")
	})

	// parked returns when the run waits, with the one call that it waits for.
	parked := func(ctx context.Context, run *v1alpha1.AgentRun, reason string) (*v1alpha1.AgentRun, contract.Pending) {
		GinkgoHelper()
		run = waits(ctx, run, reason)
		Expect(run.Status.Pending).To(HaveLen(1))
		return run, run.Status.Pending[0]
	}

	It("waits for an approver, and for nobody else", func(ctx SpecContext) {
		run, p := parked(ctx, s.native(ctx, []script.Turn{calls("t", `{"amount":5}`), turn("paid")}), v1alpha1.ReasonAwaitingApproval)
		Expect(p.Tool).To(Equal("t"))
		Expect(p.Arguments).To(MatchJSON(`{"amount":5}`))
		Expect(received(ctx, run)).To(BeEmpty())

		out, err := s.answer(ctx, "tenant", v1alpha1.Resolution{ID: p.ID, Decision: contract.DecisionApprove, By: "tenant"})
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("agentruns/approve"))
		_, err = s.answer(ctx, "boss", v1alpha1.Resolution{ID: p.ID, Decision: contract.DecisionApprove, By: "tenant"})
		Expect(err).To(HaveOccurred(), "an answer in another's name")
		Expect(get(ctx, run).Spec.Resolutions).To(BeEmpty())

		out, err = s.answer(ctx, "boss", v1alpha1.Resolution{ID: p.ID, Decision: contract.DecisionApprove, By: "boss"})
		Expect(err).NotTo(HaveOccurred(), out)
		run = succeeds(ctx, run)
		Expect(output(run)).To(Equal("paid"))
		Expect(keys(received(ctx, run))).To(Equal([]string{callID(run, 1, 1)}))
		Expect(run.Status.ExecutionGeneration).To(BeEquivalentTo(1), "an answer starts nothing")
		Expect(run.Status.Pending).To(BeEmpty())
	})

	It("is not made when it is denied, and the run goes on", func(ctx SpecContext) {
		run, p := parked(ctx, s.native(ctx, []script.Turn{calls("t", `{}`), turn("not paid")}), v1alpha1.ReasonAwaitingApproval)
		out, err := s.answer(ctx, "boss", v1alpha1.Resolution{ID: p.ID, Decision: contract.DecisionDeny, By: "boss"})
		Expect(err).NotTo(HaveOccurred(), out)
		run = succeeds(ctx, run)
		Expect(received(ctx, run)).To(BeEmpty())
		Expect(states(run.Status.Execution)).To(Equal([]string{"t Abandoned"}))
		Expect(run.Status.Execution.Calls[0].Reason).To(Equal(contract.ReasonApprovalRequired))
	})

	It("takes its result from the answer, where it is deferred", func(ctx SpecContext) {
		s.grant(ctx, "ask", contract.EffectReadOnly, "/echo", func(g *v1alpha1.ToolGrantSpec) { g.Tool.Deferred = true })
		run, p := parked(ctx, s.native(ctx, []script.Turn{calls("ask", `{"q":1}`), turn("heard")},
			func(a *v1alpha1.AgentSpec) { a.Tools = []string{"ask"} }), v1alpha1.ReasonAwaitingResult)
		out, err := s.answer(ctx, "boss", v1alpha1.Resolution{
			ID: p.ID, Decision: contract.DecisionApprove, By: "boss", Result: &apiextensionsv1.JSON{Raw: []byte(`{"said":"yes"}`)},
		})
		Expect(err).NotTo(HaveOccurred(), out)
		run = succeeds(ctx, run)
		Expect(received(ctx, run)).To(BeEmpty())
		Expect(string(s.asked(ctx)[1].Body)).To(ContainSubstring(`said`))
	})

	It("ends with the run that is cancelled", func(ctx SpecContext) {
		run, _ := parked(ctx, s.native(ctx, []script.Turn{calls("t", `{}`)}), v1alpha1.ReasonAwaitingApproval)
		edit(ctx, run, cancel)
		run = fails(ctx, run, contract.ReasonCancelled)
		Expect(received(ctx, run)).To(BeEmpty())
		Expect(run.Status.Pending).To(BeEmpty())
	})

	It("is refused to programs, and nobody is asked", func(ctx SpecContext) {
		run := succeeds(ctx, s.native(ctx, []script.Turn{
			calls("run_code", runs(`function main() { return tools.call("t", {}) }`)), turn("refused"),
		}))
		Expect(received(ctx, run)).To(BeEmpty())
		Expect(string(s.asked(ctx)[1].Body)).To(ContainSubstring("ToolNotAllowed"))
	})
})

var _ = Describe("the sample of an agent with native tools", func() {
	It("waits for the approval of its order, and ends", func(ctx SpecContext) {
		s := newScene(ctx)
		s.bind(ctx, "boss", "codeact-approver")
		s.script(ctx, script.Script{
			Model: "gpt-5-mini", WantTools: []string{"run_code", "scarcest", "count_stock", "order_parts"},
			Turns: []script.Turn{
				calls("scarcest", `{"skus":["bolt-m8","nut-m8"]}`), calls("order_parts", `{"sku":"bolt-m8","quantity":100}`), turn("Ordered."),
			},
		})
		Expect(k8s.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "openai"}, StringData: map[string]string{"token": credential},
		})).To(Succeed())
		model, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", "agent", "model.yaml"))
		Expect(err).NotTo(HaveOccurred())
		samples := string(model) + "---\n" + command(ctx, os.Getenv("KUSTOMIZE"), "build", filepath.Join("..", "..", "config", "samples", "agent-tools"))
		samples = strings.ReplaceAll(samples, "http://toolserver:8080", toolURL(""))
		samples = strings.ReplaceAll(samples, "https://api.openai.com/v1", modelServerURL(s.ns))
		kubectlApply(ctx, samples, "-n", s.ns)

		run := waits(ctx, &v1alpha1.AgentRun{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "restock"}}, v1alpha1.ReasonAwaitingApproval)
		binary := filepath.Join(GinkgoT().TempDir(), "codeact")
		command(ctx, "go", "build", "-o", binary, "../../cmd/codeact")
		to := []string{"-n", s.ns, "--kubeconfig", os.Getenv("KUBECONFIG"), "--as", "boss"}
		Expect(command(ctx, binary, append([]string{"pending"}, to...)...)).To(ContainSubstring(`"quantity":100`))
		command(ctx, binary, append([]string{"approve", "restock"}, to...)...)
		run = succeeds(ctx, run)
		Expect(output(run)).To(Equal("Ordered."))
		Expect(states(run.Status.Execution)).To(Equal([]string{"count_stock Completed", "count_stock Completed", "order_parts Completed"}))
		Expect(received(ctx, run)).To(HaveLen(3))
	})
})
