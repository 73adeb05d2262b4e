package check_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/sandbox/check"
)

func TestCalls(t *testing.T) {
	tests := map[string]struct {
		source string
		want   []check.Call
	}{
		"none":           {"function main(i){return i}", []check.Call{}},
		"refused source": {"async function main(){ return tools.call('a', {}) }", nil},
		"in order, with places": {
			"function main(i){\n  const é = tools.call('b', {}); return [é, tools.call(\"a\", tools[\"call\"](`c`, {}))]\n}",
			[]check.Call{{Tool: "b", Line: 2, Column: 13}, {Tool: "a", Line: 2, Column: 45}, {Tool: "c", Line: 2, Column: 61}},
		},
		"an arrow is read twice": {
			"const f = (a = tools.call('a', {})) => tools.call('a', {})",
			[]check.Call{{Tool: "a", Line: 1, Column: 16}, {Tool: "a", Line: 1, Column: 40}},
		},
		"another name": {
			"tools.call(n, {}); const t = tools; tools?.call('a', {}); tools.call('a' + n)",
			[]check.Call{{Dynamic: true, Line: 1, Column: 1}, {Dynamic: true, Line: 1, Column: 30}, {Dynamic: true, Line: 1, Column: 37}, {Dynamic: true, Line: 1, Column: 59}},
		},
		"in parentheses": {
			"((tools).call)('a', {})", []check.Call{{Tool: "a", Line: 1, Column: 3}},
		},
		"shadowed": {
			"function f(tools){ return tools.call('a', {}) }",
			[]check.Call{{Dynamic: true, Line: 1, Column: 12}, {Tool: "a", Line: 1, Column: 27}},
		},
		"only in text": {"// tools.call('a')\n'tools.call(1)'", []check.Call{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, check.Calls(tt.source, 1<<20)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
