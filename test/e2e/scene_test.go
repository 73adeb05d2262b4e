package e2e

import (
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/codeact-dev/codeact-operator/test/toolserver/tools"
)

// credential is what the tool server's /auth expects.
const credential = "e2e-expected-credential"

// scene is a namespace of its own for one spec, under the restricted Pod
// Security profile.
type scene struct{ ns string }

func newScene(ctx context.Context) *scene {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "codeact-e2e-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	Expect(k8s.Create(ctx, ns)).To(Succeed())
	s := &scene{ns: ns.Name}
	DeferCleanup(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			AddReportEntry("runs", kubectl(ctx, "-n", s.ns, "get", "agentruns,recipes,toolgrants,pods", "-o", "yaml"))
			AddReportEntry("events", kubectl(ctx, "-n", s.ns, "get", "events"))
		}
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, ns))).To(Succeed())
	})
	return s
}

func toolURL(path string) string {
	return "http://toolserver." + toolsNamespace + ".svc.cluster.local:8080" + path
}

// grant lets every run of the scene call a tool of the tool server.
func (s *scene) grant(ctx context.Context, tool string, effect contract.Effect, path string, edits ...func(*v1alpha1.ToolGrantSpec)) *v1alpha1.ToolGrant {
	GinkgoHelper()
	g := &v1alpha1.ToolGrant{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: tool}}
	g.Spec.Tool = v1alpha1.ToolDeclaration{Name: tool, Effect: effect}
	g.Spec.Backend.HTTP = &v1alpha1.HTTPBackend{URL: toolURL(path)}
	for _, e := range edits {
		e(&g.Spec)
	}
	Expect(k8s.Create(ctx, g)).To(Succeed())
	return g
}

func timeout(d time.Duration) func(*v1alpha1.ToolGrantSpec) {
	return func(g *v1alpha1.ToolGrantSpec) { g.Grant.Timeout = &metav1.Duration{Duration: d} }
}

// capability asks for a capability and grants it.
func capability(c string) func(*v1alpha1.ToolGrantSpec) {
	return func(g *v1alpha1.ToolGrantSpec) {
		if g.Tool.Dependencies == nil {
			g.Tool.Dependencies = &v1alpha1.ToolDependencies{}
		}
		g.Tool.Dependencies.Capabilities = append(g.Tool.Dependencies.Capabilities, c)
		g.Grant.Capabilities = append(g.Grant.Capabilities, c)
	}
}

// recipe creates a Recipe named name.
func (s *scene) recipe(ctx context.Context, name, source string, edits ...func(*v1alpha1.RecipeSpec)) *v1alpha1.Recipe {
	GinkgoHelper()
	r := &v1alpha1.Recipe{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	r.Spec.Source = source
	for _, e := range edits {
		e(&r.Spec)
	}
	Expect(k8s.Create(ctx, r)).To(Succeed())
	return r
}

// code submits a program of the run's own. Tools that are not granted are not
// waited for.
func (s *scene) code(ctx context.Context, source string, toolNames []string, edits ...func(*v1alpha1.AgentRunSpec)) *v1alpha1.AgentRun {
	GinkgoHelper()
	return s.run(ctx, "run", append([]func(*v1alpha1.AgentRunSpec){func(r *v1alpha1.AgentRunSpec) {
		r.Code = &v1alpha1.CodeSpec{Source: source, Tools: toolNames}
	}}, edits...)...)
}

// run submits an AgentRun.
func (s *scene) run(ctx context.Context, name string, edits ...func(*v1alpha1.AgentRunSpec)) *v1alpha1.AgentRun {
	GinkgoHelper()
	r := &v1alpha1.AgentRun{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	for _, e := range edits {
		e(&r.Spec)
	}
	Expect(k8s.Create(ctx, r)).To(Succeed())
	return r
}

func ofRecipe(name string) func(*v1alpha1.AgentRunSpec) {
	return func(r *v1alpha1.AgentRunSpec) { r.Recipe = &v1alpha1.RecipeReference{Name: name} }
}

func input(json string) func(*v1alpha1.AgentRunSpec) {
	return func(r *v1alpha1.AgentRunSpec) { r.Input = &apiextensionsv1.JSON{Raw: []byte(json)} }
}

func startDeadline(d time.Duration) func(*v1alpha1.AgentRunSpec) {
	return func(r *v1alpha1.AgentRunSpec) { r.StartDeadline = &metav1.Duration{Duration: d} }
}

func runTimeout(d time.Duration) func(*v1alpha1.AgentRunSpec) {
	return func(r *v1alpha1.AgentRunSpec) { r.Timeout = &metav1.Duration{Duration: d} }
}

// get reads the run again.
func get(ctx context.Context, r *v1alpha1.AgentRun) *v1alpha1.AgentRun {
	GinkgoHelper()
	fresh := &v1alpha1.AgentRun{}
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(r), fresh)).To(Succeed())
	return fresh
}

// edit changes the spec of a run.
func edit(ctx context.Context, r *v1alpha1.AgentRun, change func(*v1alpha1.AgentRunSpec)) *v1alpha1.AgentRun {
	GinkgoHelper()
	fresh := get(ctx, r)
	base := fresh.DeepCopy()
	change(&fresh.Spec)
	Expect(k8s.Patch(ctx, fresh, client.MergeFrom(base))).To(Succeed())
	return fresh
}

