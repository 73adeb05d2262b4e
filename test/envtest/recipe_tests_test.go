package envtest

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// silent is a test whose output must be null, which no field may lose.
func silent(name string) contract.Fixture {
	return contract.Fixture{
		Name: name, Input: []byte(`{"id":9007199254740993}`), Expect: contract.FixtureEnd{Output: []byte(`null`)},
		Calls: []contract.FixtureCall{{Tool: "search", Args: []byte(`{"id":9007199254740993}`), Returns: []byte(`null`)}},
	}
}

// checkPods are the check pods of the namespace.
func (k *kit) checkPods() []corev1.Pod {
	GinkgoHelper()
	var l corev1.PodList
	Expect(admin.List(k.ctx, &l, client.InNamespace(k.ns), client.MatchingLabels{contract.LabelPod: contract.PodOfCheck})).To(Succeed())
	return l.Items
}

// cleanChecks leaves no check pod behind, whose number is bounded in the cluster, and
// no recipe for whose tests a manager of another spec would launch one.
func (k *kit) cleanChecks() {
	DeferCleanup(func(ctx SpecContext) {
		Expect(admin.DeleteAllOf(ctx, &v1alpha1.Recipe{}, client.InNamespace(k.ns))).To(Succeed())
		Expect(admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(k.ns), client.MatchingLabels{contract.LabelPod: contract.PodOfCheck},
			client.GracePeriodSeconds(0))).To(Succeed())
	})
}

// endCheck has a check pod end as a kubelet would tell.
func (k *kit) endCheck(p corev1.Pod, message string) {
	GinkgoHelper()
	p.Status.Phase = corev1.PodSucceeded
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: contract.RuntimeContainer, Image: "x", ImageID: "x",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: message}}}}
	Expect(admin.Status().Update(k.ctx, &p)).To(Succeed())
}

func reportOf(p corev1.Pod, passed int, failed ...contract.FailedTest) string {
	GinkgoHelper()
	return string(must(contract.CheckReport{Check: p.Annotations[v1alpha1.AnnotationCheckDigest], Passed: passed, Failed: failed}.TerminationMessage()))
}

