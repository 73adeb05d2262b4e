package envtest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/controllers/status"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// writes counts what the manager writes, by method and path.
type writes struct {
	http.RoundTripper
	mu  sync.Mutex
	all []string
}

func (w *writes) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		w.mu.Lock()
		w.all = append(w.all, r.Method+" "+r.URL.Path)
		w.mu.Unlock()
	}
	return w.RoundTripper.RoundTrip(r)
}

// about returns the writes about one name, or below one resource.
func (w *writes) about(what string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, x := range w.all {
		if strings.Contains(x, what) {
			out = append(out, x)
		}
	}
	return out
}

var _ = Describe("The manager, with no more than its own role", Ordered, func() {
	var (
		k    *kit
		seen = &writes{}
	)

	BeforeAll(func(ctx SpecContext) {
		k = newKit(context.WithoutCancel(ctx))
		role := &rbacv1.ClusterRole{}
		Expect(yaml.Unmarshal(must(os.ReadFile(filepath.Join("..", "..", "config", "rbac", "role.yaml"))), role)).To(Succeed())
		Expect(admin.Create(ctx, role)).To(Succeed())
		Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "manager"}},
		})).To(Succeed())
		user := must(cluster.AddUser(envtest.User{Name: "manager"}, nil))
		mine := user.Config()
		mine.QPS, mine.Burst = 100, 200
		mine.Wrap(func(rt http.RoundTripper) http.RoundTripper { seen.RoundTripper = rt; return seen })
		op := settings.Default()
		op.Runtime.Image = "registry.example/codeact:v0"
		op.CodeAct.AllowNamespaceOverride, op.Recipes.AllowNamespaceOverride = true, true
		run, stop := context.WithCancel(context.WithoutCancel(ctx))
		over := make(chan error, 1)
		go func() {
			over <- controllers.Run(run, mine, controllers.Options{Operator: op, Concurrency: 4, MetricsAddress: "0", ProbeAddress: "0"})
		}()
		DeferCleanup(func(ctx SpecContext) {
			stop()
			Eventually(ctx, over).WithTimeout(30 * time.Second).Should(Receive(BeNil()))
		})
	})

	// until waits for a condition of the run, with all invariants.
	until := func(name string, s metav1.ConditionStatus, reason string) *v1alpha1.AgentRun {
		GinkgoHelper()
		run := &v1alpha1.AgentRun{}
		Eventually(func(g Gomega) {
			run = k.get(name)
			c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
			g.Expect(c).NotTo(BeNil())
			g.Expect(string(c.Status)+" "+c.Reason).To(Equal(string(s)+" "+reason), c.Message)
			g.Expect(status.CheckKstatus(run.Generation, run.Status.ObservedGeneration, run.Status.Conditions, v1alpha1.ConditionSucceeded)).To(Succeed())
		}).WithTimeout(30 * time.Second).WithPolling(50 * time.Millisecond).Should(Succeed())
		return run
	}
	ready := func(o client.Object, reason string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(k.ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
			var conditions []metav1.Condition
			switch o := o.(type) {
			case *v1alpha1.Recipe:
				conditions = o.Status.Conditions
			case *v1alpha1.ToolGrant:
				conditions = o.Status.Conditions
			}
			c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
			g.Expect(c).NotTo(BeNil())
			g.Expect(c.Reason).To(Equal(reason), c.Message)
		}).WithTimeout(30 * time.Second).WithPolling(50 * time.Millisecond).Should(Succeed())
	}

	It("takes a run, its recipe and its grant in any order", func(SpecContext) {
		create(k, builders.MakeRun("first").Recipe("sweep").Input(`{}`).Obj())
		until("first", metav1.ConditionUnknown, "RecipeNotFound")
		create(k, builders.MakeRecipe("sweep", calling, "search").Obj())
		until("first", metav1.ConditionUnknown, "ToolsNotGranted")
		create(k, builders.MakeGrant("search", "search").Obj())
		run := until("first", metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		k.report(run, nil)
		k.report(run, succeed)
		until("first", metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	})

	It("writes four times for a run that succeeds", func(SpecContext) {
		create(k, builders.MakeRun("budget").Recipe("sweep").Input(`{}`).Obj())
		run := until("budget", metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		before := len(seen.about("/" + k.ns + "/"))
		Expect(before).To(BeNumerically(">=", 3))
		k.report(run, nil)
		k.report(run, succeed)
		run = until("budget", metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		Expect(seen.about("/agentruns/budget")).To(HaveLen(2), "launch and end: %v", seen.about("budget"))
		Expect(seen.about("/namespaces/" + k.ns + "/events")).To(BeEmpty())
		create := 0
		for _, x := range seen.about("/" + k.ns + "/") {
			if strings.HasPrefix(x, "POST") {
				create++
			}
		}
		Expect(create).To(Equal(4), "a ConfigMap and a pod for each of two runs")
		Expect(run.Status.Launches).To(Equal(int64(1)))
	})

	It("goes on after an administrator's limits: many runs at once", func(SpecContext) {
		const n = 20
		for i := range n {
			create(k, builders.MakeRun(fmt.Sprintf("many-%d", i)).Code(echo).Obj())
		}
		for i := range n {
			run := until(fmt.Sprintf("many-%d", i), metav1.ConditionUnknown, v1alpha1.ReasonRunning)
			k.report(run, succeed)
		}
		for i := range n {
			until(fmt.Sprintf("many-%d", i), metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		}
	})

	It("launches again, settles and tells when pods are lost", func(SpecContext) {
		create(k, builders.MakeRun("lost").Code(echo).Obj())
		run := until("lost", metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		k.kill(run)
		Eventually(func() int64 { return k.get("lost").Status.Launches }).WithTimeout(30 * time.Second).Should(Equal(int64(2)))
		run = k.get("lost")
		k.report(run, paying(contract.CallDispatched))
		k.kill(run)
		until("lost", metav1.ConditionFalse, "EffectsAmbiguous")
		Eventually(func() []string { return seen.about("/events") }).WithTimeout(30 * time.Second).ShouldNot(BeEmpty())
	})

	It("gives a name to the oldest, and to the next when that goes", func(SpecContext) {
		a := create(k, builders.MakeRecipe("a", echo).ToolName("shared").Obj())
		ready(a, v1alpha1.ReasonReady)
		b := create(k, builders.MakeRecipe("b", echo).ToolName("shared").Obj())
		ready(b, "NameConflict")
		Expect(admin.Delete(k.ctx, a)).To(Succeed())
		ready(b, v1alpha1.ReasonReady)
		g := create(k, builders.MakeGrant("shared", "shared").Obj())
		ready(g, v1alpha1.ReasonReady)
		ready(b, "NameConflict")
		Expect(admin.Delete(k.ctx, g)).To(Succeed())
		ready(b, v1alpha1.ReasonReady)
	})

	It("has runs and recipes follow grants of other namespaces and the labels of their own", func(ctx SpecContext) {
		other := namespace(ctx)
		rcp := create(k, builders.MakeRecipe("abroad", "function main(x) { return tools.call('atlas', x) }", "atlas").Obj())
		ready(rcp, "ToolsNotGranted")
		create(k, builders.MakeRun("abroad").Code(echo, "atlas").StartDeadline(5*time.Minute).Obj())
		until("abroad", metav1.ConditionUnknown, "ToolsNotGranted")
		g := k.elsewhere(other, builders.MakeGrant("atlas", "atlas").AllowedBy(metav1.LabelSelector{MatchLabels: map[string]string{"env": "dev"}}))
		ready(g, v1alpha1.ReasonReady)
		until("abroad", metav1.ConditionUnknown, "ToolsNotGranted")
		k.label("env", "dev")
		run := until("abroad", metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		Expect(k.pinnedTools(run)[0].Grant.Namespace).To(Equal(other))
		ready(rcp, v1alpha1.ReasonReady)

		By("taking the offer back")
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(g), g)).To(Succeed())
		g.Spec.AllowedNamespaces = nil
		Expect(admin.Update(ctx, g)).To(Succeed())
		ready(rcp, "ToolsNotGranted")

		By("offering another one to all")
		create(k, builders.MakeRun("far").Code(echo, "globe").StartDeadline(5*time.Minute).Obj())
		until("far", metav1.ConditionUnknown, "ToolsNotGranted")
		k.elsewhere(other, builders.MakeGrant("globe", "globe").Allowed())
		until("far", metav1.ConditionUnknown, v1alpha1.ReasonRunning)
	})

	It("has recipes follow their grants, also when one expires", func(SpecContext) {
		rcp := create(k, builders.MakeRecipe("timed", "function main(x) { return tools.call('clock', x) }", "clock").Obj())
		ready(rcp, "ToolsNotGranted")
		g := create(k, builders.MakeGrant("clock", "clock").NotAfter(time.Now().Add(3*time.Second)).Obj())
		ready(rcp, v1alpha1.ReasonReady)
		ready(g, "Expired")
		ready(rcp, "ToolsNotGranted")
	})

	It("runs the tests of recipes, four at once, and has runs wait for them", func(SpecContext) {
		k.cleanChecks()
		const n = 6
		var all []*v1alpha1.Recipe
		for i := range n {
			all = append(all, create(k, builders.MakeRecipe(fmt.Sprintf("tested-%d", i), echo).Tests(contract.Fixture{Name: "a"}).Obj()))
		}
		create(k, builders.MakeRun("early").Recipe("tested-0").StartDeadline(5*time.Minute).Input(`{}`).Obj())
		until("early", metav1.ConditionUnknown, "RecipeNotReady")
		ended := map[string]bool{}
		for len(ended) < n {
			var open []corev1.Pod
			Eventually(func(g Gomega) {
				open = nil
				alive := 0
				for _, p := range k.checkPods() {
					if p.Status.Phase == corev1.PodPending && p.DeletionTimestamp == nil {
						alive++
						if !ended[p.Name] {
							open = append(open, p)
						}
					}
				}
				g.Expect(alive).To(BeNumerically("<=", 4))
				g.Expect(len(ended) + alive).To(BeNumerically(">=", min(n, len(ended)+4)))
			}).WithTimeout(30 * time.Second).WithPolling(50 * time.Millisecond).Should(Succeed())
			k.endCheck(open[0], reportOf(open[0], 1))
			ended[open[0].Name] = true
		}
		for _, rcp := range all {
			ready(rcp, v1alpha1.ReasonReady)
			Expect(rcp.Status.Tests.Attempts).To(Equal(int64(1)))
		}
		until("early", metav1.ConditionUnknown, v1alpha1.ReasonRunning)
		Eventually(k.checkPods).WithTimeout(30 * time.Second).Should(BeEmpty())
	})

	It("judges runs that wait, and recipes, again as soon as their namespace is switched", func(SpecContext) {
		rcp := create(k, builders.MakeRecipe("waited", "function main(x) { return tools.call('later', x) }", "later").Obj())
		create(k, builders.MakeRun("waits").Recipe("waited").Input(`{}`).StartDeadline(time.Hour).Obj())
		until("waits", metav1.ConditionUnknown, "ToolsNotGranted")
		enabled := func() string {
			Expect(admin.Get(k.ctx, client.ObjectKeyFromObject(rcp), rcp)).To(Succeed())
			if c := meta.FindStatusCondition(rcp.Status.Conditions, v1alpha1.ConditionEnabled); c != nil {
				return string(c.Status)
			}
			return ""
		}
		Eventually(enabled).WithTimeout(30 * time.Second).Should(Equal("True"))
		k.annotate(v1alpha1.AnnotationRecipesEnabled, "false")
		k.expectDisabled(until("waits", metav1.ConditionFalse, "Disabled"), "recipes is disabled by the annotation")
		Eventually(enabled).WithTimeout(30 * time.Second).Should(Equal("False"))
		k.annotate(v1alpha1.AnnotationRecipesEnabled, unset)
		Eventually(enabled).WithTimeout(30 * time.Second).Should(Equal("True"))
	})

	It("starts no run that comes right after its namespace was switched off", func(SpecContext) {
		for i := range 15 {
			name := fmt.Sprintf("late-%d", i)
			k.annotate(v1alpha1.AnnotationCodeActEnabled, "false")
			create(k, builders.MakeRun(name).Code(echo).Obj())
			k.expectDisabled(until(name, metav1.ConditionFalse, "Disabled"), "disabled by the annotation")

			name = fmt.Sprintf("early-%d", i)
			k.annotate(v1alpha1.AnnotationCodeActEnabled, unset)
			create(k, builders.MakeRun(name).Code(echo).Obj())
			run := until(name, metav1.ConditionUnknown, v1alpha1.ReasonRunning)
			Expect(run.Status.Pinned.CodeAct).To(Equal(&contract.Switch{Enabled: true, From: contract.LayerOperator}))
		}
	})
})
