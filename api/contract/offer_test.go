package contract

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCheckOffer has what counts for the bound, each with as much as fits and with
// one byte more.
func TestCheckOffer(t *testing.T) {
	xs := func(n int) string { return strings.Repeat("x", n) }
	tests := map[string]struct {
		tools   func(n int) []PinnedTool
		recipes func(n int) []PinnedRecipeTool
		shown   func(n int) Catalogue
		free    bool // it does not count
	}{
		"the catalogue": {shown: func(n int) Catalogue { return Catalogue{Text: []byte(xs(n))} }},
		"a tool's parts": {tools: func(n int) []PinnedTool {
			return []PinnedTool{{Tool: Tool{Name: "a", Description: xs(n - 3), InputSchema: json.RawMessage("{}")}, Direct: true}}
		}},
		"a schema": {tools: func(n int) []PinnedTool {
			return []PinnedTool{{Tool: Tool{Name: "a", InputSchema: json.RawMessage(xs(n - 1))}, Direct: true}}
		}},
		"bytes, not characters": {tools: func(n int) []PinnedTool {
			return []PinnedTool{{Tool: Tool{Description: strings.Repeat("é", n/2) + xs(n%2)}, Direct: true}}
		}},
		"a tool that is not direct": {free: true, tools: func(n int) []PinnedTool {
			return []PinnedTool{{Tool: Tool{Name: "a", Description: xs(n)}}}
		}},
		"an output schema": {free: true, tools: func(n int) []PinnedTool {
			return []PinnedTool{{Tool: Tool{Name: "a", OutputSchema: json.RawMessage(xs(n))}, Direct: true}}
		}},
		"a recipe's parts": {recipes: func(n int) []PinnedRecipeTool {
			return []PinnedRecipeTool{{PinnedRecipe: PinnedRecipe{ToolName: "a"}, Description: xs(n - 3), InputSchema: json.RawMessage("{}")}}
		}},
		"a recipe's source and output": {free: true, recipes: func(n int) []PinnedRecipeTool {
			return []PinnedRecipeTool{{PinnedRecipe: PinnedRecipe{Name: xs(n)}, Source: xs(n), OutputSchema: json.RawMessage(xs(n))}}
		}},
		"all together": {
			tools: func(n int) []PinnedTool { return []PinnedTool{{Tool: Tool{Name: xs(n - 20)}, Direct: true}} },
			recipes: func(int) []PinnedRecipeTool {
				return []PinnedRecipeTool{{PinnedRecipe: PinnedRecipe{ToolName: xs(10)}}}
			},
			shown: func(int) Catalogue { return Catalogue{Text: []byte(xs(10))} },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			check := func(n int) error {
				var tools []PinnedTool
				var recipes []PinnedRecipeTool
				var shown Catalogue
				if tc.tools != nil {
					tools = tc.tools(n)
				}
				if tc.recipes != nil {
					recipes = tc.recipes(n)
				}
				if tc.shown != nil {
					shown = tc.shown(n)
				}
				return CheckOffer(tools, recipes, shown)
			}
			if err := check(MaxOfferBytes); err != nil {
				t.Errorf("the most: %v", err)
			}
			f, _ := AsFault(check(MaxOfferBytes + 1))
			if tc.free != (f == nil) || f != nil && (f.Reason != ReasonInvalidInput || !strings.Contains(f.Message, "131073 bytes") || !strings.Contains(f.Message, "131072")) {
				t.Errorf("one more: %v", f)
			}
		})
	}
	if err := CheckOffer(nil, nil, Catalogue{}); err != nil {
		t.Error(err)
	}
}

func TestFromCode(t *testing.T) {
	of := func(name string, direct, not bool) PinnedTool {
		return PinnedTool{Tool: Tool{Name: name}, Direct: direct, NotFromCode: not, Approval: ApprovalRequired}
	}
	tests := map[string]struct {
		pinned []PinnedTool
		want   []string
	}{
		"none":                            {},
		"for code alone, and for both":    {pinned: []PinnedTool{of("b", false, false), of("a", true, false)}, want: []string{"b", "a"}},
		"for the model, and for a recipe": {pinned: []PinnedTool{of("b", true, true), of("a", false, true)}},
		"a mixture keeps its order":       {pinned: []PinnedTool{of("c", true, false), of("b", true, true), of("a", false, false)}, want: []string{"c", "a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.pinned)
			var got []string
			for _, x := range FromCode(tc.pinned) {
				got = append(got, x.Name)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(before, tc.pinned); d != "" {
				t.Error(d)
			}
		})
	}
}