func testsPassed(rcp *v1alpha1.Recipe) string {
	GinkgoHelper()
	c := meta.FindStatusCondition(rcp.Status.Conditions, v1alpha1.ConditionTestsPassed)
	Expect(c).NotTo(BeNil())
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

var _ = Describe("A recipe with tests", func() {
	It("turns Ready when they have passed, and never runs them again", func(ctx SpecContext) {
		k := newKit(ctx)
		k.cleanChecks()
		g := create(k, builders.MakeGrant("search", "search").Obj())
		Expect(k.judge(g).Reason).To(Equal(v1alpha1.ReasonReady))
		rcp := create(k, builders.MakeRecipe("sweep", calling, "search").Tests(silent("a"), silent("b")).Obj())
		Expect(string(rcp.Spec.Tests[0].Expect.Output)).To(Equal("null"))
		Expect(string(rcp.Spec.Tests[0].Input)).To(ContainSubstring("9007199254740993"))
		Expect(k.judge(rcp).Reason).To(Equal(v1alpha1.ReasonRunning))

		pods := k.checkPods()
		Expect(pods).To(HaveLen(1))
		pod := pods[0]
		Expect(pod.Spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
		Expect(pod.Spec.Volumes).To(HaveLen(1), "the admission of ServiceAccounts mounts no token either")
		cm := &corev1.ConfigMap{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(&pod), cm)).To(Succeed())
		Expect(cm.Immutable).To(HaveValue(BeTrue()))
		Expect(metav1.IsControlledBy(cm, &pod)).To(BeTrue())
		check := must(contract.DecodeCheck([]byte(cm.Data[contract.CheckKey]), pod.Annotations[v1alpha1.AnnotationCheckDigest]))
		Expect(check.ManifestDigest).To(Equal(rcp.Status.ManifestDigest))
		Expect(string(check.Tests[0].Expect.Output)).To(Equal("null"))

		By("looking again while they run")
		Expect(k.judge(rcp).Reason).To(Equal(v1alpha1.ReasonRunning))
		Expect(k.checkPods()).To(HaveLen(1))
		k.endCheck(pod, reportOf(pod, 2))
		Expect(k.judge(rcp).Reason).To(Equal(v1alpha1.ReasonReady))
		Expect(testsPassed(rcp)).To(Equal("True Passed: all 2 tests passed"))
		Expect(k.checkPods()).To(HaveLen(1), "the pod goes when the status has what it said")
		k.judge(rcp)
		Expect(k.checkPods()).To(BeEmpty())
		k.judge(rcp)
		Expect(k.checkPods()).To(BeEmpty())

		By("changing a test")
		rcp.Spec.Tests[1].Expect.Output = []byte(`1`)
		Expect(admin.Update(ctx, rcp)).To(Succeed())
		Expect(k.judge(rcp).Reason).To(Equal(v1alpha1.ReasonRunning))
		pod = k.checkPods()[0]
		k.endCheck(pod, reportOf(pod, 1, contract.FailedTest{Index: 1, Message: "the output differs"}))
		c := k.judge(rcp)
		Expect(c.Reason).To(Equal(string(contract.ReasonTestsFailed)))
		Expect(c.Message).To(ContainSubstring(`1 of 2 tests failed: "b" (the output differs)`))
		Expect(rcp.Status.Tests.Results[0]).To(Equal(v1alpha1.RecipeTestResult{Name: "a", Passed: true}))
	})

	It("is followed when a status write or the ConfigMap is lost", func(ctx SpecContext) {
		k := newKit(ctx)
		k.cleanChecks()
		rcp := create(k, builders.MakeRecipe("sweep", echo).Tests(contract.Fixture{Name: "a"}).Obj())
		k.fail = func(verb string, o client.Object) error {
			if verb == "status" {
				return errCrash
			}
			return nil
		}
		for range 3 {
			_, err := k.rcps.Reconcile(ctx, rcp.DeepCopy())
			Expect(err).To(MatchError(errCrash))
		}
		Expect(k.checkPods()).To(HaveLen(1))
		k.fail = nil
		Expect(k.judge(rcp).Reason).To(Equal(v1alpha1.ReasonRunning))
		Expect(rcp.Status.Tests.Attempts).To(Equal(int64(1)))
		Expect(k.checkPods()).To(HaveLen(1))

		By("losing the ConfigMap of the next attempt")
		pod := k.checkPods()[0]
		k.endCheck(pod, "")
		Expect(k.judge(rcp).Reason).To(Equal(v1alpha1.ReasonPending))
		k.step(10 * time.Second)
		k.fail = func(verb string, o client.Object) error {
			if _, cm := o.(*corev1.ConfigMap); cm && verb == "create" {
				return errCrash
			}
			return nil
		}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(rcp), rcp)).To(Succeed())
		_, err := k.rcps.Reconcile(ctx, rcp.DeepCopy())
		Expect(err).To(MatchError(errCrash))
		Expect(k.checkPods()).To(BeEmpty(), "a pod without what it runs is of no use")
		k.fail = nil
		k.step(60 * time.Second)
		Expect(k.judge(rcp).Reason).To(Equal(v1alpha1.ReasonRunning))
		Expect(k.checkPods()).To(HaveLen(1))
	})

	It("says so when its pod is refused, and never takes somebody else's", func(ctx SpecContext) {
		k := newKit(ctx)
		k.cleanChecks()
		quota := create(k, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}})
		quota.Status.Hard = quota.Spec.Hard
		quota.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
		Expect(admin.Status().Update(ctx, quota)).To(Succeed())
		rcp := create(k, builders.MakeRecipe("sweep", echo).Tests(contract.Fixture{Name: "a"}).Obj())
		Eventually(func() string { return k.judge(rcp).Reason }).WithTimeout(20 * time.Second).Should(Equal(string(contract.ReasonQuotaExceeded)))
		Expect(rcp.Status.Tests).To(BeNil())
		Expect(admin.Delete(ctx, quota)).To(Succeed())

		By("finding a pod of the name")
		other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: recipe.CheckName(rcp, rcp.Status.ManifestDigest, 1)}}
		other.Spec = recipe.NewCheckPod(k.rcps.Operator.Runtime, rcp, &recipe.Check{}, 1).Spec
		create(k, other)
		Eventually(func() string { return k.judge(rcp).Message }).WithTimeout(20 * time.Second).Should(ContainSubstring("was not launched for this recipe"))
		Expect(admin.Delete(ctx, other, client.GracePeriodSeconds(0))).To(Succeed())
		Expect(k.judge(rcp).Reason).To(Equal(v1alpha1.ReasonRunning))
	})

	It("is refused by the API server where it is out of bounds, and by the controller where it contradicts itself", func(ctx SpecContext) {
		k := newKit(ctx)
		for what, f := range map[string][]contract.Fixture{
			"no name":      {{}},
			"a long name":  {{Name: strings.Repeat("x", 129)}},
			"a name twice": {{Name: "a"}, {Name: "a"}},
			"a bad tool":   {{Name: "a", Calls: []contract.FixtureCall{{Tool: "a b"}}}},
			"many calls":   {{Name: "a", Calls: make([]contract.FixtureCall, 257)}},
			"many tests":   make([]contract.Fixture, 65),
		} {
			o := builders.MakeRecipe("bad", echo).Tests(f...).Obj()
			o.Namespace, o.UID, o.Generation = k.ns, "", 0
			Expect(admin.Create(ctx, o)).NotTo(Succeed(), what)
		}
		rcp := create(k, builders.MakeRecipe("odd", echo).Tests(contract.Fixture{Name: "odd", Expect: contract.FixtureEnd{Reason: "Perhaps"}}).Obj())
		c := k.judge(rcp)
		Expect(c.Reason).To(Equal(string(contract.ReasonSchemaInvalid)))
		Expect(c.Message).To(ContainSubstring(`spec.tests: test "odd": expect.reason "Perhaps" is none`))
		Expect(k.checkPods()).To(BeEmpty())
	})

	It("waits for a free check pod, and no longer than that", func(ctx SpecContext) {
		k := newKit(ctx)
		k.cleanChecks()
		k.rcps.Operator.RecipeTests.Pods = 1
		a := create(k, builders.MakeRecipe("a", echo).Tests(contract.Fixture{Name: "a"}).Obj())
		b := create(k, builders.MakeRecipe("b", echo).Tests(contract.Fixture{Name: "a"}).Obj())
		Expect(k.judge(a).Reason).To(Equal(v1alpha1.ReasonRunning))
		Expect(k.judge(b).Reason).To(Equal(v1alpha1.ReasonQueued))
		Expect(b.Status.Tests).To(BeNil())
		Expect(recipe.Queued(b)).To(BeTrue())
		pod := k.checkPods()[0]
		k.endCheck(pod, reportOf(pod, 1))
		Expect(k.judge(b).Reason).To(Equal(v1alpha1.ReasonRunning))
		Expect(k.judge(a).Reason).To(Equal(v1alpha1.ReasonReady))
	})
})
