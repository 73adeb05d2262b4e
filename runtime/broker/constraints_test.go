package broker

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

func TestConstraints(t *testing.T) {
	if testing.Short() {
		t.Skip("the first expression takes a moment to compile")
	}
	one := func(expr, message string) []contract.Constraint {
		return []contract.Constraint{{Expression: expr, Message: message}}
	}
	tests := map[string]struct {
		before, after []contract.Constraint
		args          string
		want          contract.Reason
		message       string
		end           string
		sent          int
	}{
		"holds":        {one(`args.amount <= 100`, "too much"), nil, `{"amount":100}`, "", "", "2 x Completed ", 1},
		"does not":     {one(`args.amount <= 100`, "too much"), nil, `{"amount":101}`, contract.ReasonConstraintViolated, "tool x: too much", "0 x Refused ConstraintViolated", 0},
		"no such key":  {one(`args.amount <= 100`, ""), nil, `{}`, contract.ReasonConstraintViolated, "", "0 x Refused ConstraintViolated", 0},
		"result holds": {nil, one(`result.ok == true`, ""), `{}`, "", "", "2 x Completed ", 1},
		"result not":   {nil, one(`result.ok == false`, "bad"), `{}`, contract.ReasonChildResultInvalid, "tool x: bad", "2 x Completed ChildResultInvalid", 1},
		"the run":      {one(`run.namespace == "n" && run.name == "r" && run.labels["team"] == "a" && run.recipe == "rec"`, ""), nil, `{}`, "", "", "2 x Completed ", 1},
		"the call": {
			one(`call.sequence == 2 && size(call.previous) == 1 && call.previous[0].tool == "look"`, ""),
			one(`call.sequence == 2 && size(call.previous) == 1`, ""), `{}`, "", "", "2 x Completed ", 1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			backend := &fake{answer: func(context.Context, Request) (Answer, error) { return answerOf(`{"ok":true}`), nil }}
			x := toolOf("x", contract.EffectEffectful, backend)
			x.Constraints, x.ResultConstraints = tc.before, tc.after
			b := newBroker(t, Config{
				Tools:  []Tool{x, toolOf("look", contract.EffectReadOnly, &fake{})},
				Labels: map[string]string{"team": "a"}, Recipe: "rec",
			})
			if _, err := b.Call(t.Context(), "look", json.RawMessage("{}")); err != nil {
				t.Fatal(err)
			}
			_, err := b.Call(t.Context(), "x", json.RawMessage(tc.args))
			f, _ := contract.AsFault(err)
			if got := reasonOf(err); got != tc.want || tc.message != "" && f.Message != tc.message {
				t.Errorf("error %v, want the reason %q", err, tc.want)
			}
			if len(backend.requests) != tc.sent {
				t.Errorf("sent %d times, want %d", len(backend.requests), tc.sent)
			}
			r := b.End()
			if diff := cmp.Diff([]string{"1 look Completed ", tc.end}, states(r.Calls)); diff != "" {
				t.Errorf("journal (-want +got):\n%s", diff)
			}
			if r.Admitted != int64(1+tc.sent) {
				t.Errorf("%d calls were charged", r.Admitted)
			}
		})
	}
}

func TestNewRefusesABrokenConstraint(t *testing.T) {
	x := toolOf("x", contract.EffectReadOnly, &fake{})
	x.ResultConstraints = []contract.Constraint{{Expression: "result."}}
	if _, err := New(Config{Tools: []Tool{x}}); reasonOf(err) != contract.ReasonConstraintInvalid {
		t.Errorf("error %v", err)
	}
}
