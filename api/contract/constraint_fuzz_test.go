package contract_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// FuzzConstraint holds that no expression and no arguments hang or end the process,
// that what compiles is evaluated, and that every error is a fault of the right kind.
func FuzzConstraint(f *testing.F) {
	for _, expr := range []string{
		`args.items.all(i, i.qty < 10)`, `args == result`, `run.labels["tier"] == "prod"`, `call.previous.exists(p, p.tool == "x")`,
		`args.s.matches("^a+$")`, `[args].map(x, [x, x]).map(x, [x, x]) == []`, `args.a + args.b == args.c`, `timestamp(args.t) > timestamp("2026-01-01T00:00:00Z")`,
		`has(args.a.b) ? args.a.b[0] == 1 : size(args) < 3`, `type(args.n) == int && int(args.n) % 2 == 0`, `{"a": 1}[args.k] == 1`, `args.m.exists_one(k, k in args.l)`,
		`[1].map(x, {x: x}).map(x, {1: x}) == []`, `[[{1: [args]}]] == [1, 2].filter(x, x > 1)`,
	} {
		f.Add(expr, `{"items":[{"qty":1}],"s":"aaa","a":{"b":[1]},"n":3,"k":"a","l":["x"],"m":{"x":1},"t":"2026-03-01T00:00:00Z"}`)
	}
	f.Fuzz(func(t *testing.T, expr, args string) {
		if len(args) > 4096 {
			return
		}
		for _, withResult := range []bool{false, true} {
			c, err := contract.CompileConstraints([]contract.Constraint{{Expression: expr}}, withResult)
			if err != nil {
				if f, ok := contract.AsFault(err); !ok || f.Reason != contract.ReasonConstraintInvalid || f.Line < 1 || f.Column < 1 {
					t.Fatalf("%v", err)
				}
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			err = c.Check(ctx, contract.ConstraintVars{Args: json.RawMessage(args), Result: json.RawMessage(args)})
			if ctx.Err() != nil {
				t.Fatal("the evaluation hangs")
			}
			cancel()
			want := contract.ReasonConstraintViolated
			if withResult {
				want = contract.ReasonChildResultInvalid
			}
			if f, ok := contract.AsFault(err); err != nil && (!ok || f.Reason != want) {
				t.Fatalf("%v", err)
			}
		}
	})
}
