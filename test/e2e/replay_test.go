package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/test/modelserver/script"
)

var _ = Describe("a run that has ended", func() {
	var s *scene
	var binary string
	BeforeEach(func(ctx SpecContext) {
		s = newScene(ctx)
		s.grant(ctx, "t", contract.EffectIdempotent, "/echo")
		binary = filepath.Join(GinkgoT().TempDir(), "codeact")
		command(ctx, "go", "build", "-o", binary, "../../cmd/codeact")
	})
	// codeact is what the tool prints of the run, without an error.
	codeact := func(ctx context.Context, args ...string) string {
		GinkgoHelper()
		return command(ctx, binary, append(args, "-n", s.ns, "--kubeconfig", os.Getenv("KUBECONFIG"))...)
	}

	It("is replayed by its name, and holds", func(ctx SpecContext) {
		s.recipe(ctx, "sum", `function main(input) { return tools.call("t", {sum: input.a + input.b}).arguments.sum }`, func(r *v1alpha1.RecipeSpec) {
			r.Tools = []string{"t"}
			r.InputSchema = &apiextensionsv1.JSON{Raw: []byte(`{"type":"object","required":["a","b"]}`)}
		})
		run := succeeds(ctx, s.native(ctx, []script.Turn{
			calls("run_code", runs(`function main() { return tools.call("t", {n: 4}).arguments.n + 1 }`), "sum", `{"a":1}`),
			calls("sum", `{"a":1,"b":2}`, "t", `{"from":"model"}`),
			turn("It is 3."),
		}, func(a *v1alpha1.AgentSpec) { a.Recipes = []string{"sum"} }))
		text := codeact(ctx, "replay", run.Name)
		Expect(text).To(And(ContainSubstring("verified against the run's status"), ContainSubstring("holds: 3 of 3 programs with 2 calls")))
		AddReportEntry("replay", text)

		By("and what another recipe would have done")
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "recipe.toml"), []byte("version = 1\nname = \"sum\"\ntools = [\"t\"]\n"), 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "main.js"), []byte(`function main(input) { return tools.call("t", {sum: input.a - input.b}).arguments.sum }`), 0o600)).To(Succeed())
		out, err := exec.CommandContext(ctx, binary, "replay", run.Name, "--with", dir, "-n", s.ns, "--kubeconfig", os.Getenv("KUBECONFIG")).Output()
		Expect(err).To(MatchError("exit status 1"))
		Expect(string(out)).To(ContainSubstring("recorded $.sum = 3"))
		AddReportEntry("replay --with", string(out))
		Expect(received(ctx, run)).To(HaveLen(3), "a replay calls no tool")
	})

	It("becomes a recipe that passes lint and its test", func(ctx SpecContext) {
		s.model(ctx, []script.Turn{code(`function main(input) { const seen = tools.call("t", {id: input.id}).arguments; return {id: seen.id + 1}; }`)})
		run := succeeds(ctx, s.run(ctx, "run", input(`{"id":7}`), func(r *v1alpha1.AgentRunSpec) {
			r.Agent = &v1alpha1.AgentSpec{Model: "gpt", Prompt: "do it", Tools: []string{"t"}}
		}))
		Expect(codeact(ctx, "replay", run.Name)).To(ContainSubstring("holds: 1 of 1 program with 1 call"))
		root := GinkgoT().TempDir()
		text := codeact(ctx, "recipe", "from-run", run.Name, "-o", filepath.Join(root, "next_id"))
		AddReportEntry("from-run", strings.ReplaceAll(text, root+"/", ""))
		command(ctx, binary, "recipe", "lint", root)
		Expect(command(ctx, binary, "recipe", "test", root)).To(ContainSubstring("1 passed"))

		By("and runs in the cluster")
		kubectlApply(ctx, command(ctx, binary, "recipe", "render", root, "-n", s.ns))
		again := succeeds(ctx, s.run(ctx, "again", input(`{"id":8}`), ofRecipe("next-id")))
		Expect(output(again)).To(HaveKeyWithValue("id", BeEquivalentTo(9)))
		Expect(codeact(ctx, "replay", again.Name)).To(ContainSubstring("recipe next-id: holds: 1 call"))
	})
})
