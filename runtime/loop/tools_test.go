package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// says is an answer of a model: a text, or native calls.
type says struct {
	text   string
	calls  []contract.ModelToolCall
	finish string
}

func (s says) answer() ModelAnswer {
	a := ModelAnswer{ToolCalls: s.calls, FinishReason: s.finish, Attempts: 1}
	if s.text != "" {
		a.Text = &s.text
	}
	return a
}

// speaks gives the answers one after another, and the last one for good.
func speaks(list ...says) asks {
	return func(_ context.Context, n int, _ ModelRequest) (ModelAnswer, error) {
		return list[min(n, len(list))-1].answer(), nil
	}
}

// calls is an answer with native calls, each a name and its arguments.
func calls(pairs ...string) says {
	var s says
	for i := 0; i < len(pairs); i += 2 {
		s.calls = append(s.calls, contract.ModelToolCall{ID: fmt.Sprintf("c%d", i/2+1), Name: pairs[i], Arguments: pairs[i+1]})
	}
	return s
}

// runs is a call of run_code; the executors of these tests go by its text.
func runs(source string) says {
	b, _ := json.Marshal(map[string]string{"source": source})
	return calls(contract.RunCodeTool, string(b))
}

// desk answers each call as it is told.
type desk struct {
	answer func(ctx context.Context, p contract.Pending) (Resolution, error)
	shown  []contract.Pending
}

func (d *desk) Await(ctx context.Context, p contract.Pending) (Resolution, error) {
	d.shown = append(d.shown, p)
	return d.answer(ctx, p)
}

func decides(r Resolution) *desk {
	return &desk{answer: func(context.Context, contract.Pending) (Resolution, error) { return r, nil }}
}

