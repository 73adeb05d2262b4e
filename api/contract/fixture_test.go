package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

func TestDecodeFixtures(t *testing.T) {
	tests := map[string]struct {
		text string
		want []contract.Fixture
		err  string
	}{
		"one, named by its file": {
			text: `{"input": {"n": 1}, "calls": [{"tool": "a", "args": {}, "returns": null}], "expect": {"output": null}}`,
			want: []contract.Fixture{{
				Name: "file", Input: json.RawMessage(`{"n": 1}`),
				Calls:  []contract.FixtureCall{{Tool: "a", Args: json.RawMessage(`{}`), Returns: json.RawMessage(`null`)}},
				Expect: contract.FixtureEnd{Output: json.RawMessage(`null`)},
			}},
		},
		"a list": {
			text: `[{"name": "x", "calls": [{"tool": "a", "fails": {"message": "gone"}}], "expect": {"reason": "JavaScriptError", "message": "gone"}}]`,
			want: []contract.Fixture{{
				Name: "x", Calls: []contract.FixtureCall{{Tool: "a", Fails: &contract.FixtureFailure{Message: "gone"}}},
				Expect: contract.FixtureEnd{Reason: contract.ReasonJavaScriptError, Message: "gone"},
			}},
		},
		"tables":          {text: `{"tests": [{"name": "x", "expect": {}}]}`, want: []contract.Fixture{{Name: "x"}}},
		"unknown field":   {text: `{"expects": {}}`, err: `unknown field "expects"`},
		"unknown in list": {text: `[{"name": "x", "call": []}]`, err: `unknown field "call"`},
		"beside tests":    {text: `{"tests": [], "name": "x"}`, err: `unknown field "name"`},
		"no test":         {text: `7`, err: "want one test"},
		"not JSON":        {text: `{`, err: "EOF"},
		"no name in list": {text: `[{"expect": {}}]`, err: "test 1 needs a name"},
		"one name twice":  {text: `[{"name": "x"}, {"name": "x"}]`, err: `two tests have the name "x"`},
		"both ends":       {text: `{"expect": {"output": 1, "reason": "Timeout"}}`, err: "either an output or a reason"},
		"message alone":   {text: `{"expect": {"message": "x"}}`, err: "needs a reason"},
		"no reason":       {text: `{"expect": {"reason": "Nope"}}`, err: `"Nope" is none`},
		"returns and fails": {
			text: `{"calls": [{"tool": "a", "returns": 1, "fails": {}}]}`, err: "call 1: a call either returns or fails",
		},
		"reason of a run": {text: `{"calls": [{"tool": "a", "fails": {"reason": "InvalidInput"}}]}`, err: "no reason of a call"},
		"no tool name":    {text: `{"calls": [{"tool": "a b"}]}`, err: `"a b" is no tool name`},
		"too many":        {text: "[" + strings.Repeat(`{"name":"x"},`, 64) + `{"name":"x"}]`, err: "65 tests, more than 64"},
		"too many calls":  {text: `{"calls":[` + strings.Repeat(`{"tool":"a"},`, 256) + `{"tool":"a"}]}`, err: "257 calls, more than 256"},
		"too large":       {text: `{"input":"` + strings.Repeat("x", contract.MaxFixtureBytes) + `"}`, err: "more than 262144"},
		"not UTF-8":       {text: "{\"input\":\"\xff\"}", err: "not UTF-8"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := contract.DecodeFixtures(json.RawMessage(tt.text), "file")
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
