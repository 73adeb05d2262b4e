package envtest

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// object reads a manifest of one of our kinds; spec is indented YAML, $n stands
// for a long text of n letters.
func object(ns, kind, name, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	for _, n := range []int{33, 65, 254, 300, 2049, 8193, 262145} {
		spec = strings.ReplaceAll(spec, fmt.Sprintf("$%d", n), strings.Repeat("x", n))
	}
	u := &unstructured.Unstructured{}
	text := fmt.Sprintf("apiVersion: codeact.dev/v1alpha1\nkind: %s\nmetadata: {name: %s, namespace: %s}\nspec:\n%s", kind, name, ns, spec)
	Expect(yaml.Unmarshal([]byte(text), &u.Object)).To(Succeed(), text)
	return u
}

const (
	okRecipe = "  source: function main(x) { return x }\n"
	okGrant  = "  tool: {name: search}\n  backend: {http: {url: 'http://tools.example/search'}}\n"
	okRun    = "  code: {source: 'function main(x) { return x }'}\n"
)

var _ = Describe("The API server", func() {
	DescribeTable("refuses", func(ctx SpecContext, kind, name, spec, want string) {
		ns := namespace(ctx)
		err := admin.Create(ctx, object(ns, kind, name, spec), client.FieldValidation("Strict"))
		Expect(err).To(HaveOccurred())
		Expect(err.Error()).To(ContainSubstring(want))
	},
		// Recipe
		Entry("a recipe without a source", "Recipe", "r", "  description: x\n", "source"),
		Entry("an empty source", "Recipe", "r", "  source: ''\n", "source"),
		Entry("a source above the ceiling", "Recipe", "r", "  source: $262145\n", "Too long"),
		Entry("a recipe whose name is no tool name", "Recipe", "a.b", okRecipe, "set spec.toolName"),
		Entry("a recipe whose name is too long for a tool", "Recipe", "$65", okRecipe, "set spec.toolName"),
		Entry("a tool name with other letters", "Recipe", "r", okRecipe+"  toolName: 'a b'\n", "letters, digits"),
		Entry("a tool name that is too long", "Recipe", "r", okRecipe+"  toolName: $65\n", "Too long"),
		Entry("a digest of another form", "Recipe", "r", okRecipe+"  sourceDigest: sha256:ABC\n", "64 lower-case hex digits"),
		Entry("a description that is too long", "Recipe", "r", okRecipe+"  description: $8193\n", "Too long"),
		Entry("a tool that is named twice", "Recipe", "r", okRecipe+"  tools: [a, a]\n", "Duplicate value"),
		Entry("a tool with other letters", "Recipe", "r", okRecipe+"  tools: ['a.b']\n", "tools[0]"),
		Entry("more tools than a program may have", "Recipe", "r", okRecipe+"  tools: ["+names(65)+"]\n", "must have at most 64 items"),
		Entry("a limit above the ceiling", "Recipe", "r", okRecipe+"  limits: {heapBytes: 268435457}\n", "heapBytes"),
		Entry("a limit below the least", "Recipe", "r", okRecipe+"  limits: {stackBytes: 1}\n", "stackBytes"),
		Entry("negative child calls", "Recipe", "r", okRecipe+"  limits: {childCalls: -1}\n", "childCalls"),
		Entry("an unknown field", "Recipe", "r", okRecipe+"  sourceURL: x\n", "unknown field"),
		// ToolGrant
		Entry("a grant without a tool", "ToolGrant", "g", "  backend: {http: {url: 'http://x.example'}}\n", "tool"),
		Entry("a grant without a backend", "ToolGrant", "g", "  tool: {name: a}\n", "backend"),
		Entry("a backend of no kind", "ToolGrant", "g", "  tool: {name: a}\n  backend: {}\n", "http"),
		Entry("a tool name with other letters, in a grant", "ToolGrant", "g", "  tool: {name: 'a/b'}\n  backend: {http: {url: 'http://x.example'}}\n", "letters, digits"),
		Entry("an unknown kind", "ToolGrant", "g", grantWith("kind: Magic"), "Unsupported value"),
		Entry("an unknown effect", "ToolGrant", "g", grantWith("effect: Sometimes"), "Unsupported value"),
		Entry("an unknown policy", "ToolGrant", "g", grantWith("codeAct: Perhaps"), "Unsupported value"),
		Entry("an unknown capability", "ToolGrant", "g", grantWith("dependencies: {capabilities: ['run.*']}"), "Unsupported value"),
		Entry("an unknown profile", "ToolGrant", "g", grantWith("dependencies: {profile: Loose}"), "Unsupported value"),
		Entry("a URL of another scheme", "ToolGrant", "g", grantAt("file:///etc/passwd"), "absolute http or https URL"),
		Entry("a relative URL", "ToolGrant", "g", grantAt("/tools/search"), "absolute http or https URL"),
		Entry("a URL without a host", "ToolGrant", "g", grantAt("http:///search"), "absolute http or https URL"),
		Entry("a URL with credentials", "ToolGrant", "g", grantAt("http://u:p@x.example"), "must not hold credentials"),
		Entry("a URL that is too long", "ToolGrant", "g", grantAt("http://x.example/$2049"), "Too long"),
		Entry("auth that the tool does not ask for", "ToolGrant", "g", okGrant+"  auth: {secretRef: {name: s, key: k}}\n", "must ask for the credential"),
		Entry("a tool that asks for auth without one", "ToolGrant", "g", grantWith("dependencies: {capabilities: [auth]}"), "there is no spec.auth"),
		Entry("two kinds of auth", "ToolGrant", "g", authWith("{secretRef: {name: s, key: k}, serviceAccountToken: {audience: a}}"), "exactly one of secretRef"),
		Entry("no kind of auth", "ToolGrant", "g", authWith("{}"), "exactly one of secretRef"),
		Entry("a key that is no key", "ToolGrant", "g", authWith("{secretRef: {name: s, key: '../k'}}"), "key"),
		Entry("the API server's own audience", "ToolGrant", "g", authWith("{serviceAccountToken: {audience: 'https://kubernetes.default.svc'}}"), "the API server's own"),
		Entry("no calls at all", "ToolGrant", "g", okGrant+"  grant: {maxCallsPerRun: 0}\n", "maxCallsPerRun"),
		Entry("a timeout beyond an hour", "ToolGrant", "g", okGrant+"  grant: {timeout: 2h}\n", "between 1ms and 1h"),
		Entry("a timeout of nothing", "ToolGrant", "g", okGrant+"  grant: {timeout: 0s}\n", "between 1ms and 1h"),
		Entry("a time that is no time", "ToolGrant", "g", okGrant+"  grant: {notAfter: tomorrow}\n", "notAfter"),
		// What passes here and cannot be decoded stops the manager's watch of the kind.
		Entry("a time in lower case", "ToolGrant", "g", okGrant+"  grant: {notAfter: 2027-06-30t00:00:00z}\n", "notAfter"),
		Entry("a time with another point", "ToolGrant", "g", okGrant+"  grant: {notAfter: '2027-06-30T00:00:00x5Z'}\n", "notAfter"),
		Entry("a time in no zone", "ToolGrant", "g", okGrant+"  grant: {notAfter: '2027-06-30T00:00:00+99:99'}\n", "notAfter"),
		Entry("a day that is none", "ToolGrant", "g", okGrant+"  grant: {notAfter: '2027-02-30T00:00:00Z'}\n", "notAfter"),
		// AgentRun
		Entry("a run of nothing", "AgentRun", "r", "  timeout: 1m\n", "set exactly one of spec.recipe, spec.code and spec.agent"),
		Entry("a run of two programs", "AgentRun", "r", okRun+"  recipe: {name: x}\n", "set exactly one of spec.recipe, spec.code and spec.agent"),
		Entry("a recipe without a name", "AgentRun", "r", "  recipe: {}\n", "name"),
		Entry("code without a source", "AgentRun", "r", "  code: {tools: [a]}\n", "source"),
		Entry("code above the ceiling", "AgentRun", "r", "  code: {source: $262145}\n", "Too long"),
		Entry("more tools than code may have", "AgentRun", "r", "  code: {source: x, tools: ["+names(65)+"]}\n", "must have at most 64 items"),
		Entry("a timeout that is no duration", "AgentRun", "r", okRun+"  timeout: soon\n", "timeout"),
		Entry("a timeout beyond a day", "AgentRun", "r", okRun+"  timeout: 25h\n", "between 1s and 24h"),
		Entry("a timeout below a second", "AgentRun", "r", okRun+"  timeout: 10ms\n", "between 1s and 24h"),
		Entry("a negative start deadline", "AgentRun", "r", okRun+"  startDeadline: -1s\n", "between 0s and 24h"),
		Entry("a ttl beyond a year", "AgentRun", "r", okRun+"  ttlAfterFinished: 9000h\n", "between 0s and 8760h"),
		Entry("a limit above the ceiling, in a run", "AgentRun", "r", okRun+"  limits: {wallClockMs: 3600001}\n", "wallClockMs"),
		Entry("a ServiceAccount of the tenant's choice", "AgentRun", "r", okRun+"  pod: {serviceAccountName: admin}\n", "unknown field"),
		Entry("an image of the tenant's choice", "AgentRun", "r", okRun+"  pod: {image: x}\n", "unknown field"),
		Entry("an amount that is none", "AgentRun", "r", okRun+"  pod: {resources: {limits: {cpu: 1e1.5}}}\n", "suffix up to P or Pi"),
		Entry("an amount with an exponent", "AgentRun", "r", okRun+"  pod: {resources: {requests: {memory: '1e2000000000'}}}\n", "suffix up to P or Pi"),
		Entry("an amount beyond all memory", "AgentRun", "r", okRun+"  pod: {resources: {requests: {memory: 1000E}}}\n", "suffix up to P or Pi"),
		Entry("a tolerance beyond whole numbers", "AgentRun", "r", okRun+"  pod: {tolerations: [{operator: Exists, tolerationSeconds: 10000000000000000000}]}\n", "tolerationSeconds"),
		Entry("devices that no pod could claim", "AgentRun", "r", okRun+"  pod: {resources: {claims: [{name: x}]}}\n", "unknown field"),
		Entry("more node labels than allowed", "AgentRun", "r", okRun+"  pod: {nodeSelector: {"+pairs(17)+"}}\n", "at most 16"),
	)

	DescribeTable("accepts", func(ctx SpecContext, kind, name, spec string) {
		Expect(admin.Create(ctx, object(namespace(ctx), kind, name, spec), client.FieldValidation("Strict"))).To(Succeed())
	},
		Entry("the smallest recipe", "Recipe", "r", okRecipe),
		Entry("a full recipe", "Recipe", "weekly.report", okRecipe+`  toolName: weekly_report
  description: does it
  sourceDigest: sha256:`+strings.Repeat("0", 64)+`
  inputSchema: {type: object, properties: {n: {type: integer}}}
  outputSchema: true
  tools: [a, b-c, D_1]
  limits: {childCalls: 0, wallClockMs: 1}
`),
		Entry("the smallest grant", "ToolGrant", "g", okGrant),
		Entry("a full grant", "ToolGrant", "g.x", `  tool:
    name: pay
    description: pays
    inputSchema: {type: object}
    outputSchema: {type: object}
    kind: Function
    effect: Effectful
    codeAct: Allow
    dependencies: {profile: Strict, capabilities: [auth, run.identity, run.labels]}
  backend: {http: {url: 'https://pay.example:8443/v1/pay?x=1'}}
  auth: {secretRef: {name: pay, key: token}}
  grant:
    capabilities: [auth, run.identity, run.labels]
    recipes: [sweep]
    runSelector: {matchLabels: {tier: batch}, matchExpressions: [{key: a, operator: Exists}]}
    maxCallsPerRun: 3
    notAfter: '2030-01-01T00:00:00Z'
    timeout: 1500ms
`),
		Entry("a grant with a token", "ToolGrant", "g", authWith("{serviceAccountToken: {audience: mail.example}}")),
		Entry("the smallest run", "AgentRun", "r", okRun),
		Entry("an input of every type: null", "AgentRun", "r", okRun+"  input: null\n"),
		Entry("an input of every type: a number", "AgentRun", "r", okRun+"  input: 1.5\n"),
		Entry("an input of every type: a list", "AgentRun", "r", okRun+"  input: [1, {a: b}]\n"),
		Entry("a full run", "AgentRun", strings.Repeat("r", 253), `  recipe: {name: sweep}
  input: {q: x}
  limits: {sourceBytes: 1, inputBytes: 2, outputBytes: 1, heapBytes: 1048576, stackBytes: 65536, wallClockMs: 1, childCalls: 0}
  timeout: 24h
  startDeadline: 0s
  cancel: true
  ttlAfterFinished: 0s
  pod: {resources: {requests: {cpu: 1, memory: 1.5M}, limits: {memory: 64Mi, cpu: 2500m}}, nodeSelector: {a: b}, tolerations: [{operator: Exists}], runtimeClassName: x, priorityClassName: low}
`),
	)
})

func grantWith(tool string) string {
	return "  tool: {name: search, " + tool + "}\n  backend: {http: {url: 'http://tools.example/search'}}\n"
}

func grantAt(url string) string {
	return "  tool: {name: search}\n  backend: {http: {url: '" + url + "'}}\n"
}

func authWith(auth string) string {
	return grantWith("dependencies: {capabilities: [auth]}") + "  auth: " + auth + "\n"
}

func names(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("t%d", i))
	}
	return strings.Join(out, ", ")
}

func pairs(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("k%d: v", i))
	}
	return strings.Join(out, ", ")
}
