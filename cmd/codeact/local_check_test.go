package main

import (
	"net/http"
	"strings"
	"testing"
)

// TestRunLocalRunsTests: a recipe whose tests fail is as little Ready as in a cluster,
// and nothing of it is called.
func TestRunLocalRunsTests(t *testing.T) {
	const tests = `  tools: [lookup]
  tests:
  - name: the quantity
    input: {sku: bolt}
    calls: [{tool: lookup, args: {sku: bolt}, returns: {quantity: 7}}]
    expect: {output: %}
`
	for output, want := range map[string]struct {
		code int
		says string
	}{"7": {0, ""}, "8": {1, `1 of 1 tests failed: "the quantity" (the output differs`}} {
		t.Run(output, func(t *testing.T) {
			var got http.Request
			var body string
			url := shop(t, &got, &body)
			text := strings.Replace(strings.ReplaceAll(localManifests, "URL", url), "  tools: [lookup]\n", strings.Replace(tests, "%", output, 1), 1)
			code, res, errs := runCommand(t, text, "run", "--local", "-f", "-", "-o", "json")
			if code != want.code {
				t.Errorf("exit code %d, want %d: %+v %s", code, want.code, res, errs)
			}
			if want.says != "" && !strings.Contains(res.Message, want.says) {
				t.Errorf("error %+v, want %s", res.Message, want.says)
			}
			if called := got.Method != ""; called != (want.code == 0) {
				t.Errorf("the tool was called: %t", called)
			}
		})
	}
}
