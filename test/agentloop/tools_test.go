package agentloop

import (
	"encoding/json"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/test/modelserver/script"
)

// calls is a turn with native calls, each a name and its arguments, at the cost of
// every turn.
func calls(pairs ...string) script.Turn {
	t := says("")
	for ; len(pairs) > 1; pairs = pairs[2:] {
		t.ToolCalls = append(t.ToolCalls, script.ToolCall{Name: pairs[0], Arguments: pairs[1]})
	}
	return t
}

// runs is a turn that calls run_code.
func runs(source string) script.Turn {
	b, _ := json.Marshal(map[string]string{"source": source}) // of strings
	return calls(contract.RunCodeTool, string(b))
}

// told is a turn with the text that ends the run, once these results were heard.
func told(results ...string) script.Turn {
	t := says("12 are left.")
	t.WantResults = results
	return t
}

const (
	ended = `"12 are left."`
	aBolt = `{"sku":"bolt-m8"}`
	eight = `{"sku":"bolt-m8","quantity":8}`
)

// native turns the run into one of the protocol Tools: lookup and charge may be
// called directly, order only once it is approved, and stock_of is a recipe.
func native(w *world) {
	w.bundle.Agent.Protocol = contract.ProtocolTools
	for i := range w.bundle.Tools {
		w.bundle.Tools[i].Direct = true
		if w.bundle.Tools[i].Tool.Name == "order" {
			w.bundle.Tools[i].Approval = contract.ApprovalRequired
		}
	}
	w.bundle.Agent.Recipes = []contract.PinnedRecipeTool{{
		PinnedRecipe: contract.PinnedRecipe{Name: "stock-of", UID: "v", Generation: 1, ToolName: "stock_of"},
		Description:  "Tells how many pieces are in stock.", Source: looks, SourceDigest: contract.Digest([]byte(looks)),
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"sku":{"type":"string"}},"required":["sku"]}`),
		OutputSchema: json.RawMessage(`{"type":"integer"}`), Limits: contract.DefaultLimits(), Tools: []string{"lookup"},
	}}
}

func deciding(d contract.Decision) func(*world) {
	return func(w *world) { native(w); w.decision = d }
}

var toolLives = map[string]life{
	"a program": {
		turns: []script.Turn{runs(looks), told(`{"result":12}`)}, wantOutput: ended,
		wantSteps: []string{"Tools run_code", "Final"}, wantCalls: []string{"lookup Completed"}, wantAsked: []string{bolt},
		wantHeard: []string{"Order", "result"},
	},
	"a recipe": {
		turns: []script.Turn{calls("stock_of", aBolt), told(`{"result":12}`)}, wantOutput: ended,
		wantSteps: []string{"Tools stock_of", "Final"}, wantCalls: []string{"lookup Completed"}, wantAsked: []string{bolt},
		wantHeard: []string{"Order", "result"},
	},
	"a tool": {
		turns: []script.Turn{calls("lookup", aBolt), told(`"stock":12`)}, wantOutput: ended,
		wantSteps: []string{"Tools lookup", "Final"}, wantCalls: []string{"lookup Completed"}, wantAsked: []string{bolt},
		wantHeard: []string{"Order", "result"},
	},
	"three in one answer": {
		turns: []script.Turn{calls("lookup", aBolt, "stock_of", aBolt, "lookup", `{"sku":"nut-m8"}`), told(`"stock":12`, "12", "nut-m8")}, wantOutput: ended,
		wantSteps: []string{"Tools lookup stock_of lookup", "Final"}, wantCalls: []string{"lookup Completed", "lookup Completed", "lookup Completed"}, wantAsked: []string{bolt, bolt, `/lookup {"sku":"nut-m8"}`},
		wantHeard: []string{"Order", "result"},
	},
	"a name that nobody offered": {
		turns: []script.Turn{calls("look_up", aBolt), calls("lookup", aBolt), told(`"stock":12`)}, wantOutput: ended,
		wantSteps: []string{"Tools look_up ToolNotAllowed", "Tools lookup", "Final"}, wantCalls: []string{"lookup Completed"}, wantAsked: []string{bolt},
		wantHeard: []string{"Order", "TOOL_ERROR:", "result"},
	},
	"arguments that are no JSON": {
		turns: []script.Turn{calls("lookup", `{"sku":`), calls("lookup", aBolt), told(`"stock":12`)}, wantOutput: ended,
		wantSteps: []string{"Tools lookup InvalidArguments", "Tools lookup", "Final"}, wantCalls: []string{"lookup Completed"}, wantAsked: []string{bolt},
		wantHeard: []string{"Order", "TOOL_ERROR:", "result"},
	},
	"arguments against the schema": {
		turns: []script.Turn{calls("lookup", `{"SKU":"bolt-m8"}`), told("InvalidArguments")}, wantOutput: ended,
		wantSteps: []string{"Tools lookup InvalidArguments", "Final"}, wantCalls: []string{"lookup Refused"}, wantAsked: nil,
		wantHeard: []string{"Order", "TOOL_ERROR:"},
	},
	"a call that is approved": {
		turns: []script.Turn{calls("order", eight), told("order-0001")}, world: deciding(contract.DecisionApprove), wantOutput: ended,
		wantSteps: []string{"Tools order", "Final"}, wantCalls: []string{"order Completed"}, wantAsked: []string{`/order {"quantity":8,"sku":"bolt-m8"}`},
		wantHeard: []string{"Order", "result"},
	},
	"a call that is denied": {
		turns: []script.Turn{calls("order", eight), told("ApprovalRequired")}, world: deciding(contract.DecisionDeny), wantOutput: ended,
		wantSteps: []string{"Tools order ApprovalRequired", "Final"}, wantCalls: []string{"order Abandoned"}, wantAsked: nil,
		wantHeard: []string{"Order", "TOOL_ERROR:"},
	},
	"an effect in doubt": {
		turns: []script.Turn{calls("charge", "{}"), calls("lookup", aBolt), told(`"stock":12`)}, wantOutput: ended,
		wantSteps: []string{"Tools charge EffectUncertain", "Tools lookup", "Final"}, wantCalls: []string{"charge Uncertain", "lookup Completed"}, wantAsked: []string{"/fail {}", bolt},
		wantHeard: []string{"Order", "TOOL_ERROR:", "result"},
	},
}

// TestWholeRunsOfTools takes each run of the protocol Tools through both APIs,
// streamed and not.
func TestWholeRunsOfTools(t *testing.T) {
	for name, l := range toolLives {
		if l.world == nil {
			l.world = native
			toolLives[name] = l
		}
	}
	eachWay(t, toolLives)
}
