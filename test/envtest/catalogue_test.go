package envtest

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

var _ = Describe("The catalogue of a run with its own code", func() {
	large := `{"type":"object","description":"` + strings.Repeat("d", 33_000) + `"}`

	// launch has a run with one tool launched, and returns it with its bundle.
	launch := func(k *kit, input, output string) (*v1alpha1.AgentRun, contract.Bundle) {
		GinkgoHelper()
		g := create(k, builders.MakeGrant("search", "search").Schemas(input, output).Obj())
		Expect(k.judge(g).Status).To(Equal(metav1.ConditionTrue))
		create(k, builders.MakeRun("r").Code(calling, "search").Obj())
		run := k.look("r")
		Expect(run.Status.PodName).NotTo(BeEmpty())
		return run, k.bundle(run)
	}

	It("is complete when everything fits, and makes no event", func(ctx SpecContext) {
		k := newKit(ctx)
		run, b := launch(k, `{"type":"object"}`, `{"type":"object"}`)
		c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionCatalogueComplete)
		Expect(c).To(HaveField("Reason", v1alpha1.ReasonFull))
		Expect(b.Catalogue.Step).To(Equal(contract.CatalogueFull))
		Expect(k.events.Events).To(BeEmpty())
	})

	It("steps down to no return schemas, with one event", func(ctx SpecContext) {
		k := newKit(ctx)
		run, b := launch(k, `{"type":"object"}`, large)
		c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionCatalogueComplete)
		Expect(c).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonReturnSchemasOmitted)))
		Expect(b.Catalogue.Step).To(Equal(contract.CatalogueWithoutReturnSchemas))
		Expect(b.Tools).To(HaveLen(1))
		Expect(k.events.Events).To(Receive(HavePrefix("Warning ReturnSchemasOmitted")))
		k.look("r")
		Expect(k.events.Events).To(BeEmpty())
	})

	It("steps down to empty, and no tool is pinned", func(ctx SpecContext) {
		k := newKit(ctx)
		run, b := launch(k, large, `{"type":"object"}`)
		c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionCatalogueComplete)
		Expect(c).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonCatalogueEmpty),
			HaveField("Message", ContainSubstring("name fewer tools"))))
		Expect(b.Catalogue.Step).To(Equal(contract.CatalogueEmpty))
		Expect(b.Tools).To(BeEmpty())
		Expect(run.Status.Pinned.Tools).To(BeEmpty())
		Expect(k.events.Events).To(Receive(HavePrefix("Warning CatalogueEmpty")))
		k.report(run, nil)
		k.report(run, succeed)
		run = k.look("r")
		expectEnd(run, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		Expect(meta.IsStatusConditionFalse(run.Status.Conditions, v1alpha1.ConditionCatalogueComplete)).To(BeTrue())
	})

	It("is not there for a recipe, which is reviewed", func(ctx SpecContext) {
		k := newKit(ctx)
		g := create(k, builders.MakeGrant("search", "search").Schemas(large, large).Obj())
		Expect(k.judge(g).Status).To(Equal(metav1.ConditionTrue))
		Expect(k.judge(create(k, builders.MakeRecipe("sweep", calling, "search").Obj())).Status).To(Equal(metav1.ConditionTrue))
		create(k, builders.MakeRun("r").Recipe("sweep").Input(`{}`).Obj())
		run := k.look("r")
		Expect(meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionCatalogueComplete)).To(BeNil())
		Expect(k.bundle(run).Catalogue).To(BeNil())
		Expect(k.bundle(run).Tools).To(HaveLen(1))
	})
})

var _ = Describe("The constraints of a grant", func() {
	It("are compiled when it is applied, and again when it is mended", func(ctx SpecContext) {
		k := newKit(ctx)
		g := create(k, builders.MakeGrant("search", "search").Constraints(`true`, `run.user == "me"`).Obj())
		c := k.judge(g)
		Expect(c).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", string(contract.ReasonConstraintInvalid)),
			HaveField("Message", ContainSubstring("spec.grant.constraints[1] at 1:4: undefined field 'user'"))))
		Expect(k.events.Events).To(Receive(HavePrefix("Warning ConstraintInvalid")))
		g.Spec.Grant.Constraints[1].Expression = `run.namespace != "x"`
		Expect(admin.Update(ctx, g)).To(Succeed())
		Expect(k.judge(g).Status).To(Equal(metav1.ConditionTrue))
	})
})

// bundle reads what a run is pinned to.
func (k *kit) bundle(run *v1alpha1.AgentRun) contract.Bundle {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	Expect(admin.Get(k.ctx, client.ObjectKey{Namespace: k.ns, Name: run.Status.Pinned.ConfigMap}, cm)).To(Succeed())
	b, err := contract.DecodeBundle([]byte(cm.Data[contract.BundleKey]), run.Status.Pinned.Digest)
	Expect(err).NotTo(HaveOccurred())
	return b
}
