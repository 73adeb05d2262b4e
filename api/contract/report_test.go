package contract

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var expected = Expected{RunUID: "u", Generation: 2, BundleDigest: Digest([]byte("b"))}

func claimedExecution() Execution {
	return Execution{
		Generation: 2, RunUID: "u", BundleDigest: expected.BundleDigest,
		Claim: Claim{PodName: "p", PodUID: "pu", Time: "2026-01-02T03:04:05Z"},
	}
}

func succeeded(t *testing.T, value string) Execution {
	t.Helper()
	e := claimedExecution()
	if err := e.Succeed(json.RawMessage(value)); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestVerify(t *testing.T) {
	tests := map[string]struct {
		change  func(*Execution)
		wantErr string
	}{
		"whole":                {func(*Execution) {}, ""},
		"still running":        {func(e *Execution) { *e = claimedExecution() }, ""},
		"failed":               {func(e *Execution) { e.Fail(Faultf(ReasonTimeout, "t")) }, ""},
		"output went missing":  {func(e *Execution) { e.Output = "" }, ""},
		"output spelled anew":  {func(e *Execution) { e.Output = `{"b": 1, "a": [2]}` }, "own digest"},
		"another run":          {func(e *Execution) { e.RunUID = "v" }, "run UID"},
		"another generation":   {func(e *Execution) { e.Generation = 1 }, "generation 1, not 2"},
		"another bundle":       {func(e *Execution) { e.BundleDigest = Digest(nil) }, "another bundle"},
		"no claim":             {func(e *Execution) { e.Claim = Claim{} }, "no pod"},
		"output changed":       {func(e *Execution) { e.Output = `{"b":1,"a":[3]}` }, "own digest"},
		"output no JSON":       {func(e *Execution) { e.Output = `{` }, "own digest"},
		"no output digest":     {func(e *Execution) { e.OutputDigest = "" }, "output digest"},
		"digest of no form":    {func(e *Execution) { e.OutputDigest = "sha256:x" }, "output digest"},
		"succeeded with error": {func(e *Execution) { e.Error = &ExecutionError{Reason: ReasonTimeout} }, "has an error"},
		"failed, no error":     {func(e *Execution) { e.Result = ResultFailed }, "known reason"},
		"failed, odd reason":   {func(e *Execution) { e.Fail(Faultf("Odd", "o")) }, "known reason"},
		"failed with evidence": {func(e *Execution) { e.Fail(Faultf(ReasonTimeout, "t")); e.Error.Evidence = `{"a":1}` }, ""},
		"evidence no JSON":     {func(e *Execution) { e.Fail(Faultf(ReasonTimeout, "t")); e.Error.Evidence = `{` }, "evidence"},
		"evidence too large": {func(e *Execution) {
			e.Fail(Faultf(ReasonTimeout, "t"))
			e.Error.Evidence = `"` + strings.Repeat("x", MaxEvidenceBytes) + `"`
		}, "evidence"},
		"a result of its own":   {func(e *Execution) { e.Result = "Fine" }, "unknown result"},
		"a UID without an end":  {func(e *Execution) { e.RunUID = strings.Repeat("x", 1000) }, "run UID"},
		"generation left empty": {func(e *Execution) { e.Generation = 0 }, "generation 0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := succeeded(t, `{"b":1,"a":[2]}`)
			tc.change(&e)
			err := e.Verify(expected)
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
			if err != nil && len(err.Error()) > 200 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
	var none *Execution
	if err := none.Verify(expected); err == nil {
		t.Error("no report was verified")
	}
}

func TestFailForgetsTheOutput(t *testing.T) {
	e := succeeded(t, `1`)
	e.Fail(Faultf(ReasonSyntaxError, "%s", strings.Repeat("é", 5000)).At(3, 4))
	if e.Output != "" || e.OutputDigest != "" || e.Result != ResultFailed {
		t.Errorf("execution %+v", e)
	}
	if n := len(e.Error.Message); n > MaxMessageBytes {
		t.Errorf("the message has %d bytes", n)
	}
	e.Error.Message = ""
	if diff := cmp.Diff(&ExecutionError{Reason: ReasonSyntaxError, Line: 3, Column: 4}, e.Error); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// TestOutputSurvivesTheAPIServer reads and writes the output as the API server
// does, with every number a float or a 64-bit integer.
func TestOutputSurvivesTheAPIServer(t *testing.T) {
	for _, value := range []string{
		`null`, `1`, `9007199254740992`, `100000000000000000000`, `1e+21`, `1e-7`, `0.30000000000000004`, `5e-324`, `1.7976931348623157e+308`,
		`"<&>\u2028"`, `"\ud800"`, `"é😀\u0000"`, `{"b":[{"a":{}}],"a":[]}`,
	} {
		t.Run(value, func(t *testing.T) {
			e := succeeded(t, value)
			raw, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			var x any
			if err := json.Unmarshal(raw, &x); err != nil {
				t.Fatal(err)
			}
			if raw, err = json.Marshal(x); err != nil {
				t.Fatal(err)
			}
			var got Execution
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			if err := got.Verify(expected); err != nil || got.Output != value {
				t.Errorf("%v: %s", err, raw)
			}
		})
	}
}
