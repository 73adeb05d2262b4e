package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// journalOf makes a journal of n calls, every tenth uncertain, and n refused ones.
func journalOf(n int) []Call {
	var out []Call
	for i := 1; i <= n; i++ {
		c := Call{
			Seq: int64(i), ID: fmt.Sprintf("u:2:%d", i), Tool: strings.Repeat("t", 64), Grant: "g", GrantUID: "gu", GrantGeneration: 1,
			Effect: EffectEffectful, State: CallCompleted, ArgumentsDigest: Digest(nil), ResultDigest: Digest(nil), ResultBytes: 4,
			StartTime: "2026-01-02T03:04:05.000Z", EndTime: "2026-01-02T03:04:05.000Z",
		}
		if i%10 == 0 {
			c.State, c.Reason = CallUncertain, ReasonEffectUncertain
		}
		out = append(out, c, Call{Tool: "x", State: CallRefused, Reason: ReasonInvalidArguments})
	}
	return out
}

func stepsOf(n int64) []Step {
	var out []Step
	for i := range n {
		out = append(out, Step{
			Step: i + 1, Kind: StepCode, Reason: string(ReasonJavaScriptError), ProgramDigest: Digest(nil),
			InputTokens: 1000, OutputTokens: 100, Attempts: 1, ModelMs: 1000, ProgramMs: 10,
		})
	}
	return out
}

func TestTerminationMessage(t *testing.T) {
	message := strings.Repeat("\u0001", MaxMessageBytes) // each is six bytes as JSON
	tests := map[string]struct {
		make func(*Execution)
		// want is what must be left of it.
		want func(*Execution) bool
	}{
		"all fits":         {func(e *Execution) { e.Calls = journalOf(2) }, func(e *Execution) bool { return e.Output == `1` && len(e.Calls) == 4 }},
		"the output goes":  {func(e *Execution) { _ = e.Succeed(json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`)) }, func(e *Execution) bool { return e.Output == "" && ValidDigest(e.OutputDigest) }},
		"refused calls go": {func(e *Execution) { e.Calls = append(journalOf(6), slices.Repeat(journalOf(1)[1:], 20)...) }, func(e *Execution) bool { return len(e.Calls) == 6 && e.Calls[0].ArgumentsDigest != "" }},
		"digests go":       {func(e *Execution) { e.Calls = journalOf(15) }, func(e *Execution) bool { return len(e.Calls) == 15 && e.Calls[0].ArgumentsDigest == "" }},
		"proven calls go":  {func(e *Execution) { e.Calls = journalOf(100) }, func(e *Execution) bool { return len(Ambiguous(e.Calls)) == 10 && len(e.Calls) == 10 }},
		"a long message":   {func(e *Execution) { e.Fail(Faultf(ReasonJavaScriptError, "%s", message)) }, func(e *Execution) bool { return len(e.Error.Message) == 256 }},
		"the evidence goes first": {
			func(e *Execution) {
				e.Fail(Faultf(ReasonEffectUncertain, "m"))
				e.Error.Stack, e.Error.Evidence = []string{"main (main.js:1)"}, `"`+strings.Repeat("x", 5000)+`"`
			},
			func(e *Execution) bool { return e.Error.Evidence == "" && len(e.Error.Stack) == 1 },
		},
		"then what each tool used": {
			func(e *Execution) {
				e.Usage = &Usage{ChildCalls: 64}
				for range 64 {
					e.Usage.Tools = append(e.Usage.Tools, ToolUsage{Name: strings.Repeat("t", 64)})
				}
				e.Calls = journalOf(2)
			},
			func(e *Execution) bool { return e.Usage.Tools == nil && e.Usage.ChildCalls == 64 && len(e.Calls) == 4 },
		},
		"then what the steps used": {
			func(e *Execution) { e.Steps, e.Calls = stepsOf(20), journalOf(2) },
			func(e *Execution) bool {
				return len(e.Steps) == 20 && reflect.DeepEqual(e.Steps[0], Step{Step: 1, Kind: StepCode, Reason: "JavaScriptError"}) && len(e.Calls) == 4
			},
		},
		"then all but the last steps": {
			func(e *Execution) { e.Steps, e.Calls = stepsOf(256), journalOf(2) },
			func(e *Execution) bool { return len(e.Steps) == 8 && e.Steps[7].Step == 256 && len(e.Calls) == 4 },
		},
		"calls in doubt before steps": {
			func(e *Execution) { e.Steps, e.Calls = stepsOf(256), journalOf(100) },
			func(e *Execution) bool { return e.Steps == nil && len(Ambiguous(e.Calls)) == 10 },
		},
		"nothing but the reason": {
			func(e *Execution) {
				e.Fail(Faultf(ReasonEffectUncertain, "%s", message))
				for range 256 {
					e.Calls = append(e.Calls, Call{Seq: 1, Tool: strings.Repeat("\u0001", 64), State: CallUncertain, Effect: EffectEffectful})
				}
			},
			func(e *Execution) bool { return e.Error.Reason == ReasonEffectUncertain && len(e.Calls) <= 8 },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := succeeded(t, `1`)
			tc.make(&e)
			before := e.Error
			var message string
			if before != nil {
				message = before.Message
			}
			b, err := e.TerminationMessage()
			if err != nil {
				t.Fatal(err)
			}
			if len(b) > MaxTerminationBytes {
				t.Errorf("the message has %d bytes", len(b))
			}
			got, err := ParseTermination(b)
			if err != nil {
				t.Fatal(err)
			}
			if err := got.Verify(expected); err != nil {
				t.Error(err)
			}
			if !tc.want(got) {
				t.Errorf("what is left: %s", b)
			}
			if e.Error != before || before != nil && e.Error.Message != message {
				t.Error("the report itself was changed")
			}
		})
	}
}

func TestTerminationRoundTrip(t *testing.T) {
	want := succeeded(t, `{"a":1}`)
	want.Calls, want.RefusedCalls, want.Usage = journalOf(1), 1, &Usage{WallMs: 1}
	b, err := want.TerminationMessage()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseTermination(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestParseTerminationRefuses(t *testing.T) {
	e := succeeded(t, `1`)
	good, err := e.TerminationMessage()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string][]byte{
		"nothing":           nil,
		"text":              []byte("codeact-runtime: not claimed"),
		"cut short":         good[:len(good)-1],
		"changed":           bytes.Replace(good, []byte(`"output":"1"`), []byte(`"output":"2"`), 1),
		"another version":   bytes.Replace(good, []byte(terminationVersion), []byte("report.v2"), 1),
		"more behind":       append(bytes.Clone(good), " {}"...),
		"twice":             append(bytes.Clone(good), good...),
		"a bare execution":  []byte(`{"generation":2,"runUID":"u","result":"Succeeded"}`),
		"an unknown field":  bytes.Replace(good, []byte(`{"codeact"`), []byte(`{"x":1,"codeact"`), 1),
		"JSON of no object": []byte(`[]`),
	}
	for name, b := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := ParseTermination(b); err == nil {
				t.Errorf("%s is a report: %+v", b, got)
			}
		})
	}
}
