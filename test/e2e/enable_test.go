package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

var _ = Describe("a namespace that is switched off", Serial, func() {
	It("gets no new run while the one that runs goes on", func(ctx SpecContext) {
		By("letting namespaces override")
		DeferCleanup(func(ctx SpecContext) { installOperator(ctx) }, NodeTimeout(3*time.Minute))
		kubectl(ctx, "-n", operatorNamespace, "patch", "deployment", managerName, "--type=json", "-p", `[
			{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--codeact-allow-namespace-override"},
			{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--recipes-allow-namespace-override"}]`)
		waitForManager(ctx)
		s := newScene(ctx)
		annotate := func(what string) { kubectl(ctx, "annotate", "--overwrite", "namespace", s.ns, "codeact.dev/"+what) }
		s.grant(ctx, "slow", contract.EffectReadOnly, "/slow?ms=8000", timeout(20*time.Second))
		recipe := s.recipe(ctx, "one", plain)

		running := waits(ctx, s.code(ctx, `function main() { tools.call("slow", {}); return 1 }`, []string{"slow"}), v1alpha1.ReasonRunning)
		annotate("codeact-enabled=false")
		refused := fails(ctx, s.run(ctx, "late", ofRecipe("one"), input(`{}`)), contract.ReasonDisabled)
		Expect(succeededOf(refused).Message).To(ContainSubstring("the annotation codeact.dev/codeact-enabled"))
		Expect(refused.Status.Pinned).To(BeNil())
		Expect(pods(ctx, refused)).To(BeEmpty())
		running = succeeds(ctx, running)
		Expect(running.Status.Pinned.CodeAct).To(Equal(&contract.Switch{Enabled: true, From: contract.LayerOperator}))

		By("switching programs on and recipes off")
		annotate("codeact-enabled=true")
		annotate("recipes-enabled=no")
		fails(ctx, s.run(ctx, "recipe", ofRecipe("one"), input(`{}`)), contract.ReasonDisabled)
		Eventually(func() bool {
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(recipe), recipe)).To(Succeed())
			return meta.IsStatusConditionFalse(recipe.Status.Conditions, v1alpha1.ConditionEnabled) &&
				meta.IsStatusConditionTrue(recipe.Status.Conditions, v1alpha1.ConditionReady)
		}).WithContext(ctx).Should(BeTrue())
		code := s.run(ctx, "code", func(r *v1alpha1.AgentRunSpec) { r.Code = &v1alpha1.CodeSpec{Source: plain} })
		Expect(succeeds(ctx, code).Status.Pinned.CodeAct.From).To(Equal(contract.LayerNamespace))
	}, SpecTimeout(5*time.Minute))
})
