package policy

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/runtime/report"
	"github.com/codeact-dev/codeact-operator/runtime/run"
	"github.com/codeact-dev/codeact-operator/sandbox"
	"github.com/codeact-dev/codeact-operator/test/builders"
	"github.com/codeact-dev/codeact-operator/test/modelserver/script"
	"github.com/codeact-dev/codeact-operator/test/toolserver/tools"
)

// scene is the run of an agent whose pod is this process: what the controller
// pins, executed by the runtime itself with the token of the pod.
type scene struct {
	*stage
	op       settings.Operator
	snapshot agentrun.Snapshot
	pin      *agentrun.Pin
	model    *script.Server
}

func newScene(ctx SpecContext, turns ...script.Turn) *scene {
	GinkgoHelper()
	s := &scene{stage: newStage(ctx), op: settings.Default(), model: script.New(script.Config{})}
	s.op.Egress.AllowLoopback, s.op.Runtime.Image = true, "registry.example/codeact:v0"
	s.model.Play("gpt", script.Script{Turns: turns})
	model, tool := httptest.NewServer(s.model), httptest.NewServer(tools.New(tools.Config{}))
	DeferCleanup(model.Close)
	DeferCleanup(tool.Close)
	grant := func(g *builders.Grant) []v1alpha1.ToolGrant {
		return []v1alpha1.ToolGrant{*g.In(s.ns).Ready("", "").Obj()}
	}
	s.run = builders.MakeRun("agent").In(s.ns).UID("").Agent("gpt", "Order what is missing.", "order").Obj()
	s.run.Generation = 0
	Expect(admin.Create(ctx, s.run)).To(Succeed())
	s.snapshot = agentrun.Snapshot{
		Now: time.Now(), Run: s.run.DeepCopy(),
		Models: grant(builders.MakeGrant("gpt", "gpt-5").Model(model.URL+"/s/gpt/v1", "scripted")),
		Grants: grant(builders.MakeGrant("order", "order").Effect(contract.EffectIdempotent).HTTP(func(h *v1alpha1.HTTPBackend) { h.URL = tool.URL + "/order" })),
	}
	p := agentrun.Decide(s.op, s.snapshot)
	Expect(p.Verb).To(Equal(agentrun.VerbLaunch), p.Message)
	s.pin = p.Pin
	var err error
	s.pod, err = manager().CoreV1().Pods(s.ns).Create(ctx, agentrun.NewPod(s.op.Runtime, s.run, s.pin), metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	s.run.Status = agentrun.Settle(s.op, s.snapshot, p, agentrun.Done{Pinned: true, Launched: true})
	Expect(admin.Status().Update(ctx, s.run)).To(Succeed())
	s.token = s.tokenFor(ctx, s.pod)
	return s
}

// live lives through the pod and returns its exit code with the run behind it.
func (s *scene) live(ctx SpecContext, stop <-chan struct{}) (int, *v1alpha1.AgentRun) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(sandbox.Precompile(ctx, dir)).To(Succeed())
	path := filepath.Join(dir, contract.BundleKey)
	Expect(os.WriteFile(path, s.pin.Raw, 0o600)).To(Succeed())
	var log bytes.Buffer
	code := run.Run(ctx, run.Config{
		BundlePath: path, BundleDigest: s.pin.Digest, Pod: report.Pod{Name: s.pod.Name, UID: string(s.pod.UID)},
		TerminationPath: path + ".end", CacheDir: dir,
		API: func() (*rest.Config, error) {
			c := rest.AnonymousClientConfig(cfg)
			c.BearerToken = s.token
			return c, nil
		},
		Events: GinkgoWriter, Log: &log, Now: time.Now, Stop: stop, ReportFor: bound,
	})
	Expect(log.String()).To(BeEmpty())
	after := &v1alpha1.AgentRun{}
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(s.run), after)).To(Succeed())
	return code, after
}

// settled is how the controller judges the run once its pod has ended.
func (s *scene) settled(after *v1alpha1.AgentRun) *metav1.Condition {
	x := s.snapshot
	x.Run, x.Pod, x.Pin = after, s.pod.DeepCopy(), s.pin.ConfigMap(after)
	x.Pod.Status.Phase = corev1.PodSucceeded
	st := agentrun.Settle(s.op, x, agentrun.Decide(s.op, x), agentrun.Done{})
	return meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionSucceeded)
}

func writes(source string) script.Turn {
	b, _ := json.Marshal(map[string]string{"type": "code", "language": "javascript", "code": source}) // of strings
	return script.Turn{Text: string(b), Usage: &script.Usage{InputTokens: 10, OutputTokens: 2}}
}

var _ = Describe("a run of an agent under the policies", func() {
	It("claims, keeps its journal and reports with the token of its pod", func(ctx SpecContext) {
		s := newScene(ctx,
			writes(`function main(){throw new Error("not like this")}`),
			writes(`function main(){return tools.call("order",{sku:"bolt-m8",quantity:8}).id}`))
		code, after := s.live(ctx, nil)
		Expect(code).To(Equal(run.ExitSucceeded))
		e := after.Status.Execution
		Expect(e.Output).To(Equal(`"order-0001"`))
		Expect(e.Steps).To(HaveLen(2))
		Expect(e.Steps[0].Reason).To(Equal(string(contract.ReasonJavaScriptError)))
		Expect(e.Calls).To(HaveExactElements(And(HaveField("Tool", "order"), HaveField("State", contract.CallCompleted))))
		Expect(e.Usage.InputTokens).To(BeEquivalentTo(20))
		Expect(e.Claim.PodUID).To(Equal(string(s.pod.UID)))
		Expect(s.settled(after)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", string(v1alpha1.ReasonSucceeded))))
	})

	It("says that it was cancelled while its model was asked", func(ctx SpecContext) {
		turn := writes(`function main(){return 1}`)
		turn.Hold = "gate"
		s := newScene(ctx, turn)
		stop := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(stop)
			Eventually(func() int { return len(s.model.Log("gpt")) }).WithTimeout(bound).Should(Equal(1))
			_, err := tenant().runs(s.ns).Patch(ctx, s.run.Name, "application/merge-patch+json", []byte(`{"spec":{"cancel":true}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
		}()
		code, after := s.live(ctx, stop)
		Expect(code).To(Equal(run.ExitFailed))
		Expect(after.Status.Execution.Error).To(HaveField("Reason", contract.ReasonCancelled))
		Expect(s.settled(after)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", string(contract.ReasonCancelled))))
	})
})
