package sandbox

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// vector is one case of test/vectors/sandbox.json.
type vector struct {
	ID     string
	Group  string
	Source json.RawMessage
	Input  json.RawMessage
	Limits map[string]int64
	Tools  map[string]stub
	Expect struct {
		Status          string
		Value           json.RawMessage
		Reason          contract.Reason
		ChildCalls      *int
		MessageContains []string
		Line            int
	}
}

// engine is the one that all tests share, as a process does.
var engine = sync.OnceValues(func() (*Engine, error) {
	return New(context.Background(), Options{})
})

func testEngine(tb testing.TB) *Engine {
	tb.Helper()
	e, err := engine()
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func readVectors[T any](tb testing.TB, name string) []T {
	tb.Helper()
	b, err := os.ReadFile("../test/vectors/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	var f struct{ Cases []T }
	if err := json.Unmarshal(b, &f); err != nil {
		tb.Fatal(err)
	}
	if len(f.Cases) == 0 {
		tb.Fatalf("%s has no cases", name)
	}
	return f.Cases
}

func TestSandboxVectors(t *testing.T) {
	e := testEngine(t)
	for _, v := range readVectors[vector](t, "sandbox.json") {
		t.Run(v.Group+"/"+v.ID, func(t *testing.T) {
			p := v.program(t)
			broker := &stubs{tools: v.Tools, limits: p.Limits}
			res, err := e.Execute(t.Context(), p, broker)
			checkOutcome(t, v, res, err)
			if want := v.Expect.ChildCalls; want != nil && broker.entered != *want {
				t.Errorf("child calls = %d, want %d", broker.entered, *want)
			}
		})
	}
}

func checkOutcome(t *testing.T, v vector, res Result, err error) {
	t.Helper()
	if v.Expect.Status == "ok" {
		if err != nil {
			t.Fatalf("failed: %v", err)
		}
		if want := expand(v.Expect.Value); !sameJSON(res.Value, want) {
			t.Errorf("value = %.200s, want %.200s", res.Value, want)
		}
		return
	}
	f, ok := contract.AsFault(err)
	if !ok {
		t.Fatalf("value %.200s and error %v, want a fault", res.Value, err)
	}
	if f.Reason != v.Expect.Reason {
		t.Fatalf("fault = %v, want reason %s", f, v.Expect.Reason)
	}
	if v.Expect.Line != 0 && f.Line != v.Expect.Line {
		t.Errorf("%v at line %d, want %d", f, f.Line, v.Expect.Line)
	}
	for _, text := range v.Expect.MessageContains {
		if !strings.Contains(f.Message, text) {
			t.Errorf("message %q does not contain %q", f.Message, text)
		}
	}
}

// program is the case's program under its limits.
func (v vector) program(tb testing.TB) Program {
	tb.Helper()
	p := Program{Source: sourceOf(tb, v.Source), Limits: contract.DefaultLimits()}
	for name, n := range v.Limits {
		if err := p.Limits.Set(name, n); err != nil {
			tb.Fatal(err)
		}
	}
	if v.Input != nil {
		p.Input = expand(v.Input)
	}
	return p
}

// sourceOf reads a source, plain or padded with spaces.
func sourceOf(t testing.TB, raw json.RawMessage) string {
	t.Helper()
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var p struct {
		Text       string
		PadToBytes int
	}
	if err := json.Unmarshal(raw, &p); err != nil || p.PadToBytes < len(p.Text) {
		t.Fatalf("bad source %s", raw)
	}
	return p.Text + strings.Repeat(" ", p.PadToBytes-len(p.Text))
}

// hostileVector is one case of test/vectors/hostile.json.
type hostileVector struct {
	ID     string
	Source string
	Input  json.RawMessage
	Expect struct {
		Status string
		Value  json.RawMessage
		Reason json.RawMessage
	}
}

func (v hostileVector) allows(r contract.Reason) bool {
	var many []contract.Reason
	if json.Unmarshal(v.Expect.Reason, &many) == nil {
		return slices.Contains(many, r)
	}
	return v.Expect.Status == "any"
}
