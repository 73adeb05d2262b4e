package agentloop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/test/modelserver/script"
)

// thousand is an answer with 1000 calls of lookup.
func thousand() script.Turn {
	t := says("")
	for i := range 1000 {
		t.ToolCalls = append(t.ToolCalls, script.ToolCall{Name: "lookup", Arguments: fmt.Sprintf(`{"sku":"bolt-%d"}`, i)})
	}
	return t
}

// under gives every call of a turn one id.
func under(id string, t script.Turn) script.Turn {
	for i := range t.ToolCalls {
		t.ToolCalls[i].ID = id
	}
	return t
}

func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// hostileLives are answers that break what they can, through endpoint, loop and
// sandbox. Of each the run recovers.
var hostileLives = map[string]life{
	"1000 calls": {
		turns: []script.Turn{thousand(), says("12 are left.")}, world: native, wantOutput: ended,
		wantSteps: []string{"ProtocolError ProtocolError", "Final"}, wantHeard: []string{"Order", "PROTOCOL_ERROR:"},
	},
	"a payment that is said twice": {
		turns: []script.Turn{under("c", calls("order", eight, "order", eight)), told("order-0001", "an earlier call of this answer has the same id")},
		world: deciding(contract.DecisionApprove), wantOutput: ended,
		wantSteps: []string{"Tools order order InvalidArguments", "Final"}, wantCalls: []string{"order Completed"}, wantAsked: []string{`/order {"quantity":8,"sku":"bolt-m8"}`},
		wantHeard: []string{"Order", "TOOL_ERROR:"},
	},
	"a key twice": {
		turns: []script.Turn{calls("order", `{"sku":"bolt-m8","quantity":8,"quantity":800}`), told("a key occurs twice")},
		world: deciding(contract.DecisionApprove), wantOutput: ended,
		wantSteps: []string{"Tools order InvalidArguments", "Final"}, wantHeard: []string{"Order", "TOOL_ERROR:"},
	},
	"an input of 9000 levels": {
		turns: []script.Turn{calls("run_code", `{"source":"function main(i){return 12}","input":`+deep(9000)+`}`), told(`{"result":12}`)},
		world: native, wantOutput: ended,
		wantSteps: []string{"Tools run_code", "Final"}, wantHeard: []string{"Order", "result"},
	},
	"a program in another language": {
		turns: []script.Turn{runs("def main(input):\n  return 12"), runs(looks), told(`{"result":12}`)}, world: native, wantOutput: ended,
		wantSteps: []string{"Tools run_code SyntaxError", "Tools run_code", "Final"}, wantCalls: []string{"lookup Completed"}, wantAsked: []string{bolt},
		wantHeard: []string{"Order", `{"error":{"reason":"SyntaxError","message":"unexpected`, "result"},
	},
	"a call behind thoughts": {
		turns: []script.Turn{says("<think>I look it up.</think>\n<tool_call>\n{\"name\":\"lookup\",\"arguments\":{}}\n</tool_call>"), says("12 are left.")}, world: native, wantOutput: ended,
		wantSteps: []string{"ProtocolError ProtocolError", "Final"}, wantHeard: []string{"Order", "PROTOCOL_ERROR:"},
	},
}

func TestHostileRunsOfTools(t *testing.T) { eachWay(t, hostileLives) }
