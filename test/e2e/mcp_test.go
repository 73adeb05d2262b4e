package e2e

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/test/toolserver/tools"
)

var _ = Describe("a tool of an MCP server", func() {
	var s *scene
	BeforeEach(func(ctx SpecContext) { s = newScene(ctx) })

	// declared grants a tool of the endpoint as its server declares it.
	declared := func(path, name string, change func(*tools.MCPTool)) func(*v1alpha1.ToolGrantSpec) {
		for _, t := range tools.MCPTools {
			if t.Name != name {
				continue
			}
			if change != nil {
				change(&t)
			}
			return func(g *v1alpha1.ToolGrantSpec) {
				g.Backend = v1alpha1.ToolBackend{MCP: &v1alpha1.MCPBackend{URL: toolURL(path), Tool: name}}
				g.Tool.Description = t.Description
				g.Tool.InputSchema = &apiextensionsv1.JSON{Raw: []byte(t.InputSchema)}
				if t.OutputSchema != "" {
					g.Tool.OutputSchema = &apiextensionsv1.JSON{Raw: []byte(t.OutputSchema)}
				}
			}
		}
		panic("the tool server has no MCP tool " + name)
	}
	const order = `function main() { return tools.call("t", {sku: "nut-m8", quantity: 2}).sku }`

	for _, path := range []string{"/mcp", "/mcp-stateless"} {
		It("answers once, with a receipt, at "+path, func(ctx SpecContext) {
			s.grant(ctx, "t", contract.EffectEffectful, "/", declared(path, "order", nil))
			run := succeeds(ctx, s.code(ctx, order, []string{"t"}))
			Expect(output(run)).To(Equal("nut-m8"))
			Expect(run.Status.Execution.Calls[0].Receipt).To(HavePrefix("order-"))
			Expect(keys(received(ctx, run))).To(Equal([]string{callID(run, 1, 1)}))
		})
	}

	It("that says it failed can be caught", func(ctx SpecContext) {
		s.grant(ctx, "t", contract.EffectEffectful, "/", declared("/mcp", "fail", nil))
		run := succeeds(ctx, s.code(ctx, `function main() { try { tools.call("t", {}) } catch (e) { return e.message } }`, []string{"t"}))
		Expect(output(run)).To(ContainSubstring("it fails, as it was asked to"))
	})

	It("that is no longer what was granted is not called", func(ctx SpecContext) {
		s.grant(ctx, "t", contract.EffectEffectful, "/", declared("/mcp", "order", func(t *tools.MCPTool) { t.Description = "Orders nothing." }))
		run := fails(ctx, s.code(ctx, order, []string{"t"}), contract.ReasonDeclarationDrift)
		Expect(states(run.Status.Execution)).To(Equal([]string{fmt.Sprintf("t %s", contract.CallAbandoned)}))
		Expect(received(ctx, run)).To(BeEmpty())
	})
})
