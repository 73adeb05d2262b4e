package contract

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// TestEveryReasonHasAClass reads the constants of reason.go: each must have
// exactly one class, and a name that a condition may carry.
func TestEveryReasonHasAClass(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[Reason]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		lit, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		v, _ := strconv.Unquote(lit.Value)
		if "Reason"+v != spec.Names[0].Name {
			t.Errorf("%s is %q", spec.Names[0].Name, v)
		}
		if seen[Reason(v)] {
			t.Errorf("%q is there twice", v)
		}
		seen[Reason(v)] = true
		if !Reason(v).Known() || Reason(v).Class() == "" {
			t.Errorf("%q has no class", v)
		}
		return true
	})
	if len(seen) != len(classes) || len(seen) < 40 {
		t.Errorf("%d constants, %d classes", len(seen), len(classes))
	}
	if Reason("Whatever").Known() || Reason("").Known() {
		t.Error("an unknown reason is known")
	}
}

func TestWorst(t *testing.T) {
	f := func(r Reason) *Fault { return Faultf(r, "x") }
	order := []Reason{ReasonCancelled, ReasonTimeout, ReasonCallLimitExceeded, ReasonJavaScriptError, ReasonOutputTooLarge}
	for i, hi := range order {
		for _, lo := range order[i+1:] {
			if got := Worst(f(hi), f(lo)); got.Reason != hi {
				t.Errorf("of %s and %s: %s", hi, lo, got.Reason)
			}
			if got := Worst(f(lo), f(hi)); got.Reason != hi {
				t.Errorf("of %s and %s: %s", lo, hi, got.Reason)
			}
		}
	}
	a, b := f(ReasonHeapExhausted), f(ReasonJavaScriptError)
	if Worst(a, b) != a || Worst(b, a) != b {
		t.Error("of two of one rank the first must win")
	}
	if Worst(nil, a) != a || Worst(a, nil) != a || Worst(nil, nil) != nil {
		t.Error("nil is no fault")
	}
}

func TestFault(t *testing.T) {
	f := Faultf(ReasonSyntaxError, "%s", strings.Repeat("é", MaxMessageBytes)).At(3, 4)
	if len(f.Message) > MaxMessageBytes || !strings.HasSuffix(f.Message, "é") {
		t.Errorf("the message has %d bytes and ends in %q", len(f.Message), f.Message[len(f.Message)-2:])
	}
	got, ok := AsFault(fmt.Errorf("around: %w", f))
	if !ok || got != f || got.Line != 3 || got.Column != 4 {
		t.Errorf("found %+v", got)
	}
	if _, ok := AsFault(errors.New("x")); ok {
		t.Error("a plain error is a fault")
	}
}
