package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

const plain = `function main(input) { return 1 }`

func jsonOf(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

var _ = Describe("what is refused before anything runs", func() {
	var s *scene
	BeforeEach(func(ctx SpecContext) { s = newScene(ctx) })

	type bad struct {
		source     string
		recipe     func(*v1alpha1.RecipeSpec)
		wantRecipe contract.Reason
		wantMsg    string
	}
	DescribeTable("a Recipe, and a run of it",
		func(ctx SpecContext, b bad) {
			if b.recipe == nil {
				b.recipe = func(*v1alpha1.RecipeSpec) {}
			}
			recipe := s.recipe(ctx, "bad", b.source, b.recipe)
			run := s.run(ctx, "run", ofRecipe("bad"), input(`{}`), startDeadline(time.Second))
			Eventually(func(g Gomega) {
				g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(recipe), recipe)).To(Succeed())
				c := meta.FindStatusCondition(recipe.Status.Conditions, v1alpha1.ConditionReady)
				g.Expect(c).NotTo(BeNil())
				g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
				g.Expect(c.Reason).To(Equal(string(b.wantRecipe)))
				g.Expect(c.Message).To(ContainSubstring(b.wantMsg))
			}).WithContext(ctx).Should(Succeed())
			want := contract.ReasonRecipeNotReady
			if b.wantRecipe == contract.ReasonToolsNotGranted {
				want = b.wantRecipe
			}
			run = fails(ctx, run, want)
			Expect(succeededOf(run).Message).To(ContainSubstring(b.wantMsg))
			Expect(pods(ctx, run)).To(BeEmpty())
		},
		Entry("wrong digest", bad{source: plain, wantRecipe: contract.ReasonDigestMismatch, wantMsg: "review the source again",
			recipe: func(r *v1alpha1.RecipeSpec) { r.SourceDigest = contract.Digest([]byte("other")) }}),
		Entry("syntax error", bad{source: "function main(input) {\n  return 1 +;\n}", wantRecipe: contract.ReasonSyntaxError, wantMsg: "2:"}),
		Entry("forbidden syntax", bad{source: "async function main(input) { return 1 }", wantRecipe: contract.ReasonProhibited, wantMsg: "1:"}),
		Entry("invalid schema", bad{source: plain, wantRecipe: contract.ReasonSchemaInvalid, wantMsg: "spec.inputSchema",
			recipe: func(r *v1alpha1.RecipeSpec) { r.InputSchema = jsonOf(`{"type":"thing"}`) }}),
		Entry("external reference", bad{source: plain, wantRecipe: contract.ReasonSchemaInvalid, wantMsg: "may only refer into itself",
			recipe: func(r *v1alpha1.RecipeSpec) {
				r.OutputSchema = jsonOf(`{"$ref":"http://example.test/schema.json"}`)
			}}),
		Entry("reserved name", bad{source: plain, wantRecipe: contract.ReasonReservedName, wantMsg: "run_code",
			recipe: func(r *v1alpha1.RecipeSpec) { r.ToolName = "run_code" }}),
		Entry("limits too high", bad{source: plain, wantRecipe: contract.ReasonLimitsTooHigh, wantMsg: "wallClockMs",
			recipe: func(r *v1alpha1.RecipeSpec) { r.Limits = &contract.Limits{WallClockMs: 3_600_000} }}),
		Entry("missing grant", bad{source: plain, wantRecipe: contract.ReasonToolsNotGranted, wantMsg: "nowhere",
			recipe: func(r *v1alpha1.RecipeSpec) { r.Tools = []string{"nowhere"} }}),
	)

	It("gives a tool's name to the older of two Recipes", func(ctx SpecContext) {
		named := func(r *v1alpha1.RecipeSpec) { r.ToolName = "same" }
		s.recipe(ctx, "a", plain, named)
		s.recipe(ctx, "b", plain, named)
		// Within one second their ages are equal, and the first name wins.
		run := fails(ctx, s.run(ctx, "run", ofRecipe("b"), input(`{}`), startDeadline(2*time.Second)), contract.ReasonRecipeNotReady)
		Expect(succeededOf(run).Message).To(And(ContainSubstring("NameConflict"), ContainSubstring("Recipe a")))
		succeeds(ctx, s.run(ctx, "other", ofRecipe("a"), input(`{}`)))
	})

	DescribeTable("a run",
		func(ctx SpecContext, spec func(*v1alpha1.AgentRunSpec), want contract.Reason, message string) {
			run := fails(ctx, s.run(ctx, "run", startDeadline(time.Second), spec), want)
			Expect(succeededOf(run).Message).To(ContainSubstring(message))
			Expect(pods(ctx, run)).To(BeEmpty())
			Expect(kubectl(ctx, "-n", s.ns, "get", "ar", "run")).To(MatchRegexp(`False\s+` + string(want)))
			Eventually(func() string { return kubectl(ctx, "-n", s.ns, "describe", "ar", "run") }).
				WithContext(ctx).Should(MatchRegexp(`Warning\s+` + string(want)))
		},
		Entry("of no recipe", ofRecipe("nowhere"), contract.ReasonRecipeNotFound, "nowhere"),
		Entry("without a grant", func(r *v1alpha1.AgentRunSpec) { r.Code = &v1alpha1.CodeSpec{Source: plain, Tools: []string{"nowhere"}} },
			contract.ReasonToolsNotGranted, "no ToolGrant of this namespace"),
		Entry("with a syntax error", func(r *v1alpha1.AgentRunSpec) { r.Code = &v1alpha1.CodeSpec{Source: "function main() {\n  let 1;\n}"} },
			contract.ReasonSyntaxError, "2:"),
		Entry("without main", func(r *v1alpha1.AgentRunSpec) { r.Code = &v1alpha1.CodeSpec{Source: "let x = 1"} },
			contract.ReasonJavaScriptError, "main"),
		Entry("with too much input", func(r *v1alpha1.AgentRunSpec) {
			r.Code = &v1alpha1.CodeSpec{Source: plain}
			r.Input = jsonOf(`"` + strings.Repeat("x", 65536) + `"`)
		}, contract.ReasonInputTooLarge, "65538"),
		Entry("with limits above the operator's", func(r *v1alpha1.AgentRunSpec) {
			r.Code = &v1alpha1.CodeSpec{Source: plain}
			r.Limits = &contract.Limits{HeapBytes: 200 << 20}
		}, contract.ReasonLimitsTooHigh, "heapBytes"),
	)

	It("refuses input that does not match the recipe's schema, and what does not fit a bundle", func(ctx SpecContext) {
		s.recipe(ctx, "typed", plain, func(r *v1alpha1.RecipeSpec) {
			r.InputSchema = jsonOf(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)
		})
		run := fails(ctx, s.run(ctx, "wrong", ofRecipe("typed"), input(`{"n":"secret-value"}`)), contract.ReasonInvalidInput)
		Expect(succeededOf(run).Message).To(And(ContainSubstring("/n"), Not(ContainSubstring("secret-value"))))

		large := `{"description":"` + strings.Repeat("d", 250_000) + `"}`
		var names []string
		for _, n := range []string{"a", "b", "c"} {
			names = append(names, n)
			s.grant(ctx, n, contract.EffectReadOnly, "/echo", func(g *v1alpha1.ToolGrantSpec) {
				g.Tool.InputSchema, g.Tool.OutputSchema = jsonOf(large), jsonOf(large)
			})
		}
		s.recipe(ctx, "large", plain, func(r *v1alpha1.RecipeSpec) { r.Tools = names })
		run = fails(ctx, s.run(ctx, "large", ofRecipe("large"), input(`{}`)), contract.ReasonBundleTooLarge)
		Expect(pods(ctx, run)).To(BeEmpty())
		By("leaving a program that nobody reviewed without tools whose catalogue is too long")
		run = succeeds(ctx, s.code(ctx, plain, names))
		Expect(run.Status.Pinned.Tools).To(BeEmpty())
		Expect(meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionCatalogueComplete).Reason).To(Equal("CatalogueEmpty"))
	})

	It("refuses an expired grant and says when it ended", func(ctx SpecContext) {
		g := s.grant(ctx, "old", contract.EffectReadOnly, "/echo", func(g *v1alpha1.ToolGrantSpec) {
			g.Grant.NotAfter = &metav1.Time{Time: time.Now().Add(-time.Hour)}
		})
		run := fails(ctx, s.code(ctx, plain, []string{"old"}, startDeadline(time.Second)), contract.ReasonToolsNotGranted)
		Expect(succeededOf(run).Message).To(ContainSubstring("expired at"))
		Eventually(func(gm Gomega) {
			gm.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(g), g)).To(Succeed())
			c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
			gm.Expect(c).NotTo(BeNil())
			gm.Expect(c.Reason).To(Equal(string(contract.ReasonExpired)))
		}).WithContext(ctx).Should(Succeed())
	})

	It("waits for a recipe and a grant that come later", func(ctx SpecContext) {
		run := s.run(ctx, "run", ofRecipe("late"), input(`{}`))
		run = waits(ctx, run, string(contract.ReasonRecipeNotFound))
		s.recipe(ctx, "late", `function main() { return tools.call("later", {}).run }`, func(r *v1alpha1.RecipeSpec) { r.Tools = []string{"later"} })
		run = waits(ctx, run, string(contract.ReasonToolsNotGranted))
		s.grant(ctx, "later", contract.EffectReadOnly, "/echo")
		succeeds(ctx, run)
	})

	It("takes no object that is malformed", func(ctx SpecContext) {
		_, err := kube.CoreV1().RESTClient().Post().AbsPath("/apis/codeact.dev/v1alpha1/namespaces", s.ns, "agentruns").
			SetHeader("Content-Type", "application/json").
			Body([]byte(`{"apiVersion":"codeact.dev/v1alpha1","kind":"AgentRun","metadata":{"name":"x"},"spec":{"input":{"a":}}}`)).DoRaw(ctx)
		Expect(apierrors.IsBadRequest(err)).To(BeTrue(), "%v", err)
	})
})