// toolsConfig is the run of an agent in the protocol Tools: with the three tools, one
// that must be approved, one that is deferred, and a recipe.
func toolsConfig(f asks) (Config, *asked) {
	c, m := agentConfig(f)
	c.Bundle.Agent.Protocol, c.Bundle.Agent.MaxSteps = contract.ProtocolTools, 6
	for i := range c.Tools {
		c.Tools[i].Direct = true
	}
	of := func(name string, e contract.Effect) broker.Tool {
		return broker.Tool{PinnedTool: contract.PinnedTool{Tool: contract.Tool{Name: name, Effect: e}, Direct: true, NotFromCode: true}, Backend: backend{}}
	}
	wire, ask, hidden := of("wire", contract.EffectEffectful), of("ask", contract.EffectReadOnly), of("hidden", contract.EffectReadOnly)
	wire.Approval, ask.Tool.Deferred, ask.NotFromCode, hidden.Direct = contract.ApprovalRequired, true, false, false
	ask.Tool.OutputSchema = json.RawMessage(`{"type":"string"}`)
	c.Tools = append(c.Tools, wire, ask, hidden)
	recipeOf := func(name, source string, tools ...string) contract.PinnedRecipeTool {
		return contract.PinnedRecipeTool{
			PinnedRecipe: contract.PinnedRecipe{Name: "recipe-" + name, ToolName: name}, Source: source, SourceDigest: contract.Digest([]byte(source)),
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`),
			OutputSchema: json.RawMessage(`{"type":"number"}`), Limits: contract.DefaultLimits(), Tools: tools,
		}
	}
	c.Bundle.Agent.Recipes = []contract.PinnedRecipeTool{
		recipeOf("sum", "call hidden", "hidden"), recipeOf("spend", "call pay", "pay"), recipeOf("stray", "call read", "hidden"), recipeOf("text", `return "x"`),
	}
	c.Bundle.Limits.OutputBytes = 1 << 17
	return c, m
}

// TestToolsWaysOut has the ways out of the loop in the protocol Tools.
func TestToolsWaysOut(t *testing.T) {
	done := says{text: "all done "}
	tests := map[string]struct {
		model    []says
		change   func(*Config)
		want     contract.Reason // or else value
		value    string
		evidence string
		steps    []string
	}{
		"the model's text":                 {model: []says{done}, value: `"all done "`, steps: []string{"Final"}},
		"the model's text behind thoughts": {model: []says{{text: "<think>So 7.</think>\nIt is 7."}}, value: `"It is 7."`, steps: []string{"Final drift"}},
		"after a program":                  {model: []says{runs("return 8"), done}, value: `"all done "`, steps: []string{"Tools run_code", "Final"}},
		"a text that is a message of Code": {model: []says{{text: final}}, value: `"{\"type\":\"final\",\"output\":\"said\"}"`, steps: []string{"Final"}},
		"after calls in one answer": {
			model: []says{calls("read", "{}", "pay", "", "sum", "{}"), done}, value: `"all done "`, steps: []string{"Tools read pay sum", "Final"},
		},
		"no steps left": {
			model: []says{calls("read", "{}")}, change: func(c *Config) { c.Bundle.Agent.MaxSteps = 2 },
			want: contract.ReasonStepLimitExceeded, evidence: `{"step":2,"result":7}`, steps: []string{"Tools read", "Tools read"},
		},
		"an empty answer thrice": {
			model: []says{runs("return 8"), {}}, want: contract.ReasonProtocolError, evidence: `{"step":1,"result":8}`,
			steps: []string{"Tools run_code", "ProtocolError ProtocolError", "ProtocolError ProtocolError", "ProtocolError ProtocolError"},
		},
		"an answer that is cut is no end": {
			model: []says{{text: "half of", finish: "length"}, {text: "half of", finish: "content_filter"}, done}, value: `"all done "`,
			steps: []string{"ProtocolError ProtocolError", "ProtocolError ProtocolError", "Final"},
		},
		"calls that are cut are not made": {
			model: []says{{calls: calls("pay", "{}").calls, finish: "length"}, done}, value: `"all done "`, steps: []string{"ProtocolError ProtocolError", "Final"},
		},
		"a call in the text is no end": {
			model: []says{{text: "<tool_call>{}"}, {text: "x", finish: "tool_calls"}, done}, value: `"all done "`,
			steps: []string{"ProtocolError ProtocolError", "ProtocolError ProtocolError", "Final"},
		},
		"protocol text is no end": {
			model: []says{{text: " PROTOCOL_ERROR: x"}, {text: "TOOL_ERROR: {}"}, done}, value: `"all done "`,
			steps: []string{"ProtocolError ProtocolError", "ProtocolError ProtocolError", "Final"},
		},
		"names that nobody offered": {
			model: []says{calls("ghost", "{}"), calls("hidden", "{}", "read", "{}"), calls("code", "{}")}, want: contract.ReasonProtocolError,
			evidence: `{"step":2,"result":7}`, steps: []string{"Tools ghost:ToolNotAllowed", "Tools hidden:ToolNotAllowed read", "Tools ProtocolError"},
		},
		"wrong arguments are no mistake": {
			model: []says{
				calls("read", "[]", "read", "{", "sum", `{"n":"x"}`), calls("run_code", "{}", "run_code", `{"source":""}`, "run_code", `{"source":"ok","more":1}`),
				calls("sum", `{"m":1}`), calls("sum", `null`), done,
			},
			value: `"all done "`,
			steps: []string{
				"Tools read:InvalidArguments read:InvalidArguments sum:InvalidArguments", "Tools run_code:InvalidArguments run_code:InvalidArguments run_code:InvalidArguments",
				"Tools sum:InvalidArguments", "Tools sum:InvalidArguments", "Final",
			},
		},
		"a recipe's output is not of its schema":  {model: []says{calls("text", "{}"), done}, value: `"all done "`, steps: []string{"Tools text:InvalidOutput", "Final"}},
		"a recipe calls what it does not declare": {model: []says{calls("stray", "{}"), done}, value: `"all done "`, steps: []string{"Tools stray:ToolNotAllowed", "Final"}},
		"a recipe's own budget is not the run's": {
			model:  []says{calls("spend", "{}", "pay", "{}"), done},
			change: func(c *Config) { none := int64(0); c.Bundle.Agent.Recipes[1].Limits.ChildCalls = &none },
			value:  `"all done "`, steps: []string{"Tools spend:CallLimitExceeded pay", "Final"},
		},
		"code does not reach what is not for code": {model: []says{runs("call wire"), runs("call ask"), done}, value: `"all done "`, steps: []string{"Tools run_code:ToolNotAllowed", "Tools run_code:CallDeferred", "Final"}},
		"without a desk nothing waits": {
			model: []says{calls("wire", "{}", "ask", "{}"), done}, value: `"all done "`, steps: []string{"Tools wire:ApprovalRequired ask:CallDeferred", "Final"},
		},
		"the budget of the run": {
			model: []says{calls("read", "{}", "read", "{}")}, change: func(c *Config) { *c.Bundle.Limits.ChildCalls = 1 },
			want: contract.ReasonCallLimitExceeded, evidence: `{"step":1,"result":7}`, steps: []string{"Tools read read:CallLimitExceeded CallLimitExceeded"},
		},
		"the journal cannot be written": {
			model: []says{calls("pay", "{}")}, change: func(c *Config) { c.Journal = broken{} },
			want: contract.ReasonBrokerUnavailable, steps: []string{"Tools pay:BrokerUnavailable BrokerUnavailable"},
		},
		"the sandbox is lost": {model: []says{runs("break")}, want: contract.ReasonWorkerLost, steps: []string{"Tools run_code:WorkerLost WorkerLost"}},
		"an effect in doubt leaves what reads": {
			model: []says{calls("lose", "{}", "pay", "{}"), calls("pay", "{}"), calls("read", "{}"), calls("spend", "{}"), runs("call read"), done}, value: `"all done "`,
			steps: []string{"Tools lose:EffectUncertain pay:EffectUncertain", "Tools pay:ToolNotAllowed", "Tools read", "Tools spend:EffectUncertain", "Tools run_code", "Final"},
		},
		"too large an output": {
			model: []says{{text: strings.Repeat("x", 1<<17)}, done}, value: `"all done "`, steps: []string{"ProtocolError ProtocolError", "Final"},
		},
		"two tools of one name": {
			model: []says{done}, change: func(c *Config) { c.Bundle.Agent.Recipes[0].ToolName = "pay" }, want: contract.ReasonNameConflict,
		},
		"more than may be offered": {
			model: []says{done}, change: func(c *Config) { c.Bundle.Agent.Recipes[0].Description = strings.Repeat("x", contract.MaxOfferBytes) }, want: contract.ReasonInvalidInput,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, _ := toolsConfig(speaks(tc.model...))
			if tc.change != nil {
				tc.change(&c)
			}
			o := Run(t.Context(), c)
			var got contract.Reason
			if o.Fault != nil {
				got = o.Fault.Reason
			}
			if got != tc.want || string(o.Value) != tc.value || o.Evidence != tc.evidence {
				t.Errorf("value %s, fault %v, evidence %s; want %q, %q and %q", o.Value, o.Fault, o.Evidence, tc.value, tc.want, tc.evidence)
			}
			if diff := cmp.Diff(tc.steps, toolSteps(o)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func toolSteps(o Outcome) (out []string) {
	for _, s := range o.Steps {
		text := string(s.Kind)
		for _, x := range s.Tools {
			text += " " + x.Name
			if x.Reason != "" {
				text += ":" + x.Reason
			}
		}
		if s.Reason != "" {
			text += " " + s.Reason
		}
		if s.Drift {
			text += " drift"
		}
		out = append(out, text)
	}
	return out
}

// lastTold is what the model was told last: the messages behind its last answer.
func lastTold(r ModelRequest) (out []string) {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == RoleAssistant {
			break
		}
		out = append([]string{m.ToolCallID + " " + m.Text}, out...)
	}
	return out
}

// TestWhatToolsTell looks at the messages that follow the first answer.
func TestWhatToolsTell(t *testing.T) {
	many := says{}
	for i := range 34 {
		many.calls = append(many.calls, contract.ModelToolCall{ID: "same", Name: contract.RunCodeTool, Arguments: fmt.Sprintf(`{"source":"return 1","input":%d}`, i)})
	}
	const effects = `"effects":[]}`
	tests := map[string]struct {
		answer says
		want   []string
	}{
		"results in their order": {calls("pay", "{}", contract.RunCodeTool, `{"source":"return {\"a\": 1}"}`, "sum", "{}"), []string{`c1 {"result":7}`, `c2 {"result":{"a":1}}`, `c3 {"result":7}`}},
		"a program that failed":  {runs("fail JavaScriptError"), []string{`c1 {"error":{"reason":"JavaScriptError","message":"it failed","line":3,"column":4,` + effects + "}"}},
		"no id":                  {says{calls: []contract.ModelToolCall{{Name: "read"}, {ID: "x", Name: "read"}}}, []string{`call_1_1 {"result":7}`, `x {"result":7}`}},
		"an unknown name":        {calls("gh st", "{}"), []string{`c1 TOOL_ERROR: {"reason":"ToolNotAllowed","message":"no tool named \"gh st\" is offered",` + effects}},
		"no object":              {calls("read", "7"), []string{`c1 TOOL_ERROR: {"reason":"InvalidArguments","message":"the arguments are no JSON object",` + effects}},
		"an effect in doubt": {calls("lose", "{}"), []string{
			`c1 TOOL_ERROR: {"reason":"EffectUncertain","message":"call 1 of tool lose may have had its effect: lost","effects":[{"tool":"lose","seq":1,"state":"Uncertain"}],` +
				`"note":"Whether a call took effect is not known. From now on only these tools can be called in this run: read, ask."}`,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, m := toolsConfig(speaks(tc.answer, says{text: "end"}))
			if o := Run(t.Context(), c); o.Fault != nil {
				t.Fatal(o.Fault)
			}
			if diff := cmp.Diff(tc.want, lastTold(m.requests[1])); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("more calls than an answer may make", func(t *testing.T) {
		c, m := toolsConfig(speaks(many, says{text: "end"}))
		o := Run(t.Context(), c)
		told := lastTold(m.requests[1])
		ids := map[string]bool{}
		for i, text := range told {
			id, rest, _ := strings.Cut(text, " ")
			ids[id] = true
			if made := rest == `{"result":1}`; made != (i < contract.MaxTurnCalls) {
				t.Errorf("call %d: %s", i, rest)
			}
		}
		if len(told) != 34 || len(ids) != 34 || o.Steps[0].ToolCalls != 34 || len(o.Steps[0].Tools) != contract.MaxStepTools {
			t.Errorf("%d results with %d ids; step %+v", len(told), len(ids), o.Steps[0])
		}
	})
}

// TestWhatIsOffered looks at the tools of each request.
func TestWhatIsOffered(t *testing.T) {
	c, m := toolsConfig(speaks(calls("lose", "{}"), says{text: "end"}))
	Run(t.Context(), c)
	var got []string
	for _, r := range m.requests {
		var names []string
		for _, x := range r.Tools {
			names = append(names, x.Name)
		}
		got = append(got, strings.Join(names, " "))
	}
	want := []string{"run_code sum spend stray text lose pay read wire ask", "run_code sum spend stray text read ask"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("offered (-want +got):\n%s", diff)
	}
	c, m = toolsConfig(speaks(says{text: "end"}))
	for i := range c.Tools[:3] {
		c.Tools[i].Tool.Description = strings.Repeat("x", contract.MaxCatalogueBytes/2)
	}
	if o := Run(t.Context(), c); o.Fault != nil || len(m.requests[0].Tools) != 10 || !strings.Contains(m.requests[0].Tools[0].Description, "too long to be shown") {
		t.Errorf("with an empty catalogue: %v", o.Fault)
	}
}
