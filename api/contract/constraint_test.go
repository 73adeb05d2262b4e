package contract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

var constraintRun = contract.ConstraintRun{
	Namespace: "team-a", Name: "nightly", Labels: map[string]string{"tier": "prod"}, Recipe: "reorder",
}

func TestConstraints(t *testing.T) {
	const args = `{"sku":"AB-1","quantity":3,"price":2.5,"whole":1.0,"big":12345678901234567890,"ratio":1e-3,` +
		`"tags":["a","b"],"items":[{"sku":"x","qty":1},{"sku":"y","qty":2}],"when":"2026-03-01T12:00:00Z","nothing":null,"deep":{"a":{"b":7}}}`
	previous := []contract.PreviousCall{
		{Tool: "search", State: contract.CallCompleted},
		{Tool: "place", State: contract.CallFailed, Reason: contract.ReasonToolFailed},
	}
	tests := map[string]struct {
		expr       string
		message    string
		result     string // not empty: a result constraint
		args       string
		wantReason contract.Reason // empty: it holds
		want       string          // the message
	}{
		"a literal":                      {expr: `true`},
		"a string":                       {expr: `args.sku == "AB-1"`},
		"a whole number is an int":       {expr: `type(args.quantity) == int && args.quantity % 2 == 1`},
		"one with a fraction of 0, too":  {expr: `type(args.whole) == int && args.whole == 1`},
		"another is a double":            {expr: `type(args.price) == double && args.ratio < 0.01`},
		"beyond 64 bits is a double":     {expr: `type(args.big) == double && args.big > 1e19`},
		"numbers compare across types":   {expr: `args.price > 2 && args.quantity < 3.5 && args.whole == 1.0`},
		"has of what is there":           {expr: `has(args.sku) && !has(args.other) && args.nothing == null`},
		"a list":                         {expr: `"a" in args.tags && size(args.tags) == 2 && !(1 in args.tags)`},
		"all items":                      {expr: `args.items.all(i, i.qty < 10 && i.sku.matches("^[a-z]$"))`},
		"filter, map and exists":         {expr: `args.items.filter(i, i.qty > 1).map(i, i.sku) == ["y"] && args.items.exists(i, i.qty == 2)`},
		"a map's keys":                   {expr: `args.deep.all(k, k == "a")`},
		"an index by name":               {expr: `args["sku"].startsWith("AB-") && args["items"].size() < 10 && args["tags"].all(t, t != "c")`},
		"a time":                         {expr: `timestamp(args.when) < timestamp("2027-01-01T00:00:00Z") && timestamp(args.when).getHours() == 12`},
		"deep":                           {expr: `args.deep.a.b == 7 && args.deep == {"a": {"b": 7}}`},
		"the run":                        {expr: `run.namespace == "team-a" && run.name == "nightly" && run.recipe == "reorder"`},
		"its labels":                     {expr: `run.labels["tier"] == "prod" && run.labels.tier == "prod" && !has(run.labels.x) && !("x" in run.labels)`},
		"the call":                       {expr: `call.sequence == 3 && call.previous.size() == 2 && call.previous[1].state == "Failed"`},
		"what was called":                {expr: `call.previous.exists(p, p.tool == "place" && p.reason == "ToolFailed")`},
		"what must not have been called": {expr: `!call.previous.exists(p, p.tool == "place")`, wantReason: contract.ReasonConstraintViolated, want: `constraints[0] does not hold: !call.previous.exists(p, p.tool == "place")`},
		"false says its message":         {expr: `args.quantity <= 2`, message: "order at most 2", wantReason: contract.ReasonConstraintViolated, want: "order at most 2"},
		"the result":                     {expr: `result.total == 4 && args.quantity == 3`, result: `{"total":4}`},
		"a result that is false":         {expr: `result == 5`, message: "not five", result: `4`, wantReason: contract.ReasonChildResultInvalid, want: "not five"},
		"a ternary":                      {expr: `(has(args.max) ? args.max : args.quantity) == 3`},
		"strings grow":                   {expr: `size(args.sku + "/" + args.when) < 100`},
		"arguments that are no object":   {expr: `args == null`, args: ` `},

		"no such key fails closed": {expr: `args.other == 1`, wantReason: contract.ReasonConstraintViolated,
			want: "constraints[0] cannot be evaluated, so it does not hold: no such key at 1:5"},
		"a negation of it, too": {expr: `!(args.other == 1)`, wantReason: contract.ReasonConstraintViolated,
			want: "constraints[0] cannot be evaluated, so it does not hold: no such key at 1:7"},
		"it keeps its message": {expr: `args.quantity <= 2 || run.labels["x"] == "y"`, message: "order at most 2", wantReason: contract.ReasonConstraintViolated,
			want: "order at most 2 (constraints[0] cannot be evaluated, so it does not hold: no such key at 1:33)"},
		"the key is not quoted": {expr: `run.labels[args.sku] == "x"`, wantReason: contract.ReasonConstraintViolated,
			want: "constraints[0] cannot be evaluated, so it does not hold: no such key at 1:11"},
		"an overload": {expr: `args.price * args.quantity < 10`, wantReason: contract.ReasonConstraintViolated,
			want: "constraints[0] cannot be evaluated, so it does not hold: no such overload at 1:12"},
		"matches of no string": {expr: `args.quantity.matches("^3$")`, wantReason: contract.ReasonConstraintViolated,
			want: "constraints[0] cannot be evaluated, so it does not hold: no such overload at 1:22"},
		"an index": {expr: `args.tags[7] == "x"`, wantReason: contract.ReasonConstraintViolated,
			want: "constraints[0] cannot be evaluated, so it does not hold: index out of bounds at 1:10"},
		"a conversion does not quote": {expr: `int(args.sku) == 1`, wantReason: contract.ReasonConstraintViolated,
			want: "constraints[0] cannot be evaluated, so it does not hold: type conversion error at 1:4"},
		"a division": {expr: `1 / (args.quantity - 3) == 1`, wantReason: contract.ReasonConstraintViolated,
			want: "constraints[0] cannot be evaluated, so it does not hold: division by zero at 1:3"},
		"a dyn that is no bool": {expr: `args.quantity || false`, wantReason: contract.ReasonConstraintViolated,
			want: "constraints[0] cannot be evaluated, so it does not hold: no such overload at 1:15"},
		"arguments that are not JSON": {expr: `true`, args: `{`, wantReason: contract.ReasonConstraintViolated,
			want: "the constraints cannot be evaluated: the arguments are not JSON, or hold a number beyond what a double can hold"},
		"a result that is not JSON": {expr: `true`, result: `{`, wantReason: contract.ReasonChildResultInvalid,
			want: "the constraints cannot be evaluated: the result is not JSON, or holds a number beyond what a double can hold"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := contract.CompileConstraints([]contract.Constraint{{Expression: tc.expr, Message: tc.message}}, tc.result != "")
			if err != nil {
				t.Fatal(err)
			}
			v := contract.ConstraintVars{Args: json.RawMessage(args), Run: constraintRun,
				Call: contract.ConstraintCall{Sequence: 3, Previous: previous}}
			if tc.result != "" {
				v.Result = json.RawMessage(tc.result)
			}
			if tc.args != "" {
				v.Args = json.RawMessage(strings.TrimSpace(tc.args))
			}
			checkFault(t, c.Check(t.Context(), v), tc.wantReason, tc.want)
		})
	}
}

