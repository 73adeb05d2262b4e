package recipe_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// TestEnabled: a recipe is judged all the same where none may run, and says so.
func TestEnabled(t *testing.T) {
	override := settings.Switch{Enabled: true, AllowNamespaceOverride: true}
	tests := map[string]struct {
		operator    func(*settings.Operator)
		annotations map[string]string
		recipe      *builders.Recipe
		wantReady   string
		wantWhy     string // empty is Enabled
	}{
		"on":      {wantReady: v1alpha1.ReasonReady},
		"off":     {operator: func(o *settings.Operator) { o.Recipes.Enabled = false }, wantReady: v1alpha1.ReasonReady, wantWhy: "recipes is disabled by the operator"},
		"all off": {operator: func(o *settings.Operator) { o.CodeAct.Enabled = false }, wantReady: v1alpha1.ReasonReady, wantWhy: "codeAct is disabled by the operator"},
		"off by its namespace": {
			operator: func(o *settings.Operator) { o.Recipes = override }, annotations: map[string]string{v1alpha1.AnnotationRecipesEnabled: "false"},
			wantReady: v1alpha1.ReasonReady, wantWhy: "recipes is disabled by the annotation codeact.dev/recipes-enabled",
		},
		"an annotation that does not count": {annotations: map[string]string{v1alpha1.AnnotationRecipesEnabled: "false"}, wantReady: v1alpha1.ReasonReady},
		"off, and bad besides": {
			operator: func(o *settings.Operator) { o.Recipes.Enabled = false }, recipe: builders.MakeRecipe("run_code", "function main() {}"),
			wantReady: string(contract.ReasonReservedName), wantWhy: "recipes is disabled",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			op := settings.Default()
			if tc.operator != nil {
				tc.operator(&op)
			}
			if tc.recipe == nil {
				tc.recipe = builders.MakeRecipe("sweep", "function main() {}")
			}
			s := recipe.Snapshot{Now: now, Recipe: tc.recipe.Obj(), NamespaceAnnotations: tc.annotations}
			st := recipe.Settle(s, recipe.Decide(op, s))
			ready, enabled := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionEnabled)
			if ready == nil || enabled == nil {
				t.Fatalf("conditions %v", st.Conditions)
			}
			if ready.Reason != tc.wantReady {
				t.Errorf("Ready has the reason %s (%s), want %s", ready.Reason, ready.Message, tc.wantReady)
			}
			want, reason := metav1.ConditionTrue, v1alpha1.ReasonEnabled
			if tc.wantWhy != "" {
				want, reason = metav1.ConditionFalse, string(contract.ReasonDisabled)
				if ready.Status == metav1.ConditionTrue && !strings.Contains(ready.Message, "Disabled") {
					t.Errorf("Ready is silent about it: %s", ready.Message)
				}
			}
			if enabled.Status != want || enabled.Reason != reason || !strings.Contains(enabled.Message, tc.wantWhy) {
				t.Errorf("Enabled is %s %s (%s), want %q", enabled.Status, enabled.Reason, enabled.Message, tc.wantWhy)
			}
		})
	}
}
