package envtest

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("The API server, of ToolGrants,", func() {
	DescribeTable("refuses", func(ctx SpecContext, spec, want string) {
		err := admin.Create(ctx, object(namespace(ctx), "ToolGrant", "g", spec), client.FieldValidation("Strict"))
		Expect(err).To(HaveOccurred())
		Expect(err.Error()).To(ContainSubstring(want))
	},
		// backend
		Entry("two backends", backend("{http: {url: 'http://x.example'}, mcp: {url: 'http://x.example'}}"), "set exactly one of http, mcp and model"),
		Entry("no backend", backend("{}"), "set exactly one of http, mcp and model"),
		Entry("an unknown method", overHTTP("method: HEAD"), "Unsupported value"),
		Entry("an unknown form of the response", overHTTP("response: XML"), "Unsupported value"),
		Entry("a header twice", overHTTP("headers: [{name: A, value: b}, {name: A, value: c}]"), "Duplicate value"),
		Entry("a header without a name", overHTTP("headers: [{value: b}]"), "name"),
		Entry("a header without a value", overHTTP("headers: [{name: A}]"), "value"),
		Entry("a header with other letters", overHTTP("headers: [{name: 'A B', value: c}]"), "should match"),
		Entry("a header of more than one line", overHTTP(`headers: [{name: A, value: "b\r\nC: d"}]`), "should match"),
		Entry("a header that is not ASCII", overHTTP("headers: [{name: A, value: 'é'}]"), "should match"),
		Entry("a header that is too long", overHTTP("headers: [{name: A, value: $2049}]"), "Too long"),
		Entry("more headers than allowed", overHTTP("headers: ["+repeat(17, "{name: H%d, value: x}")+"]"), "must have at most 16 items"),
		Entry("the header of credentials", overHTTP("headers: [{name: authorization, value: x}]"), "this header belongs to the runtime: use spec.auth for credentials"),
		Entry("the header of the host", overHTTP("headers: [{name: Host, value: x}]"), "this header belongs to the runtime"),
		Entry("the header of the id", overHTTP("headers: [{name: Idempotency-Key, value: x}]"), "this header belongs to the runtime"),
		Entry("the header of a trace", overHTTP("headers: [{name: Traceparent, value: x}]"), "this header belongs to the runtime"),
		Entry("a header of the product", overHTTP("headers: [{name: Codeact-Run-Name, value: x}]"), "this header belongs to the runtime"),
		Entry("a header for proxies", overHTTP("headers: [{name: Proxy-Authorization, value: x}]"), "this header belongs to the runtime"),
		Entry("certificates without a key", overHTTP("caBundle: {name: roots}"), "key"),
		Entry("certificates of no name", overHTTP("caBundle: {name: '', key: k}"), "name"),
		Entry("certificates with a key that is none", overHTTP("caBundle: {name: roots, key: ../k}"), "key"),
		Entry("an MCP server without a URL", overMCP("tool: x"), "url"),
		Entry("an MCP server of another scheme", overMCP("url: 'ws://x.example/mcp'"), "absolute http or https URL"),
		Entry("an MCP server with credentials", overMCP("url: 'https://u:p@x.example/mcp'"), "must not hold credentials or a fragment"),
		Entry("an MCP server with a fragment", overMCP("url: 'https://x.example/mcp#a'"), "must not hold credentials or a fragment"),
		Entry("an MCP tool of no name", overMCP("url: 'https://x.example', tool: ''"), "tool"),
		Entry("an MCP tool with a name that is too long", overMCP("url: 'https://x.example', tool: $254"), "Too long"),
		Entry("certificates of an MCP server without a key", overMCP("url: 'https://x.example', caBundle: {name: roots}"), "key"),
		// grant
		Entry("an unknown approval", granting("approval: Sometimes"), "Unsupported value"),
		Entry("a constraint of nothing", granting("constraints: [{expression: ''}]"), "expression"),
		Entry("a constraint without an expression", granting("constraints: [{message: x}]"), "expression"),
		Entry("a constraint that is too long", granting("constraints: [{expression: $2049}]"), "Too long"),
		Entry("a message that is too long", granting("constraints: [{expression: 'true', message: $8193}]"), "Too long"),
		Entry("more constraints than allowed", granting("constraints: ["+repeat(17, "{expression: '%d == 1'}")+"]"), "must have at most 16 items"),
		Entry("a result constraint of nothing", granting("resultConstraints: [{expression: ''}]"), "expression"),
		Entry("more result constraints than allowed", granting("resultConstraints: ["+repeat(17, "{expression: '%d == 1'}")+"]"), "must have at most 16 items"),
		Entry("a retry of an Effectful tool, by default", okGrant+"  grant: {retry: {attempts: 2}}\n", "an Effectful tool is never tried twice: drop spec.grant.retry"),
		Entry("a retry of an Effectful tool, by its word", grantWith("effect: Effectful")+"  grant: {retry: {attempts: 2}}\n", "an Effectful tool is never tried twice"),
		Entry("a retry without attempts", granting("retry: {backoff: 1s}"), "attempts"),
		Entry("a retry that is none", granting("retry: {attempts: 1}"), "greater than or equal to 2"),
		Entry("too many attempts", granting("retry: {attempts: 6}"), "less than or equal to 5"),
		Entry("a backoff beyond half a minute", granting("retry: {attempts: 2, backoff: 31s}"), "backoff must lie between 0s and 30s"),
		Entry("a negative backoff", granting("retry: {attempts: 2, backoff: -1s}"), "backoff must lie between 0s and 30s"),
		Entry("a backoff that is no duration", granting("retry: {attempts: 2, backoff: soon}"), "backoff"),
		// allowedNamespaces
		Entry("namespaces from elsewhere", allowed("{from: Some}"), "Unsupported value"),
		Entry("Selector without one", allowed("{from: Selector}"), "set selector exactly when from is Selector"),
		Entry("a selector with All", allowed("{from: All, selector: {}}"), "set selector exactly when from is Selector"),
		Entry("a selector by default", allowed("{selector: {matchLabels: {a: b}}}"), "set selector exactly when from is Selector"),
		Entry("a Secret for all", authWith("{secretRef: {name: s, key: k}}")+"  allowedNamespaces: {from: All}\n", "a Secret stays in its namespace"),
		Entry("a Secret for some", authWith("{secretRef: {name: s, key: k}}")+"  allowedNamespaces: {from: Selector, selector: {}}\n", "a Secret stays in its namespace"),
		Entry("certificates for all", overHTTP("caBundle: {name: roots, key: k}")+"  allowedNamespaces: {from: All}\n", "the ConfigMap of caBundle is mounted in the run's namespace"),
		Entry("certificates of an MCP server for all", overMCP("url: 'https://x.example', caBundle: {name: roots, key: k}")+"  allowedNamespaces: {from: All}\n", "the ConfigMap of caBundle is mounted in the run's namespace"),
	)

	DescribeTable("accepts", func(ctx SpecContext, spec string) {
		g := object(namespace(ctx), "ToolGrant", "g", spec)
		Expect(admin.Create(ctx, g, client.FieldValidation("Strict"))).To(Succeed())
		// Some are offered to the namespaces of every other case.
		Expect(admin.Delete(ctx, g)).To(Succeed())
	},
		Entry("HTTP, all of it", `  tool: {name: search, effect: ReadOnly, dependencies: {capabilities: [trace.context]}}
  backend:
    http:
      url: 'https://tools.example:8443/v1/{kind}/items?q={query}'
      method: GET
      headers: [{name: Accept-Language, value: "en, de;q=0.5"}, {name: X-Team, value: ""}]
      response: Text
      caBundle: {name: roots, key: ca.crt}
  grant:
    capabilities: [trace.context]
    approval: Never
    constraints: [{expression: "size(args.query) <= 100", message: too long}, {expression: "run.recipe == 'sweep'"}]
    resultConstraints: [{expression: "result != ''"}]
    retry: {attempts: 5, backoff: 0s}
  allowedNamespaces: {from: Same}
`),
		Entry("MCP, all of it", overMCP("url: 'https://mcp.example/mcp?x=1', tool: 'web/search', caBundle: {name: roots, key: ca.crt}")),
		Entry("MCP over plain HTTP", overMCP("url: 'http://mcp.tools.svc:8080'")),
		Entry("an Idempotent tool with a retry", grantWith("effect: Idempotent")+"  grant: {retry: {attempts: 2, backoff: 30s}}\n"),
		Entry("one whose calls need approval", granting("approval: Required")),
		Entry("one for all namespaces", allowed("{from: All}")),
		Entry("one for some", allowed("{from: Selector, selector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: Exists}]}}")),
		Entry("one with a token for all", authWith("{serviceAccountToken: {audience: mail.example}}")+"  allowedNamespaces: {from: All}\n"),
		Entry("one with a Secret for its own namespace", authWith("{secretRef: {name: s, key: k}}")+"  allowedNamespaces: {from: Same}\n"),
	)
})

func backend(b string) string { return "  tool: {name: search}\n  backend: " + b + "\n" }

func overHTTP(more string) string {
	return backend("{http: {url: 'https://tools.example/search', " + more + "}}")
}

func overMCP(fields string) string { return backend("{mcp: {" + fields + "}}") }

// granting is a grant of a tool that may be tried again.
func granting(fields string) string {
	return grantWith("effect: ReadOnly") + "  grant: {" + fields + "}\n"
}

func allowed(n string) string { return okGrant + "  allowedNamespaces: " + n + "\n" }

func repeat(n int, format string) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(format, i))
	}
	return strings.Join(out, ", ")
}