func checkFault(t *testing.T, err error, wantReason contract.Reason, want string) {
	t.Helper()
	if wantReason == "" {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	f, ok := contract.AsFault(err)
	if !ok || f.Reason != wantReason {
		t.Fatalf("error %v, want the fault %s", err, wantReason)
	}
	if d := cmp.Diff(want, f.Message); d != "" {
		t.Error(d)
	}
}

func TestCompileConstraintsRefuses(t *testing.T) {
	tests := map[string]struct {
		expr   string
		result bool
		want   string
	}{
		"syntax":              {expr: "args.a ==", want: "constraints[0] at 1:10: Syntax error: "},
		"second line":         {expr: "args.a == 1 &&\n  run.x == 2", want: "constraints[0] at 2:6: undefined field 'x'"},
		"a label":             {expr: "run.labels == 1", want: "constraints[0] at 1:12: found no matching overload"},
		"a name":              {expr: "arg.a == 1", want: "constraints[0] at 1:1: undeclared reference to 'arg': there are args, run and call, and"},
		"the meter":           {expr: "@meter == 1", want: "constraints[0] at 1:1: Syntax error"},
		"result in a call":    {expr: "result == 1", want: "constraints[0] at 1:1: undeclared reference to 'result': only resultConstraints see it"},
		"a call of a result":  {expr: "result.foo() == 1", result: true, want: "resultConstraints[0] at 1:11: undeclared reference to 'foo': there are args, result, run and call, and"},
		"no bool":             {expr: "args.a", want: "constraints[0] at 1:1: the expression is of type dyn, it must be bool"},
		"an int":              {expr: "1 + 1", want: "constraints[0] at 1:1: the expression is of type int, it must be bool"},
		"a call field":        {expr: "call.previous.all(p, p.args == 1)", want: "constraints[0] at 1:23: undefined field 'args'"},
		"an extension":        {expr: "args.s.replace('a', 'b') == ''", want: "undeclared reference to 'replace'"},
		"a message":           {expr: "google.protobuf.Struct{} == args", want: "undeclared reference to 'google.protobuf.Struct'"},
		"too long":            {expr: "true" + strings.Repeat(" ", contract.MaxConstraintChars), want: "expression code point size exceeds limit"},
		"a pattern of args":   {expr: "args.a.matches(args.b)", want: "constraints[0] at 1:20: the pattern of matches() must be a literal string"},
		"a computed pattern":  {expr: "args.a.matches('a' + 'b')", want: "must be a literal string"},
		"a function's":        {expr: "matches(args.a, args.b)", want: "must be a literal string"},
		"lookahead":           {expr: "args.a.matches('(?=x)')", want: "constraints[0] at 1:16: the pattern is not of RE2 syntax: invalid or unsupported Perl syntax: `(?=` (there is no lookahead"},
		"a large pattern":     {expr: "args.a.matches('(abcdef){500}')", want: "the pattern is too large"},
		"a repeated pattern":  {expr: "args.a.matches('((a{100}){100}){100}')", want: "invalid repeat count"},
		"a loop in a loop":    {expr: "args.a.all(x, args.b.all(y, x != y))", want: "the expression may cost"},
		"strings that double": {expr: "args.a.map(x, args.s + args.s).size() > 0", want: "the expression may cost"},
		"contains of args":    {expr: "args.a.contains(args.b)", want: "the expression may cost"},
		"a type that doubles": {expr: "[1]" + strings.Repeat(".map(x,{x:x})", 40) + " == []", want: "constraints[0] at 1:12: the key of a map must be a literal"},
		"loops in loops":      {expr: strings.Repeat("[1].map(x,", 40) + "x" + strings.Repeat(")", 40) + " == []", want: "nest more than 32 deep"},
		"loops behind loops":  {expr: "args" + strings.Repeat(".filter(x, true)", 40) + " == []", want: "nest more than 32 deep"},
		"lists in lists":      {expr: strings.Repeat("[", 90) + strings.Repeat("]", 90) + " == []", want: "nest more than 32 deep"},
		"maps in maps":        {expr: strings.Repeat("{1:", 90) + "1" + strings.Repeat("}", 90) + " == {}", want: "nest more than 32 deep"},
		"deep":                {expr: strings.Repeat("(", 300) + "true" + strings.Repeat(")", 300), want: "recursion"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := contract.CompileConstraints([]contract.Constraint{{Expression: tc.expr}}, tc.result)
			f, ok := contract.AsFault(err)
			if !ok || f.Reason != contract.ReasonConstraintInvalid || !strings.Contains(f.Message, tc.want) {
				t.Fatalf("error %v, want ConstraintInvalid with %q", err, tc.want)
			}
			if f.Line < 1 || f.Column < 1 {
				t.Errorf("at %d:%d", f.Line, f.Column)
			}
		})
	}
	many := make([]contract.Constraint, contract.MaxConstraints+1)
	for i := range many {
		many[i].Expression = "true"
	}
	if _, err := contract.CompileConstraints(many, false); err == nil {
		t.Error("a list that is too long compiles")
	}
	list := []contract.Constraint{{Expression: "true"}, {Expression: "1"}}
	if _, err := contract.CompileConstraints(list, true); err == nil || !strings.Contains(err.Error(), "resultConstraints[1] at 1:1") {
		t.Errorf("the second one is not named: %v", err)
	}
}

