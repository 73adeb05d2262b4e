package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/test/toolserver/tools"
)

// checks are the check pods of the scene, each as it was last seen.
type checks struct {
	mu   sync.Mutex
	seen map[string]*corev1.Pod
}

// watchChecks sees every check pod of the scene, also one that is gone at once.
func (s *scene) watchChecks(ctx context.Context) *checks {
	GinkgoHelper()
	c := &checks{seen: map[string]*corev1.Pod{}}
	w, err := kube.CoreV1().Pods(s.ns).Watch(context.WithoutCancel(ctx), metav1.ListOptions{LabelSelector: contract.LabelPod + "=" + contract.PodOfCheck})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	go func() {
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok && e.Type != watch.Error {
				c.mu.Lock()
				c.seen[p.Name] = p
				c.mu.Unlock()
			}
		}
	}()
	return c
}

func (c *checks) all() []*corev1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []*corev1.Pod{}
	for _, p := range c.seen {
		out = append(out, p)
	}
	return out
}

// recipeIs returns when the recipe's Ready has this status and reason.
func recipeIs(ctx context.Context, r *v1alpha1.Recipe, want string) *v1alpha1.Recipe {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		fresh := &v1alpha1.Recipe{}
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(r), fresh)).To(Succeed())
		c := meta.FindStatusCondition(fresh.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.ObservedGeneration).To(Equal(fresh.Generation))
		g.Expect(string(c.Status)+" "+c.Reason).To(Equal(want), c.Message)
		r = fresh
	}).WithContext(ctx).Should(Succeed())
	return r
}

// noChecks returns when nothing of the tests is left in the scene.
func (s *scene) noChecks(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		pods, err := kube.CoreV1().Pods(s.ns).List(ctx, metav1.ListOptions{LabelSelector: contract.LabelPod + "=" + contract.PodOfCheck})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pods.Items).To(BeEmpty())
		cms, err := kube.CoreV1().ConfigMaps(s.ns).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelRecipeUID})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cms.Items).To(BeEmpty())
	}).WithContext(ctx).Should(Succeed())
}

// lookUp is a program that calls the tool hold, of which only a script answers.
const lookUp = `function main(input) { return tools.call("hold", { id: input.id }).name.trim(); }`

func trims(name, want string) contract.Fixture {
	return contract.Fixture{
		Name: name, Input: []byte(`{"id":7}`), Expect: contract.FixtureEnd{Output: []byte(want)},
		Calls: []contract.FixtureCall{{Tool: "hold", Args: []byte(`{"id":7}`), Returns: []byte(`{"name":" Lamp "}`)}},
	}
}

func tested(toolNames []string, tests ...contract.Fixture) func(*v1alpha1.RecipeSpec) {
	return func(r *v1alpha1.RecipeSpec) { r.Tools, r.Tests = toolNames, tests }
}

func editRecipe(ctx context.Context, r *v1alpha1.Recipe, change func(*v1alpha1.RecipeSpec)) {
	GinkgoHelper()
	base := r.DeepCopy()
	change(&r.Spec)
	Expect(k8s.Patch(ctx, r, client.MergeFrom(base))).To(Succeed())
}

