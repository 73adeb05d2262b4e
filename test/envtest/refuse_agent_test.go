package envtest

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const modelURL = "url: 'https://models.example/v1'"

var _ = Describe("The API server, of models and agents,", func() {
	DescribeTable("refuses", func(ctx SpecContext, kind, spec, want string) {
		err := admin.Create(ctx, object(namespace(ctx), kind, "x", spec), client.FieldValidation("Strict"))
		Expect(err).To(HaveOccurred())
		Expect(err.Error()).To(ContainSubstring(want))
	},
		// ToolGrant
		Entry("a model beside another backend", "ToolGrant", backend("{http: {url: 'http://x.example'}, model: {"+modelURL+", model: m}}"), "set exactly one of http, mcp and model"),
		Entry("all backends at once", "ToolGrant", backend("{http: {url: 'http://x.example'}, mcp: {url: 'http://x.example'}, model: {"+modelURL+", model: m}}"), "set exactly one of http, mcp and model"),
		Entry("a model that is declared as a Function", "ToolGrant", backend("{model: {"+modelURL+", model: m}}"), "a model endpoint has both spec.tool.kind Model and spec.backend.model"),
		Entry("a kind Model over HTTP", "ToolGrant", grantWith("kind: Model"), "a model endpoint has both spec.tool.kind Model and spec.backend.model"),
		Entry("a model without a URL", "ToolGrant", model("model: m", "", ""), "url"),
		Entry("a model of another scheme", "ToolGrant", model("url: 'ftp://x.example', model: m", "", ""), "absolute http or https URL"),
		Entry("a model with credentials", "ToolGrant", model("url: 'https://u:p@x.example/v1', model: m", "", ""), "must not hold credentials or a fragment"),
		Entry("a model without a name", "ToolGrant", model(modelURL, "", ""), "model"),
		Entry("a model of no name", "ToolGrant", model(modelURL+", model: ''", "", ""), "model"),
		Entry("a model of an unknown API", "ToolGrant", model(modelURL+", model: m, api: Completions", "", ""), "Unsupported value"),
		Entry("certificates of a model without a key", "ToolGrant", model(modelURL+", model: m, caBundle: {name: roots}", "", ""), "key"),
		Entry("certificates of a model for all", "ToolGrant", model(modelURL+", model: m, caBundle: {name: roots, key: k}", "", "")+"  allowedNamespaces: {from: All}\n", "the ConfigMap of caBundle is mounted in the run's namespace"),
		Entry("constraints of a model", "ToolGrant", model(modelURL+", model: m", "", "constraints: [{expression: 'true'}]"), "a model is not called with arguments"),
		Entry("result constraints of a model", "ToolGrant", model(modelURL+", model: m", "", "resultConstraints: [{expression: 'true'}]"), "a model is not called with arguments"),
		Entry("calls of a model", "ToolGrant", model(modelURL+", model: m", "", "maxCallsPerRun: 3"), "maxTokensPerRun bounds it"),
		Entry("approval of a model", "ToolGrant", model(modelURL+", model: m", "", "approval: Required"), "a model is not called with arguments"),
		Entry("a model that asks who runs", "ToolGrant", model(modelURL+", model: m", "dependencies: {capabilities: [run.identity]}", ""), "drop every capability but 'auth'"),
		Entry("a model with a credential that it does not ask for", "ToolGrant", model(modelURL+", model: m", "", "")+"  auth: {secretRef: {name: s, key: k}}\n", "must ask for the credential"),
		Entry("tokens of a tool", "ToolGrant", granting("maxTokensPerRun: 10"), "maxTokensPerRun is for a tool of kind Model"),
		Entry("no tokens at all", "ToolGrant", model(modelURL+", model: m", "", "maxTokensPerRun: 0"), "greater than or equal to 1"),
		Entry("more tokens than can be counted", "ToolGrant", model(modelURL+", model: m", "", "maxTokensPerRun: 1000000001"), "less than or equal to 1000000000"),
		// AgentRun
		Entry("an agent beside a program", "AgentRun", okRun+"  agent: {model: m, prompt: p}\n", "set exactly one of spec.recipe, spec.code and spec.agent"),
		Entry("an agent beside a recipe", "AgentRun", agent("")+"  recipe: {name: x}\n", "set exactly one of spec.recipe, spec.code and spec.agent"),
		Entry("all three", "AgentRun", okRun+"  recipe: {name: x}\n  agent: {model: m, prompt: p}\n", "set exactly one of spec.recipe, spec.code and spec.agent"),
		Entry("an agent without a model", "AgentRun", "  agent: {prompt: p}\n", "model"),
		Entry("an agent without a prompt", "AgentRun", "  agent: {model: m}\n", "prompt"),
		Entry("an empty prompt", "AgentRun", "  agent: {model: m, prompt: ''}\n", "prompt"),
		Entry("a prompt that is too long", "AgentRun", "  agent: {model: m, prompt: "+strings.Repeat("p", 65537)+"}\n", "Too long"),
		Entry("a prompt of too many bytes", "AgentRun", agent("instructions: x, prompt: \""+letters(32769)+"\"", "model: m"), "prompt may have at most 65536 bytes"),
		Entry("instructions that are too long", "AgentRun", agent("instructions: "+strings.Repeat("i", 32769)), "Too long"),
		Entry("instructions of too many bytes", "AgentRun", agent("instructions: \""+letters(16385)+"\""), "instructions may have at most 32768 bytes"),
		Entry("an unknown protocol", "AgentRun", agent("protocol: Chat"), "Unsupported value"),
		Entry("recipes in the protocol Code", "AgentRun", agent("recipes: [a]"), "set protocol to Tools"),
		Entry("a recipe twice", "AgentRun", agent("protocol: Tools, recipes: [a, a]"), "Duplicate value"),
		Entry("more recipes than an agent may have", "AgentRun", agent("protocol: Tools, recipes: ["+names(33)+"]"), "must have at most 32 items"),
		Entry("a transcript of a part", "AgentRun", okRun+"  transcript: Some\n", "Unsupported value"),
		Entry("an answer without a decision", "AgentRun", okRun+"  resolutions: [{id: a, by: b}]\n", "decision"),
		Entry("an answer of nobody", "AgentRun", okRun+"  resolutions: [{id: a, decision: Approve}]\n", "by"),
		Entry("an answer to nothing", "AgentRun", okRun+"  resolutions: [{id: '', decision: Approve, by: b}]\n", "id"),
		Entry("a half answer", "AgentRun", okRun+"  resolutions: [{id: a, decision: Maybe, by: b}]\n", "Unsupported value"),
		Entry("two answers to one call", "AgentRun", okRun+"  resolutions: [{id: a, decision: Deny, by: b}, {id: a, decision: Approve, by: b}]\n", "Duplicate value"),
		Entry("an unknown way to end", "AgentRun", agent("finalize: Never"), "Unsupported value"),
		Entry("more tools than an agent may have", "AgentRun", agent("tools: ["+names(65)+"]"), "must have at most 64 items"),
		Entry("a tool that is called wrong", "AgentRun", agent("tools: ['a b']"), "should match"),
		Entry("a tool twice", "AgentRun", agent("tools: [a, a]"), "Duplicate value"),
		Entry("no steps", "AgentRun", agent("maxSteps: 0"), "greater than or equal to 1"),
		Entry("steps without a bound", "AgentRun", agent("maxSteps: 257"), "less than or equal to 256"),
		Entry("no tokens for an agent", "AgentRun", agent("maxTokens: 0"), "greater than or equal to 1"),
		Entry("a memory of one message", "AgentRun", agent("memory: {maxItems: 1}"), "greater than or equal to 2"),
		Entry("a memory of everything", "AgentRun", agent("memory: {maxItems: 1025}"), "less than or equal to 1024"),
		Entry("a temperature below zero", "AgentRun", agent("temperature: -0.1"), "greater than or equal to 0"),
		Entry("a temperature above two", "AgentRun", agent("temperature: 2.01"), "less than or equal to 2"),
		Entry("a temperature in words", "AgentRun", agent("temperature: '0.2'"), "must be of type number"),
		Entry("topP above one", "AgentRun", agent("topP: 1.5"), "less than or equal to 1"),
		Entry("no output tokens", "AgentRun", agent("maxOutputTokens: 0"), "greater than or equal to 1"),
		Entry("a seed that is no whole number", "AgentRun", agent("seed: 1.5"), "must be of type integer"),
		Entry("a seed beyond the doubles", "AgentRun", agent("seed: 9007199254740992"), "less than or equal to"),
		Entry("more ends than four", "AgentRun", agent("stop: [a, b, c, d, e]"), "must have at most 4 items"),
		Entry("an empty end", "AgentRun", agent("stop: ['']"), "stop"),
		Entry("an effort that nobody knows", "AgentRun", agent("reasoningEffort: huge"), "Unsupported value"),
		Entry("a user of no name", "AgentRun", agent("user: ''"), "user"),
		Entry("an extra body that is a list", "AgentRun", agent("extraBody: [1]"), "must be of type object"),
		Entry("an extra body with too many fields", "AgentRun", agent("extraBody: {"+pairs(33)+"}"), "must have at most 32 items"),
		Entry("a URL of the tenant's choice", "AgentRun", agent("url: 'https://x.example'"), "unknown field"),
	)

	DescribeTable("accepts", func(ctx SpecContext, kind, spec string) {
		o := object(namespace(ctx), kind, "x", spec)
		Expect(admin.Create(ctx, o, client.FieldValidation("Strict"))).To(Succeed())
		Expect(admin.Delete(ctx, o)).To(Succeed())
	},
		Entry("the smallest model", "ToolGrant", model(modelURL+", model: m", "", "")),
		Entry("a full model", "ToolGrant", model(modelURL+", model: 'org/m:7b', api: Responses, caBundle: {name: roots, key: ca.crt}",
			"description: thinks, effect: Effectful, dependencies: {capabilities: [auth]}",
			"capabilities: [auth], approval: Never, runSelector: {matchLabels: {a: b}}, maxTokensPerRun: 1000000000, timeout: 5m, retry: {attempts: 5, backoff: 1s}, notAfter: '2030-01-01T00:00:00Z'")+
			"  auth: {secretRef: {name: s, key: k}}\n"),
		Entry("a model for all namespaces", "ToolGrant", model(modelURL+", model: m", "", "")+"  allowedNamespaces: {from: All}\n"),
		Entry("the smallest agent", "AgentRun", agent("")),
		Entry("a full agent", "AgentRun", agent(`protocol: Code, instructions: be brief, tools: [a, b], finalize: Model, maxSteps: 256, maxTokens: 1,
    memory: {maxItems: 2}, temperature: 0.2, topP: 1, maxOutputTokens: 1, seed: -1, stop: [a, b, c, d], reasoningEffort: none, store: false,
    user: somebody, extraBody: {top_k: 5, chat_template_kwargs: {enable_thinking: false}}`)),
		Entry("numbers in every spelling: whole", "AgentRun", agent("temperature: 0, topP: 0")),
		Entry("numbers in every spelling: with an exponent", "AgentRun", agent("temperature: 2e-1, topP: 1e-300")),
		Entry("a prompt of as many bytes as there may be", "AgentRun", agent("prompt: \""+letters(32768)+"\"", "model: m")),
	)
})

// model is a grant of a model with fields of its backend, its tool and its grant.
func model(fields, tool, grant string) string {
	if tool != "" {
		tool = ", " + tool
	}
	out := "  tool: {name: m, kind: Model" + tool + "}\n  backend: {model: {" + fields + "}}\n"
	if grant != "" {
		out += "  grant: {" + grant + "}\n"
	}
	return out
}

// agent is a run of an agent with more fields, of a given beginning or the smallest one.
func agent(fields string, begin ...string) string {
	first := "model: m, prompt: p"
	if len(begin) > 0 {
		first = begin[0]
	}
	if fields != "" {
		fields = ", " + fields
	}
	return "  agent: {" + first + fields + "}\n"
}

// letters are n letters of two bytes each.
func letters(n int) string { return strings.Repeat("é", n) }
