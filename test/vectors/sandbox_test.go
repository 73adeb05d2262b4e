// Package vectors_test holds the product to the vectors beside it.
package vectors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/stub"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// sandboxCase is one case of sandbox.json.
type sandboxCase struct {
	ID     string
	Group  string
	Note   string
	Source json.RawMessage
	Input  json.RawMessage
	Limits map[string]int64
	Tools  json.RawMessage
	Expect struct {
		Status          string
		Value           json.RawMessage
		Reason          contract.Reason
		ChildCalls      *int64
		MessageContains []string
		Line            int
	}
}

// load reads a vector file into out and fails on any field that is not known.
func load(t *testing.T, file string, out any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// engine is one for all tests: every execution is fresh anyway.
var engine = sync.OnceValues(func() (*sandbox.Engine, error) {
	return sandbox.New(context.Background(), sandbox.Options{Ceiling: contract.Ceilings()})
})

func newEngine(t *testing.T) *sandbox.Engine {
	t.Helper()
	e, err := engine()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestSandboxVectors(t *testing.T) {
	var file struct {
		About string
		Cases []sandboxCase
	}
	load(t, "sandbox.json", &file)
	if len(file.Cases) != 220 {
		t.Errorf("there are %d cases, want 220", len(file.Cases))
	}
	e := newEngine(t)
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) { c.run(t, e) })
	}
}

func (c sandboxCase) run(t *testing.T, e *sandbox.Engine) {
	stubs := map[string]stub.Stub{}
	if c.Tools != nil {
		var err error
		if stubs, err = stub.Parse(c.Tools); err != nil {
			t.Fatal(err)
		}
	}
	tools := stub.New(stubs)
	b := contract.Bundle{
		Run:    contract.RunRef{Namespace: "local", Name: "exec", UID: recorded.RunUID, Generation: 1},
		Source: text(t, c.Source), Limits: contract.DefaultLimits(),
	}
	b.SourceDigest = contract.Digest([]byte(b.Source))
	for name, n := range c.Limits {
		if err := b.Limits.Set(name, n); err != nil {
			t.Fatal(err)
		}
	}
	if c.Input != nil {
		var err error
		if b.Input, err = stub.Expand(c.Input); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	events := loop.NewEvents(io.Discard, time.Now)
	events.Record(recorded)
	o := loop.Run(t.Context(), loop.Config{Sandbox: e, Bundle: b, Tools: tools.List, Now: time.Now, Events: events})
	c.compare(t, o, time.Since(start))
	wantReplayed(t, e, events)
	if want := c.Expect.ChildCalls; want != nil && tools.Entered() != *want {
		t.Errorf("tools were entered %d times, want %d", tools.Entered(), *want)
	}
}

func (c sandboxCase) compare(t *testing.T, o loop.Outcome, took time.Duration) {
	switch c.Expect.Status {
	case "ok":
		if o.Fault != nil {
			t.Fatalf("fault %v (line %d), want a value", o.Fault, o.Fault.Line)
		}
		want, err := stub.Expand(c.Expect.Value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(doubles(t, want), doubles(t, o.Value)); diff != "" {
			t.Errorf("value (-want +got):\n%s", diff)
		}
		return
	case "error":
	default:
		t.Fatalf("status %q is not known", c.Expect.Status)
	}
	if o.Fault == nil {
		t.Fatalf("value %.100s, want the fault %s", o.Value, c.Expect.Reason)
	}
	if o.Fault.Reason != c.Expect.Reason {
		t.Errorf("fault %v, want the reason %s", o.Fault, c.Expect.Reason)
	}
	for _, want := range c.Expect.MessageContains {
		if !strings.Contains(o.Fault.Message, want) {
			t.Errorf("message %q does not hold %q", o.Fault.Message, want)
		}
	}
	if c.Expect.Line != 0 && o.Fault.Line != c.Expect.Line {
		t.Errorf("line %d, want %d", o.Fault.Line, c.Expect.Line)
	}
	most := milliseconds(c.Limits["wallClockMs"]) + 2*time.Second
	if c.Expect.Reason == contract.ReasonTimeout && took > most {
		t.Errorf("it took %s, want at most %s", took, most)
	}
}

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// text reads a source: a string, or {"text": T, "padToBytes": N}.
func text(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var s string
	if err := json.Unmarshal(raw, &s); err == nil {
		return s
	}
	var padded struct {
		Text       string
		PadToBytes int
	}
	if err := json.Unmarshal(raw, &padded); err != nil {
		t.Fatal(err)
	}
	return padded.Text + strings.Repeat(" ", padded.PadToBytes-len(padded.Text))
}

// doubles reads JSON with its numbers as IEEE doubles.
func doubles(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v in %.100s", err, raw)
	}
	return v
}
