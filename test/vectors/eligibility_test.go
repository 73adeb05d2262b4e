package vectors_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

type eligibilityCase struct {
	ID  string `json:"id"`
	Run struct {
		Namespace       string            `json:"namespace"`
		NamespaceLabels map[string]string `json:"namespaceLabels"`
		Labels          map[string]string `json:"labels"`
		Recipe          string            `json:"recipe"`
	} `json:"run"`
	Operator struct {
		CodeActDefault contract.CodeActPolicy `json:"codeActDefault"`
		HardDeny       []string               `json:"hardDeny"`
	} `json:"operator"`
	Now    time.Time         `json:"now"`
	Grants []json.RawMessage `json:"grants"`
	Asked  []string          `json:"asked"`
	Expect struct {
		Projected []string          `json:"projected"`
		Refused   map[string]string `json:"refused"`
	} `json:"expect"`
}

func TestEligibility(t *testing.T) {
	cases := casesOf[eligibilityCase](t, "eligibility")
	for _, tc := range cases {
		t.Run(tc.ID, func(t *testing.T) { tc.check(t) })
	}
	if len(cases) < 40 {
		t.Errorf("only %d cases", len(cases))
	}
}

func (tc eligibilityCase) check(t *testing.T) {
	var grants []contract.Grant
	for _, raw := range tc.Grants {
		grants = append(grants, readGrant(t, raw))
	}
	s := contract.Subject{
		Namespace: "team-a", NamespaceLabels: tc.Run.NamespaceLabels, Labels: tc.Run.Labels, Recipe: tc.Run.Recipe, Now: tc.Now,
	}
	if tc.Run.Namespace != "" {
		s.Namespace = tc.Run.Namespace
	}
	p := contract.Eligible(s, contract.Policy{CodeActDefault: tc.Operator.CodeActDefault, HardDeny: tc.Operator.HardDeny}, grants, tc.Asked)
	projected, refused := []string{}, map[string]string{}
	for _, g := range p.Tools {
		projected = append(projected, g.Tool.Name)
	}
	for _, r := range p.Refused {
		refused[r.Name] = string(r.Rule)
	}
	for _, r := range p.Refused {
		if r.Message == "" {
			t.Errorf("the refusal of %s says nothing", r.Name)
		}
	}
	if d := cmp.Diff(tc.Expect.Projected, projected); d != "" {
		t.Errorf("projected: %s", d)
	}
	if d := cmp.Diff(tc.Expect.Refused, refused); d != "" {
		t.Errorf("refused: %s", d)
	}
}

// readGrant reads a grant as the API would, and gives it the Ready condition
// that the case says.
func readGrant(t *testing.T, raw json.RawMessage) contract.Grant {
	t.Helper()
	g := v1alpha1.ToolGrant{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "g", Generation: 1}}
	var beside struct {
		Namespace string `json:"namespace"`
		Ready     *bool  `json:"ready"`
	}
	for _, into := range []any{&g.Spec, &beside} {
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	if beside.Namespace != "" {
		g.Namespace = beside.Namespace
	}
	if beside.Ready == nil || *beside.Ready {
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	}
	return g.Contract()
}
