package stub

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		text    string
		wantErr string
	}{
		"nothing":          {`{}`, ""},
		"every behaviour":  {`{"a":{"returns":null},"b":{"echo":true},"c":{"fails":{"message":"m"}},"d":{"approval":true},"e":{"deferred":true},"f":{"uncertain":true},"g":{"returnsBytes":2},"h":{"sleepMs":0}}`, ""},
		"schemas":          {`{"a":{"echo":true,"inputSchema":{},"outputSchema":true}}`, ""},
		"not JSON":         {`{`, "EOF"},
		"a list":           {`[]`, "array"},
		"more behind":      {`{} {}`, "text after"},
		"no behaviour":     {`{"a":{}}`, "0 behaviours"},
		"two behaviours":   {`{"a":{"echo":true,"returns":1}}`, "2 behaviours"},
		"unknown word":     {`{"a":{"retunrs":1}}`, "unknown field"},
		"no tool's name":   {`{"a b":{"echo":true}}`, "name"},
		"too few bytes":    {`{"a":{"returnsBytes":1}}`, "returnsBytes"},
		"too many bytes":   {`{"a":{"returnsBytes":99999999999}}`, "returnsBytes"},
		"negative sleep":   {`{"a":{"sleepMs":-1}}`, "negative"},
		"beside":           {`{"a":{"echo":true,"effect":"Idempotent","retry":{"attempts":3,"backoffMs":1},"failsFirst":2,"receipt":"r","media":{"marker":"m"}}}`, ""},
		"a failure's more": {`{"a":{"fails":{"message":"m","result":{"a":1}},"effect":"ReadOnly"}}`, ""},
		"no such effect":   {`{"a":{"echo":true,"effect":"Some"}}`, "effect"},
		"retry, effectful": {`{"a":{"echo":true,"retry":{"attempts":3}}}`, "ReadOnly or Idempotent"},
		"too many retries": {`{"a":{"echo":true,"effect":"ReadOnly","retry":{"attempts":6}}}`, "attempts"},
		"negative fails":   {`{"a":{"echo":true,"failsFirst":-1}}`, "negative"},
		"repeated too far": {`{"a":{"returns":{"repeat":"xx","times":9223372036854775807}}}`, "too long"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.text))
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
		})
	}
}

func TestBehaviours(t *testing.T) {
	tests := map[string]struct {
		stub      string
		want      string
		wantProof broker.Proof
		wantFails bool
	}{
		"returns":        {stub: `{"returns":{"a":[1.0,{"repeat":"ab","times":3}]}}`, want: `{"a":[1.0,"ababab"]}`},
		"returns null":   {stub: `{"returns":null}`, want: `null`},
		"echo":           {stub: `{"echo":true}`, want: `{"q":1}`},
		"bytes":          {stub: `{"returnsBytes":5}`, want: `"xxx"`},
		"no bytes":       {stub: `{"returnsBytes":2}`, want: `""`},
		"sleeps":         {stub: `{"sleepMs":1}`, want: `null`},
		"fails":          {stub: `{"fails":{"message":"m"}}`, wantFails: true, wantProof: broker.Answered},
		"uncertain":      {stub: `{"uncertain":true}`, wantFails: true, wantProof: broker.Unproven},
		"not a repeat":   {stub: `{"returns":{"repeat":"a","times":2,"x":1}}`, want: `{"repeat":"a","times":2,"x":1}`},
		"repeat nothing": {stub: `{"returns":{"repeat":"a","times":0}}`, want: `""`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			stubs, err := Parse([]byte(`{"x":` + tc.stub + `}`))
			if err != nil {
				t.Fatal(err)
			}
			tools := New(stubs)
			ans, err := tools.List[0].Backend.Call(t.Context(), broker.Request{Arguments: json.RawMessage(`{"q":1}`)})
			var f *broker.Failure
			if errors.As(err, &f) != tc.wantFails || f != nil && f.Proof != tc.wantProof {
				t.Fatalf("error %v", err)
			}
			if string(ans.Body) != tc.want {
				t.Errorf("answer %s, want %s", ans.Body, tc.want)
			}
			if tools.Entered() != 1 {
				t.Errorf("entered %d times", tools.Entered())
			}
		})
	}
}

func TestWithheld(t *testing.T) {
	stubs, err := Parse([]byte(`{"b":{"deferred":true},"a":{"approval":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	list := New(stubs).List
	for i, want := range []contract.Reason{contract.ReasonApprovalRequired, contract.ReasonCallDeferred} {
		if f := list[i].Withheld; f == nil || f.Reason != want {
			t.Errorf("tool %s is withheld with %v, want %s", list[i].Tool.Name, f, want)
		}
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	stubs, err := Parse([]byte(`{"x":{"sleepMs":3600000}}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(stubs).List[0].Backend.Call(ctx, broker.Request{}); err == nil {
		t.Error("it slept through")
	}
}

// TestThroughTheBroker shows what stands beside a behaviour to a broker.
func TestThroughTheBroker(t *testing.T) {
	stubs, err := Parse([]byte(`{
		"a": {"returns": 5, "effect": "Idempotent", "retry": {"attempts": 3, "backoffMs": 1}, "failsFirst": 2, "receipt": "r-1"},
		"b": {"uncertain": true, "receipt": "r-2"}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	tools := New(stubs)
	b, err := broker.New(broker.Config{Limits: contract.DefaultLimits(), Tools: tools.List, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if body, err := b.Call(t.Context(), "a", json.RawMessage("{}")); err != nil || string(body) != "5" {
		t.Errorf("result %s, error %v", body, err)
	}
	if _, err := b.Call(t.Context(), "b", json.RawMessage("{}")); err == nil {
		t.Error("no error")
	}
	r := b.End()
	if c := r.Calls[0]; c.Attempts != 3 || c.Receipt != "r-1" || c.Effect != contract.EffectIdempotent {
		t.Errorf("journal has %+v", c)
	}
	if want := `{"seq":2,"tool":"b","reason":"EffectUncertain","receipt":"r-2"}`; r.Evidence != want {
		t.Errorf("evidence %s, want %s", r.Evidence, want)
	}
}
