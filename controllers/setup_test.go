package controllers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// TestCachedConfigMaps keeps the ConfigMaps that the manager and its pods make out of
// the cache: there may be many, and no Recipe takes a text from one.
func TestCachedConfigMaps(t *testing.T) {
	o, err := controllers.CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	var cached labels.Selector
	for kind, by := range o.ByObject {
		if _, ok := kind.(*corev1.ConfigMap); ok {
			cached = by.Label
		}
	}
	r := builders.MakeRecipe("a", "").Obj()
	pod := recipe.NewCheckPod(settings.Runtime{}, r, &recipe.Check{}, 1)
	for what, tc := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"a tenant's":           {map[string]string{"app": "x"}, true},
		"a check of a recipe":  {(&recipe.Check{}).ConfigMap(r, pod).Labels, false},
		"what belongs to runs": {map[string]string{v1alpha1.LabelRunUID: "u"}, false},
	} {
		if got := cached.Matches(labels.Set(tc.labels)); got != tc.want {
			t.Errorf("%s is cached: %v", what, got)
		}
	}
}