func succeededOf(r *v1alpha1.AgentRun) metav1.Condition {
	if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionSucceeded); c != nil {
		return *c
	}
	return metav1.Condition{Status: metav1.ConditionUnknown}
}

// waits returns when the run is Unknown for this reason.
func waits(ctx context.Context, r *v1alpha1.AgentRun, reason string) *v1alpha1.AgentRun {
	GinkgoHelper()
	Eventually(func() string {
		r = get(ctx, r)
		c := succeededOf(r)
		return string(c.Status) + " " + c.Reason
	}).WithContext(ctx).Should(Equal("Unknown " + reason))
	return r
}

// succeeds returns when the run has succeeded.
func succeeds(ctx context.Context, r *v1alpha1.AgentRun) *v1alpha1.AgentRun {
	GinkgoHelper()
	return ends(ctx, r, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}

// fails returns when the run has failed for this reason.
func fails(ctx context.Context, r *v1alpha1.AgentRun, reason contract.Reason) *v1alpha1.AgentRun {
	GinkgoHelper()
	return ends(ctx, r, metav1.ConditionFalse, string(reason))
}

func ends(ctx context.Context, r *v1alpha1.AgentRun, status metav1.ConditionStatus, reason string) *v1alpha1.AgentRun {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		r = get(ctx, r)
		c := succeededOf(r)
		g.Expect(c.Status).NotTo(Equal(metav1.ConditionUnknown), "%s: %s", c.Reason, c.Message)
	}).WithContext(ctx).Should(Succeed())
	c := succeededOf(r)
	Expect(string(c.Status)+" "+c.Reason).To(Equal(string(status)+" "+reason), c.Message)
	Expect(c.ObservedGeneration).To(Equal(r.Generation))
	Expect(r.Status.ObservedGeneration).To(Equal(r.Generation))
	Expect(meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReconciling)).To(BeNil())
	Expect(meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionStalled)).To(Equal(status == metav1.ConditionFalse))
	return r
}

// output decodes the output of a run that succeeded.
func output(r *v1alpha1.AgentRun) any {
	GinkgoHelper()
	Expect(r.Status.Output).NotTo(BeNil())
	var v any
	Expect(json.Unmarshal(r.Status.Output.Raw, &v)).To(Succeed())
	return v
}

// states are the states of the journal's calls, in order.
func states(e *contract.Execution) []string {
	GinkgoHelper()
	Expect(e).NotTo(BeNil())
	out := []string{}
	for _, c := range e.Calls {
		out = append(out, fmt.Sprintf("%s %s", c.Tool, c.State))
	}
	return out
}

// received is what the tool server got from the run.
func received(ctx context.Context, r *v1alpha1.AgentRun) []tools.Received {
	GinkgoHelper()
	raw, err := kube.CoreV1().Services(toolsNamespace).
		ProxyGet("http", "toolserver", "8080", "/log", map[string]string{"prefix": string(r.UID) + ":"}).DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	var calls []tools.Received
	Expect(json.Unmarshal(raw, &calls)).To(Succeed())
	return calls
}

func keys(calls []tools.Received) []string {
	out := []string{}
	for _, c := range calls {
		out = append(out, c.Key)
	}
	return out
}

func callID(r *v1alpha1.AgentRun, generation, seq int) string {
	return fmt.Sprintf("%s:%d:%d", r.UID, generation, seq)
}

// held grants a tool that answers only when it is released, and a run that calls it.
func (s *scene) held(ctx context.Context, effect contract.Effect, edits ...func(*v1alpha1.AgentRunSpec)) *v1alpha1.AgentRun {
	GinkgoHelper()
	s.grant(ctx, "hold", effect, "/hold?name="+s.ns, timeout(2*time.Minute))
	r := s.code(ctx, `function main(input) { return tools.call("hold", {input}) }`, []string{"hold"},
		append([]func(*v1alpha1.AgentRunSpec){func(r *v1alpha1.AgentRunSpec) {
			r.Limits = &contract.Limits{WallClockMs: 30000}
		}}, edits...)...)
	Eventually(func() []tools.Received { return received(ctx, r) }).WithContext(ctx).Should(HaveLen(1))
	return get(ctx, r)
}

// release lets the scene's held calls, and all later ones, be answered.
func (s *scene) release(ctx context.Context) {
	GinkgoHelper()
	_, err := kube.CoreV1().RESTClient().Post().Namespace(toolsNamespace).Resource("services").Name("http:toolserver:8080").
		SubResource("proxy").Suffix("release").Param("name", s.ns).DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
}

// pods of a run, whatever became of them.
func pods(ctx context.Context, r *v1alpha1.AgentRun) []corev1.Pod {
	GinkgoHelper()
	list, err := kube.CoreV1().Pods(r.Namespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelRunUID + "=" + string(r.UID)})
	Expect(err).NotTo(HaveOccurred())
	return list.Items
}

// killPod deletes a pod at once, as a lost node would.
func killPod(ctx context.Context, namespace, name string) types.UID {
	GinkgoHelper()
	pod, err := kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	now := int64(0)
	Expect(kube.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})).To(Succeed())
	return pod.UID
}