func TestConstraintsOfNone(t *testing.T) {
	c, err := contract.CompileConstraints(nil, false)
	if c != nil || err != nil {
		t.Fatalf("got %v, %v", c, err)
	}
	if err := c.Check(t.Context(), contract.ConstraintVars{}); err != nil {
		t.Error(err)
	}
}

// TestConstraintsAreOrdered holds that the first one that does not hold speaks.
func TestConstraintsAreOrdered(t *testing.T) {
	c, err := contract.CompileConstraints([]contract.Constraint{
		{Expression: "true"}, {Expression: "args.a == 1", Message: "first"}, {Expression: "args.b == 1", Message: "second"},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Check(t.Context(), contract.ConstraintVars{Args: json.RawMessage(`{"a":2,"b":2}`)})
	checkFault(t, err, contract.ReasonConstraintViolated, "first")
}

// TestHostileConstraints holds that what an evaluation may cost is bounded, both
// when the expression is hostile and when the arguments are.
func TestHostileConstraints(t *testing.T) {
	list := func(item string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	big := `{"s":"` + strings.Repeat("a", 1<<20-20) + `"}`
	tests := map[string]struct {
		expr, args string
		holds      bool
	}{
		"lists that hold lists twice": {expr: strings.Repeat("[1]"+strings.Repeat(".map(x,[x,x])", 28)+" == ", 1) + "[1]" + strings.Repeat(".map(x,[x,x])", 28)},
		"one of them in another":      {expr: "[1]" + strings.Repeat(".map(x,[x,x])", 28) + " in [[1]" + strings.Repeat(".map(x,[x,x])", 28) + "]"},
		"lists that double":           {expr: "[[1]]" + strings.Repeat(".map(x,x+x)", 28) + "[0].size() > 0", holds: true},
		"empty lists that double":     {expr: "1 in [[]]" + strings.Repeat(".map(x,x+x)", 28) + "[0]"},
		"strings that double":         {expr: "['abcdefgh']" + strings.Repeat(".map(x,x+x)", 28) + "[0].size() > 0"},
		"bytes that double":           {expr: "[b'abcdefgh']" + strings.Repeat(".map(x,x+x)", 28) + "[0].size() > 0"},
		"a large argument twice":      {expr: "args.s + args.s" + strings.Repeat(" + args.s", 20) + " != ''", args: big},
		"conversions":                 {expr: "[" + strings.TrimSuffix(strings.Repeat("bytes(args.s),", 40), ",") + "].size() > 0", args: big},
		"a pattern over a large text": {expr: `args.s.matches("^(a|aa|aaa|aaaa|b)*(c|cc|ccc)*$")`, args: big, holds: true},
		"many items":                  {expr: "args.all(x, x == 1)", args: list("1", 1<<19), holds: true},
		"many items in a loop twice":  {expr: "args.all(x, x.all(y, y.all(z, z == 1)))", args: "[" + list(list("1", 600), 600) + "]", holds: true},
		"many lists":                  {expr: "args.map(x, [x, x, x]).size() > 0", args: list("1", 1<<19)},
		"a large value many times":    {expr: "[1,2,3,4,5,6,7,8,9,10].all(x, args == args && args == args)", args: list("1", 1<<19)},
		"a large text in a loop":      {expr: "args.l.all(x, size(args.s) > 0)", args: `{"s":"` + strings.Repeat("é", 1<<17) + `","l":` + list("1", 1<<18) + `}`},
		"the calls before in a loop":  {expr: "args.all(x, call.previous.size() == 256)", args: list("1", 1<<19), holds: true},
		"deep arguments":              {expr: "args == args", args: strings.Repeat("[", 9000) + strings.Repeat("]", 9000), holds: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c, err := contract.CompileConstraints([]contract.Constraint{{Expression: tc.expr}}, false)
			if err != nil {
				t.Log(err)
				return
			}
			start := time.Now()
			err = c.Check(ctx, contract.ConstraintVars{
				Args: json.RawMessage(tc.args), Call: contract.ConstraintCall{Sequence: 257, Previous: make([]contract.PreviousCall, 256)}})
			t.Logf("%s: %v", time.Since(start), err)
			if (err == nil) != tc.holds {
				t.Errorf("error %v, want that it holds: %v", err, tc.holds)
			}
			if ctx.Err() != nil {
				t.Error("it took more than a minute")
			}
		})
	}
}

func TestConstraintsAreInterrupted(t *testing.T) {
	c, err := contract.CompileConstraints([]contract.Constraint{{Expression: "args.all(x, x == 1)"}}, false)
	if err != nil {
		t.Fatal(err)
	}
	args := json.RawMessage("[" + strings.Repeat("1,", 1<<18) + "1]")
	for name, wait := range map[string]time.Duration{"before": 0, "while": 10 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			err := c.Check(ctx, contract.ConstraintVars{Args: args})
			if err == nil || !strings.Contains(err.Error(), "the time of the call is over") {
				t.Fatal(err)
			}
		})
	}
}

