package vectors_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/cmd/codeact/admit"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

type recipeFile struct {
	JSON any
	// Text is another file's, and Count how many there are, by their {i}.
	Text  string
	Count int
}

// UnmarshalJSON reads a file that is nothing but its text, too.
func (f *recipeFile) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return nil // no manifest
	}
	type plain recipeFile
	return json.Unmarshal(b, (*plain)(f))
}

type recipeCase struct {
	ID     string
	Group  string
	Note   string
	Files  map[string]recipeFile
	Grants []struct{ Tool contract.Tool }
	Call   *struct {
		Recipe       string
		Input, Tools json.RawMessage
	}
	Expect struct {
		OK     bool
		Reason *contract.Reason
		// Of calls.
		Value      json.RawMessage
		ChildCalls *int64
	}
}

func TestRecipeVectors(t *testing.T) {
	var file struct {
		About string
		Cases []recipeCase
	}
	load(t, "recipes.json", &file)
	kinds, err := admit.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(t)
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			switch {
			case bounds[c.ID]:
				c.root(t)
			case c.Call != nil:
				c.call(t, kinds["Recipe"], e)
			default:
				c.run(t, kinds["Recipe"])
			}
		})
	}
}

// read reads the files: the recipes that the API server takes, the ConfigMaps, and
// why it refused another one.
func (c recipeCase) read(t *testing.T, kind *admit.Kind) (all []v1alpha1.Recipe, maps map[string]*corev1.ConfigMap, refused string) {
	maps = map[string]*corev1.ConfigMap{}
	for _, f := range c.Files {
		if f.JSON == nil {
			continue
		}
		obj := expand(f.JSON).(map[string]any)
		if obj["kind"] == "ConfigMap" {
			var cm corev1.ConfigMap
			text, err := json.Marshal(obj)
			if err == nil {
				err = json.Unmarshal(text, &cm)
			}
			if err != nil {
				t.Fatal(err)
			}
			maps[cm.Name] = &cm
			continue
		}
		if obj["apiVersion"] != v1alpha1.GroupVersion.String() {
			refused = fmt.Sprintf("there is no %v", obj["apiVersion"])
			continue
		}
		if err := kind.Admit(t.Context(), obj); err != nil {
			refused = err.Error()
			continue
		}
		text, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		var r v1alpha1.Recipe
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all, maps, refused
}

func (c recipeCase) run(t *testing.T, kind *admit.Kind) {
	all, maps, refused := c.read(t, kind)
	var grants []v1alpha1.ToolGrant
	for _, g := range c.Grants {
		x := v1alpha1.ToolGrant{ObjectMeta: metav1.ObjectMeta{Name: g.Tool.Name}}
		x.Spec.Tool.Name = g.Tool.Name
		grants = append(grants, x)
	}
	var fault *contract.Fault
	for i := range all {
		p := recipe.Decide(settings.Default(), recipe.Snapshot{Now: time.Unix(0, 0), Recipe: &all[i], Recipes: all, Grants: grants, ConfigMaps: maps})
		// Whether tools are granted is not judged here.
		if p.Fault != nil && p.Fault.Reason != contract.ReasonToolsNotGranted {
			fault = p.Fault
		}
	}
	switch {
	case c.Expect.OK:
		if refused != "" || fault != nil {
			t.Errorf("refused: %s, %v", refused, fault)
		}
	case c.Expect.Reason == nil:
		if refused == "" && fault == nil {
			t.Errorf("not refused")
		}
	case fault == nil || fault.Reason != *c.Expect.Reason:
		t.Errorf("fault %v (%s), want %s", fault, refused, *c.Expect.Reason)
	}
}

// expand writes out the long texts and lists of the file's about; whole numbers
// become int64, as the API server has them.
func expand(x any) any {
	switch v := x.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = expand(v[i])
		}
	case map[string]any:
		times, _ := v["times"].(float64)
		if s, ok := v["repeat"].(string); ok {
			return strings.Repeat(s, int(times))
		}
		if parts, ok := v["concat"].([]any); ok {
			var out strings.Builder
			for _, p := range parts {
				out.WriteString(expand(p).(string))
			}
			return out.String()
		}
		if s, ok := v["list"].(string); ok {
			var out []any
			for i := range int(times) {
				out = append(out, strings.ReplaceAll(s, "{i}", fmt.Sprint(i+1)))
			}
			return out
		}
		for k := range v {
			v[k] = expand(v[k])
		}
	}
	return x
}
