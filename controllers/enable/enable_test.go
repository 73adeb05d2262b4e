package enable_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/enable"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

// switches are the two, and how one is set without the other.
var switches = map[string]struct {
	key   string
	set   func(*settings.Operator, settings.Switch)
	judge func(settings.Operator, string, map[string]string) enable.Verdict
}{
	"codeAct": {v1alpha1.AnnotationCodeActEnabled, func(o *settings.Operator, s settings.Switch) { o.CodeAct = s }, enable.CodeAct},
	"recipes": {v1alpha1.AnnotationRecipesEnabled, func(o *settings.Operator, s settings.Switch) { o.Recipes = s }, enable.Recipes},
}

// TestSwitch is every combination of the operator's value, of whether the namespace
// may override it, and of the annotation.
func TestSwitch(t *testing.T) {
	const absent = "(absent)"
	type want struct {
		on   bool
		from contract.Layer
		why  string
	}
	operatorOn, operatorOff := want{on: true, from: contract.LayerOperator}, want{from: contract.LayerOperator, why: ".enabled is false"}
	on, off := want{on: true, from: contract.LayerNamespace}, want{from: contract.LayerNamespace, why: `"false" of Namespace team-a`}
	bad := want{from: contract.LayerNamespace, why: `neither "true" nor "false"`}
	values := []string{absent, "true", "false", "", "True", "yes", "1", " true", "true\n", strings.Repeat("true", 1000)}
	for name, s := range switches {
		for _, enabled := range []bool{true, false} {
			for _, override := range []bool{true, false} {
				for _, value := range values {
					expect := operatorOff
					switch {
					case !override || value == absent:
						if enabled {
							expect = operatorOn
						}
					case value == "true":
						expect = on
					case value == "false":
						expect = off
					default:
						expect = bad
					}
					op := settings.Operator{}
					s.set(&op, settings.Switch{Enabled: enabled, AllowNamespaceOverride: override})
					annotations := map[string]string{"other": "true"}
					if value != absent {
						annotations[s.key] = value
					}
					got := s.judge(op, "team-a", annotations)
					if got.Enabled != expect.on || got.From != expect.from {
						t.Errorf("%s, operator %v, override %v, annotation %.20q: %+v, want %+v", name, enabled, override, value, got, expect)
					}
					if (got.Why == "") != got.Enabled || !strings.Contains(got.Why, expect.why) || len(got.Why) > 300 {
						t.Errorf("%s, operator %v, override %v, annotation %.20q: why %q, want %q in it", name, enabled, override, value, got.Why, expect.why)
					}
					if !got.Enabled && !strings.HasPrefix(got.Why, name+" is disabled") {
						t.Errorf("the message does not name the switch %s: %q", name, got.Why)
					}
				}
			}
		}
	}
}

func TestSwitchesAreApart(t *testing.T) {
	op := settings.Operator{CodeAct: settings.Switch{Enabled: true, AllowNamespaceOverride: true}, Recipes: settings.Switch{AllowNamespaceOverride: true}}
	annotations := map[string]string{v1alpha1.AnnotationCodeActEnabled: "false", v1alpha1.AnnotationRecipesEnabled: "true"}
	if enable.CodeAct(op, "team-a", annotations).Enabled || !enable.Recipes(op, "team-a", annotations).Enabled {
		t.Error("one switch takes the annotation of the other")
	}
}

func TestKept(t *testing.T) {
	if got := enable.Kept(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}); got != nil {
		t.Errorf("kept %v", got)
	}
	want := map[string]string{v1alpha1.AnnotationCodeActEnabled: "", v1alpha1.AnnotationRecipesEnabled: "true"}
	if d := cmp.Diff(want, enable.Kept(map[string]string{v1alpha1.AnnotationCodeActEnabled: "", v1alpha1.AnnotationRecipesEnabled: "true", "a": "b"})); d != "" {
		t.Error(d)
	}
}

func TestChanged(t *testing.T) {
	key := v1alpha1.AnnotationRecipesEnabled
	tests := map[string]struct {
		before, after map[string]string
		want          bool
	}{
		"nothing":            {},
		"another annotation": {before: map[string]string{key: "true"}, after: map[string]string{key: "true", "a": "b"}},
		"set":                {after: map[string]string{key: "true"}, want: true},
		"set to nothing":     {after: map[string]string{key: ""}, want: true},
		"changed":            {before: map[string]string{key: "true"}, after: map[string]string{key: "false"}, want: true},
		"removed":            {before: map[string]string{key: ""}, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			of := func(a map[string]string) *metav1.PartialObjectMetadata {
				return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Annotations: a}}
			}
			if got := enable.Changed().Update(event.UpdateEvent{ObjectOld: of(tc.before), ObjectNew: of(tc.after)}); got != tc.want {
				t.Errorf("passed: %v, want %v", got, tc.want)
			}
			if !enable.Changed().Create(event.CreateEvent{Object: of(tc.after)}) {
				t.Error("a namespace that comes does not pass")
			}
		})
	}
}