func BenchmarkConstraints(b *testing.B) {
	args := map[string]string{
		"small":  `{"sku":"AB-1","quantity":3,"items":[{"qty":1}]}`,
		"256 KB": `{"sku":"AB-1","quantity":3,"items":[` + strings.TrimSuffix(strings.Repeat(`{"qty":1,"name":"something"},`, 9000), ",") + `]}`,
	}
	c, err := contract.CompileConstraints([]contract.Constraint{
		{Expression: `args.sku.matches("^[A-Z]{2}-[0-9]+$") && args.quantity <= 10`}, {Expression: `args.items.all(i, i.qty < 10)`},
	}, false)
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []string{"small", "256 KB"} {
		b.Run(size, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Check(b.Context(), contract.ConstraintVars{Args: json.RawMessage(args[size]), Run: constraintRun}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompileConstraints(b *testing.B) {
	for b.Loop() {
		if _, err := contract.CompileConstraints([]contract.Constraint{{Expression: `args.items.all(i, i.qty < 10 && i.sku.matches("^[A-Z]{2}$"))`}}, false); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleConstraints() {
	c, err := contract.CompileConstraints([]contract.Constraint{{Expression: "args.quantity <= 10", Message: "order at most 10 pieces"}}, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Check(context.Background(), contract.ConstraintVars{Args: json.RawMessage(`{"quantity": 11}`)}))
	// Output: ConstraintViolated: order at most 10 pieces
}