var _ = Describe("the tests of a recipe", Serial, func() {
	It("run once for each manifest, reach no tool, and decide whether it is Ready", func(ctx SpecContext) {
		s := newScene(ctx)
		seen := s.watchChecks(ctx)
		s.grant(ctx, "hold", contract.EffectEffectful, "/hold?name="+s.ns)
		refuses := contract.Fixture{Name: "refuses what has no id", Input: []byte(`"x"`), Expect: contract.FixtureEnd{Reason: contract.ReasonInvalidInput}}
		start := time.Now()
		r := recipeIs(ctx, s.recipe(ctx, "look-up", lookUp, tested([]string{"hold"}, trims("trims", `"Lamp"`), refuses)), "True Ready")
		AddReportEntry("two tests, from apply to Ready", time.Since(start).Round(10*time.Millisecond).String())
		Expect(r.Status.Tests.Passed).To(Equal(int64(2)))
		Expect(seen.all()).To(HaveLen(1))
		s.noChecks(ctx)

		By("looking at the pod that there was")
		pod := seen.all()[0]
		Expect(pod.Spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
		Expect(pod.Spec.Volumes).To(HaveLen(1))
		Expect(pod.Spec.Volumes[0].ConfigMap).NotTo(BeNil())
		Expect(pod.Status.ContainerStatuses[0].State.Terminated.ExitCode).To(BeZero())

		By("changing a test, so that it fails")
		editRecipe(ctx, r, func(spec *v1alpha1.RecipeSpec) { spec.Tests[0].Expect.Output = []byte(`"Desk"`) })
		r = recipeIs(ctx, r, "False TestsFailed")
		c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
		Expect(c.Message).To(Equal(`1 of 2 tests failed: "trims" (the output differs, first at $; want "Desk"; got "Lamp")`))
		Expect(kubectl(ctx, "-n", s.ns, "get", "recipe", "look-up", "-o", "wide")).To(ContainSubstring("TestsFailed"))
		run := waits(ctx, s.run(ctx, "early", ofRecipe("look-up"), input(`{"id":7}`), startDeadline(time.Minute)), string(contract.ReasonRecipeNotReady))
		Expect(seen.all()).To(HaveLen(2))

		By("starting the manager anew")
		s.noChecks(ctx)
		scaleManager(ctx, 0)
		scaleManager(ctx, 1)
		editRecipe(ctx, r, func(spec *v1alpha1.RecipeSpec) { spec.Source = strings.Replace(lookUp, ".name.trim()", `&& "Desk"`, 1) })
		r = recipeIs(ctx, r, "True Ready")
		Expect(seen.all()).To(HaveLen(3), "one for each manifest")
		Expect(r.Status.Tests.Attempts).To(Equal(int64(1)))
		scaleManager(ctx, 0)
		scaleManager(ctx, 1)
		other := recipeIs(ctx, s.recipe(ctx, "plain", `function main() { return 1 }`), "True Ready")
		Expect(meta.FindStatusCondition(other.Status.Conditions, v1alpha1.ConditionTestsPassed).Reason).To(Equal(v1alpha1.ReasonNoTests))
		recipeIs(ctx, r, "True Ready")
		Expect(seen.all()).To(HaveLen(3), "the manager remembers by the status")

		By("running what waited: the first call that reaches the tool")
		Expect(received(ctx, run)).To(BeEmpty())
		Eventually(func() []tools.Received { return received(ctx, run) }).WithContext(ctx).Should(HaveLen(1))
		s.release(ctx)
		Expect(output(succeeds(ctx, run))).To(Equal("Desk"))
	}, SpecTimeout(5*time.Minute))

	It("run in a process without token, without socket, and are followed when it is lost", func(ctx SpecContext) {
		s := newScene(ctx)
		seen := s.watchChecks(ctx)
		slow := contract.Fixture{Name: "slow", Input: []byte(`{}`), Expect: contract.FixtureEnd{Reason: contract.ReasonTimeout}}
		r := s.recipe(ctx, "slow", `function main() { for (;;) {} }`, tested(nil, slow), func(spec *v1alpha1.RecipeSpec) {
			spec.Limits = &contract.Limits{WallClockMs: 15000}
		})
		p := checkProcess(ctx, seen, 1)
		_, err := os.Stat(filepath.Join(string(p), "root", "var/run/secrets"))
		Expect(os.IsNotExist(err)).To(BeTrue(), "%v", err)
		Expect(os.Stat(filepath.Join(string(p), "root", contract.CheckDir, contract.CheckKey))).NotTo(BeNil())
		for _, file := range []string{"tcp", "tcp6", "udp", "udp6"} {
			text, err := os.ReadFile(filepath.Join(string(p), "net", file))
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Count(string(text), "\n")).To(Equal(1), "a socket in %s:\n%s", file, text)
		}

		By("losing it")
		first := seen.all()[0]
		killPod(ctx, s.ns, first.Name)
		recipeIs(ctx, r, "False Pending")
		checkProcess(ctx, seen, 2)
		r = recipeIs(ctx, r, "True Ready")
		Expect(r.Status.Tests.Attempts).To(Equal(int64(2)))
		Expect(seen.all()).To(HaveLen(2))
		s.noChecks(ctx)
	}, SpecTimeout(4*time.Minute))
})

// checkProcess finds the process of the n-th check pod of a scene: its environment
// has the digest, and its arguments say check.
func checkProcess(ctx context.Context, seen *checks, n int) (found process) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		pods := seen.all()
		g.Expect(pods).To(HaveLen(n))
		slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
		g.Expect(pods[n-1].Status.Phase).To(Equal(corev1.PodRunning))
		want := []byte(fmt.Sprintf("%s=%s\x00", contract.EnvCheckDigest, pods[n-1].Annotations[v1alpha1.AnnotationCheckDigest]))
		dirs, err := filepath.Glob("/proc/[0-9]*")
		g.Expect(err).NotTo(HaveOccurred())
		for _, dir := range dirs {
			env, _ := os.ReadFile(filepath.Join(dir, "environ"))
			args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			if bytes.Contains(env, want) && bytes.HasSuffix(args, []byte("\x00"+contract.CheckCommand+"\x00")) {
				found = process(dir)
				return
			}
		}
		g.Expect(found).NotTo(BeEmpty(), "no process has the digest")
	}).WithContext(ctx).Should(Succeed())
	return found
}
