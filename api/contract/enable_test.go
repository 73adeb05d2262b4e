package contract

import (
	"strings"
	"testing"
)

func TestCheckEnabled(t *testing.T) {
	on, off := Switch{Enabled: true, From: LayerOperator}, Switch{From: LayerNamespace}
	recipe := func(b *Bundle) { b.Recipe = &PinnedRecipe{Name: "sweep"} }
	agent := func(recipes ...PinnedRecipeTool) func(*Bundle) {
		return func(b *Bundle) { b.Agent = &PinnedAgent{Recipes: recipes} }
	}
	tests := map[string]struct {
		codeAct, recipes Switch
		edit             func(*Bundle)
		want             string // part of the fault; empty is none
	}{
		"a program":                           {codeAct: on, recipes: on},
		"enabled by the namespace":            {codeAct: Switch{Enabled: true, From: LayerNamespace}},
		"a program needs no recipes":          {codeAct: on, recipes: off},
		"switched off":                        {codeAct: off, recipes: on, want: "codeAct is not enabled in the bundle (decided by: Namespace)"},
		"nothing said":                        {want: "does not say who has enabled codeAct"},
		"by nobody":                           {codeAct: Switch{Enabled: true}, want: "does not say who has enabled codeAct"},
		"by somebody else":                    {codeAct: Switch{Enabled: true, From: "Tenant"}, want: "does not say who has enabled codeAct"},
		"a recipe":                            {codeAct: on, recipes: on, edit: recipe},
		"a recipe, switched off":              {codeAct: on, recipes: off, edit: recipe, want: "recipes is not enabled"},
		"a recipe, nothing said":              {codeAct: on, edit: recipe, want: "does not say who has enabled recipes"},
		"a recipe without codeAct":            {codeAct: off, recipes: on, edit: recipe, want: "codeAct is not enabled"},
		"an agent without recipes":            {codeAct: on, recipes: off, edit: agent()},
		"an agent without codeAct":            {codeAct: off, recipes: on, edit: agent(), want: "codeAct is not enabled"},
		"an agent with recipes":               {codeAct: on, recipes: on, edit: agent(PinnedRecipeTool{})},
		"an agent with recipes, switched off": {codeAct: on, recipes: off, edit: agent(PinnedRecipeTool{}), want: "recipes is not enabled"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := Bundle{CodeAct: tc.codeAct, Recipes: tc.recipes}
			if tc.edit != nil {
				tc.edit(&b)
			}
			f := b.CheckEnabled()
			switch {
			case f == nil && tc.want != "":
				t.Errorf("no fault, want %q", tc.want)
			case f != nil && (tc.want == "" || f.Reason != ReasonDisabled || !strings.Contains(f.Message, tc.want)):
				t.Errorf("fault %v, want %q", f, tc.want)
			}
		})
	}
}
