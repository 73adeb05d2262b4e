package toolgrant_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/status"
	"github.com/codeact-dev/codeact-operator/controllers/toolgrant"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

func TestDecideConstraints(t *testing.T) {
	grant := func() *builders.Grant { return builders.MakeGrant("search", "search").Created(now) }
	tests := map[string]struct {
		grant       *builders.Grant
		wantMessage string // empty: accepted
	}{
		"good ones": {grant: grant().Constraints(`args.quantity <= 10`, `run.labels["tier"] == "prod"`).ResultConstraints(`result.total < 100`)},
		"one that does not parse": {
			grant:       grant().Constraints(`true`, `args.quantity <=`),
			wantMessage: "spec.grant.constraints[1] at 1:17: Syntax error",
		},
		"an unknown field": {
			grant:       grant().Constraints("true &&\nrun.user == 'me'"),
			wantMessage: "spec.grant.constraints[0] at 2:4: undefined field 'user'",
		},
		"a call that looks at the result": {
			grant: grant().Constraints(`result == 1`), wantMessage: "spec.grant.constraints[0] at 1:1: undeclared reference to 'result'",
		},
		"a bad one for results": {
			grant:       grant().Constraints(`true`).ResultConstraints(`size(result)`),
			wantMessage: "spec.grant.resultConstraints[0] at 1:1: the expression is of type int, it must be bool",
		},
		"one that may cost too much": {
			grant:       grant().Constraints(`args.a.all(x, args.b.all(y, x != y))`),
			wantMessage: "spec.grant.constraints[0] at 1:1: the expression may cost",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := toolgrant.Snapshot{Now: now, Grant: tc.grant.Obj()}
			p := toolgrant.Decide(s)
			g := s.Grant.DeepCopy()
			g.Status = toolgrant.Settle(s, p)
			c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
			want, wantReason := metav1.ConditionTrue, v1alpha1.ReasonReady
			if tc.wantMessage != "" {
				want, wantReason = metav1.ConditionFalse, string(contract.ReasonConstraintInvalid)
			}
			if c == nil || c.Status != want || c.Reason != wantReason || !strings.Contains(c.Message, tc.wantMessage) {
				t.Errorf("Ready is %+v, want %s %s %q", c, want, wantReason, tc.wantMessage)
			}
			if !meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionSchemaValid) {
				t.Error("the schemas are called invalid")
			}
			if err := status.CheckKstatus(g.Generation, g.Status.ObservedGeneration, g.Status.Conditions, v1alpha1.ConditionReady); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDecideIsBoundedInTime judges a grant with as many and as large expressions
// as there may be.
func TestDecideIsBoundedInTime(t *testing.T) {
	fill := func(unit, sep string) string {
		return strings.TrimSuffix(strings.Repeat(unit+sep, contract.MaxConstraintChars/len(unit+sep)), sep)
	}
	tests := map[string]string{
		"comparisons":   fill("args.a==1", "||"),
		"parentheses":   "true||" + strings.Repeat("(", 90) + "true" + strings.Repeat(")", 90),
		"open brackets": fill("[", ""),
		"negations":     fill("!", ""),
		"ternaries":     fill("true?true:", "") + "x",
		"loops":         "[1]" + fill(".map(x,[x,x])", "") + "",
		"nested loops":  strings.Repeat("[1].all(x,", 90) + "true" + strings.Repeat(")", 90),
		"lists":         "[" + fill("[1]", ",") + "]==[]",
		"patterns":      fill("''.matches('a{1000}')", "||"),
		"generics":      "[" + fill("{1:[]}", ",") + "]==args",
		"garbage":       fill("a.?[(", ""),
	}
	for name, expr := range tests {
		t.Run(name, func(t *testing.T) {
			if len(expr) > contract.MaxConstraintChars {
				expr = expr[:contract.MaxConstraintChars]
			}
			list := make([]string, contract.MaxConstraints)
			for i := range list {
				list[i] = expr
			}
			s := toolgrant.Snapshot{Now: now, Grant: builders.MakeGrant("x", "x").Constraints(list...).ResultConstraints(list...).Obj()}
			start := time.Now()
			p := toolgrant.Decide(s)
			took := time.Since(start)
			t.Logf("%s: %s: %.100v", took, p, p.Fault)
			if took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}
