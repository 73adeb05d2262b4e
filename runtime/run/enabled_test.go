package run

import (
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestNotEnabled: a bundle that nobody has enabled is executed by no pod, and the run
// learns why.
func TestNotEnabled(t *testing.T) {
	on := contract.Switch{Enabled: true, From: contract.LayerOperator}
	tests := map[string]func(*contract.Bundle){
		"nothing said": func(b *contract.Bundle) { b.CodeAct = contract.Switch{} },
		"disabled":     func(b *contract.Bundle) { b.CodeAct = contract.Switch{From: contract.LayerNamespace} },
		"recipes disabled": func(b *contract.Bundle) {
			b.Recipe, b.Recipes = &contract.PinnedRecipe{}, contract.Switch{From: on.From}
		},
		"recipes never said": func(b *contract.Bundle) { b.Recipe = &contract.PinnedRecipe{} },
	}
	for name, edit := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, `function main() { return tools.call("pay", {}) }`, contract.EffectReadOnly, says("{}"))
			edit(&p.bundle)
			p.pin()
			p.wantFailed(p.run(), contract.ReasonDisabled)
			if len(p.toolHits) != 0 || len(p.last().Calls) != 0 {
				t.Errorf("the tool was called %d times, and the report has %v", len(p.toolHits), p.last().Calls)
			}
		})
	}
}
