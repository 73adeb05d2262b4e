package agentrun_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// described makes a grant whose schemas have a description of so many bytes.
func described(name string, input, output int) *builders.Grant {
	schema := func(n int) string {
		if n == 0 {
			return ""
		}
		return `{"description":"` + strings.Repeat("d", n) + `"}`
	}
	return builders.MakeGrant(name, name).Schemas(schema(input), schema(output)).Ready("", "").
		Capabilities([]string{contract.CapabilityRunLabels}, []string{contract.CapabilityRunLabels})
}

func TestCatalogue(t *testing.T) {
	code := func(tools ...string) *builders.Run {
		return builders.MakeRun("r").Label("tier", "a").Code(echo, tools...)
	}
	tests := map[string]struct {
		run    *builders.Run
		recipe *builders.Recipe
		grants []*builders.Grant

		wantStep    contract.CatalogueStep // empty: there is no catalogue
		wantTools   []string
		wantStatus  metav1.ConditionStatus
		wantReason  string
		wantMessage string
	}{
		"code without tools": {run: code(), wantStep: contract.CatalogueFull, wantStatus: metav1.ConditionTrue, wantReason: "Full"},
		"code with tools that fit": {
			run: code("b", "a"), grants: []*builders.Grant{described("a", 10000, 10000), described("b", 100, 0)},
			wantStep: contract.CatalogueFull, wantTools: []string{"a", "b"}, wantStatus: metav1.ConditionTrue, wantReason: "Full",
		},
		"return schemas that do not fit": {
			run: code("a", "b"), grants: []*builders.Grant{described("a", 10000, 30000), described("b", 100, 100)},
			wantStep: contract.CatalogueWithoutReturnSchemas, wantTools: []string{"a", "b"},
			wantStatus: metav1.ConditionFalse, wantReason: "ReturnSchemasOmitted", wantMessage: "more than 32768 bytes",
		},
		"parameters that do not fit": {
			run: code("a", "b"), grants: []*builders.Grant{described("a", 33000, 0), described("b", 100, 100)},
			wantStep: contract.CatalogueEmpty, wantStatus: metav1.ConditionFalse, wantReason: "CatalogueEmpty", wantMessage: "name fewer tools",
		},
		"a tool that is granted and not asked for does not count": {
			run: code("b"), grants: []*builders.Grant{described("a", 33000, 0), described("b", 100, 100)},
			wantStep: contract.CatalogueFull, wantTools: []string{"b"}, wantStatus: metav1.ConditionTrue, wantReason: "Full",
		},
		"a recipe is reviewed and has none": {
			run: recipeRun(), recipe: builders.MakeRecipe("sweep", echo, "a").Ready("", ""), grants: []*builders.Grant{described("a", 33000, 0)},
			wantTools: []string{"a"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := agentrun.Snapshot{Now: now, Run: tc.run.Obj()}
			if tc.recipe != nil {
				s.Recipe = tc.recipe.Obj()
			}
			for _, g := range tc.grants {
				s.Grants = append(s.Grants, *g.Obj())
			}
			op := settings.Default()
			p := agentrun.Decide(op, s)
			if p.Verb != agentrun.VerbLaunch {
				t.Fatalf("verb %s: %s", p.Verb, p.Message)
			}
			b := p.Pin.Bundle
			var tools []string
			for _, x := range b.Tools {
				tools = append(tools, x.Tool.Name)
			}
			if d := cmp.Diff(tc.wantTools, tools); d != "" {
				t.Error(d)
			}
			if (b.Catalogue == nil) != (tc.wantStep == "") {
				t.Fatalf("catalogue %+v", b.Catalogue)
			}
			if b.Catalogue != nil {
				shown, err := agentrun.Catalogue(b.Tools)
				if err != nil {
					t.Fatal(err)
				}
				if b.Catalogue.Step != tc.wantStep || b.Catalogue.Digest != contract.Digest(shown.Text) {
					t.Errorf("catalogue %+v, want step %s and the digest of what the pinned tools show", b.Catalogue, tc.wantStep)
				}
			}
			if (b.Labels != nil) != (len(tools) > 0 && tc.recipe == nil) {
				t.Errorf("labels %v are pinned with the tools %v", b.Labels, tools)
			}
			before := checkSettled(t, op, s, p, agentrun.Done{})
			if c := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionCatalogueComplete); c != nil {
				t.Errorf("the condition is there before the pin: %+v", c)
			}
			after := checkSettled(t, op, s, p, agentrun.Done{Pinned: true, Launched: true})
			c := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionCatalogueComplete)
			switch {
			case tc.wantReason == "":
				if c != nil {
					t.Errorf("condition %+v", c)
				}
			case c == nil || c.Status != tc.wantStatus || c.Reason != tc.wantReason || !strings.Contains(c.Message, tc.wantMessage):
				t.Errorf("condition %+v, want %s %s %q", c, tc.wantStatus, tc.wantReason, tc.wantMessage)
			}
		})
	}
}

// TestCatalogueGoesWithItsExecution holds that an edit takes the verdict about the
// old catalogue away.
func TestCatalogueGoesWithItsExecution(t *testing.T) {
	op := settings.Default()
	s := agentrun.Snapshot{Now: now, Run: builders.MakeRun("r").Code(echo, "a").Obj(), Grants: []v1alpha1.ToolGrant{*described("a", 33000, 0).Obj()}}
	s.Run.Status = agentrun.Settle(op, s, agentrun.Decide(op, s), agentrun.Done{Pinned: true, Launched: true})
	s.Run.Spec.Code.Tools, s.Run.Generation = nil, 2
	p := agentrun.Decide(op, s)
	if p.Verb != agentrun.VerbSupersede {
		t.Fatalf("verb %s", p.Verb)
	}
	s.Run.Status = agentrun.Settle(op, s, p, agentrun.Done{})
	if c := meta.FindStatusCondition(s.Run.Status.Conditions, v1alpha1.ConditionCatalogueComplete); c != nil {
		t.Errorf("condition %+v", c)
	}
}
