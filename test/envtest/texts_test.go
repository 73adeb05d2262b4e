package envtest

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

const referred = "  sourceFrom: {configMapKeyRef: {name: code, key: main.js}}\n"

var _ = Describe("A recipe with texts in ConfigMaps", func() {
	DescribeTable("is refused by the API server", func(ctx SpecContext, spec, want string) {
		err := admin.Create(ctx, object(namespace(ctx), "Recipe", "r", spec), client.FieldValidation("Strict"))
		Expect(err).To(MatchError(ContainSubstring(want)))
	},
		Entry("with two sources", okRecipe+referred, "exactly one of spec.source"),
		Entry("without a digest", referred, "set spec.sourceDigest"),
		Entry("with two schemas", okRecipe+"  inputSchema: {}\n  inputSchemaFrom: {configMapKeyRef: {name: a, key: b}}\n", "at most one of spec.inputSchema"),
		Entry("with a key that is a path", okRecipe+"  inputSchemaFrom: {configMapKeyRef: {name: a, key: ../b}}\n", "key must be"),
		Entry("with a name that no ConfigMap has", okRecipe+"  inputSchemaFrom: {configMapKeyRef: {name: A_, key: b}}\n", "name must be"),
		Entry("with an empty reference", okRecipe+"  inputSchemaFrom: {}\n", "configMapKeyRef"),
	)

	It("is pinned as it was judged", func(ctx SpecContext) {
		k := newKit(ctx)
		const schema = `{"type":"object","required":["n"]}`
		rcp := create(k, builders.MakeRecipe("tidy", "").SourceFrom("code", "main.js", contract.Digest([]byte(echo))).InputSchemaFrom("code", "in.json").Obj())
		Expect(k.judge(rcp)).To(HaveField("Reason", "SourceUnavailable"))
		create(k, builders.MakeRun("first").Recipe("tidy").Input(`{"n":1}`).Obj())
		Expect(succeeded(k.look("first"))).To(HaveField("Reason", "RecipeNotReady"))

		By("making the ConfigMap")
		cm := create(k, configMap("code", map[string]string{"main.js": echo, "in.json": schema}))
		Expect(k.judge(rcp)).To(HaveField("Reason", v1alpha1.ReasonReady))

		By("changing the schema after the verdict")
		cm.Data["in.json"] = `{"type":"object"}`
		Expect(admin.Update(ctx, cm)).To(Succeed())
		Expect(succeeded(k.look("first"))).To(And(HaveField("Reason", "RecipeNotReady"), HaveField("Message", ContainSubstring("not been checked yet"))))
		Expect(k.judge(rcp)).To(HaveField("Reason", v1alpha1.ReasonReady))
		run := k.look("first")
		Expect(succeeded(run)).To(HaveField("Reason", v1alpha1.ReasonRunning))
		pinned := run.Status.Pinned.Digest

		By("changing the program")
		cm.Data["main.js"] = calling
		Expect(admin.Update(ctx, cm)).To(Succeed())
		create(k, builders.MakeRun("second").Recipe("tidy").Input(`{"n":1}`).Obj())
		Expect(succeeded(k.look("second"))).To(And(HaveField("Reason", "RecipeNotReady"), HaveField("Message", ContainSubstring("DigestMismatch"))))
		Expect(k.judge(rcp)).To(HaveField("Reason", "DigestMismatch"))
		Expect(admin.Delete(ctx, cm)).To(Succeed())
		Expect(k.judge(rcp)).To(HaveField("Reason", "SourceUnavailable"))

		By("going on with the pinned run")
		k.report(run, nil)
		k.report(run, succeed)
		run = k.look("first")
		expectEnd(run, metav1.ConditionTrue, contract.Reason(v1alpha1.ReasonSucceeded))
		Expect(run.Status.Pinned.Digest).To(Equal(pinned))
	})
})
