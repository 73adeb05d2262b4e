package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

func toolsInput(t *testing.T) ToolsInput {
	t.Helper()
	in := ToolsInput{
		Instructions: "You keep the books of a small shop.\nBe exact.", Limits: contract.DefaultLimits(), MaxSteps: 20,
		Catalogue: catalogue(t, contract.MaxCatalogueBytes, twoTools()...),
		Recipes: []contract.PinnedRecipeTool{{
			PinnedRecipe: contract.PinnedRecipe{Name: "month", ToolName: "month_sum"}, Description: "Sums up the orders of a month.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"month":{"type":"string"}},"required":["month"]}`),
		}},
	}
	for _, x := range twoTools() {
		in.Tools = append(in.Tools, contract.PinnedTool{Tool: x, Direct: true})
	}
	in.Tools[0].Tool.Effect, in.Tools[1].Approval = contract.EffectReadOnly, contract.ApprovalRequired
	in.Tools = append(in.Tools, contract.PinnedTool{Tool: contract.Tool{Name: "ask_owner", Deferred: true}, Direct: true})
	return in
}

func TestRenderTools(t *testing.T) {
	cases := map[string]func(*ToolsInput){
		"tools":                 func(*ToolsInput) {},
		"tools-no-tools":        func(in *ToolsInput) { *in = ToolsInput{Catalogue: catalogue(t, contract.MaxCatalogueBytes)} },
		"tools-empty-catalogue": func(in *ToolsInput) { in.Catalogue = catalogue(t, 2, twoTools()...) },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			in := toolsInput(t)
			change(&in)
			var b strings.Builder
			b.WriteString(RenderTools(in))
			for _, d := range Definitions(in) {
				fmt.Fprintf(&b, "\n==== %s\n%s\n---- %s\n", d.Name, d.Description, d.Parameters)
				var schema struct{ Type string }
				if err := json.Unmarshal(d.Parameters, &schema); err != nil || schema.Type != "object" {
					t.Errorf("the parameters of %s are %s", d.Name, d.Parameters)
				}
			}
			golden(t, name+".txt", b.String())
		})
	}
}

// The contract itself must not outgrow what it explains.
func TestToolsTextIsShort(t *testing.T) {
	in := toolsInput(t)
	in.Instructions = ""
	own := len(RenderTools(in)) + len(Definitions(in)[0].Description) - len(in.Catalogue.Text)
	t.Logf("%d bytes without the catalogue, about %d tokens", own, own/4)
	if own > 5120 {
		t.Errorf("%d bytes without the catalogue, want at most 5120", own)
	}
}

func TestReadTools(t *testing.T) {
	tests := map[string]struct {
		text   *string
		finish string
		want   Why
	}{
		"an answer":                     {new("x"), "stop", ""},
		"without a reason":              {new("x"), "", ""},
		"none":                          {nil, "stop", WhyEmpty},
		"blank":                         {new(" \n"), "", WhyEmpty},
		"blank and cut":                 {new(" \n"), "length", WhyCutAnswer},
		"none and filtered":             {nil, "content_filter", WhyCutAnswer},
		"none but a call":               {nil, "tool_calls", WhyNoCall},
		"cut":                           {new("x"), "max_tokens", WhyCutAnswer},
		"filtered":                      {new("x"), "content_filter", WhyCutAnswer},
		"a call that is none":           {new("x"), "tool_calls", WhyNoCall},
		"a call in the text":            {new("\n<tool_call>{}"), "stop", WhyTextCall},
		"a message of ours":             {new("TOOL_ERROR: {}"), "stop", WhyTextCall},
		"a call behind thoughts":        {new("<think>I need it.</think>\n\n<tool_call>{}</tool_call>"), "stop", WhyTextCall},
		"thoughts without a beginning":  {new("I need it.\n</think>\n<tool_call>{}"), "stop", WhyTextCall},
		"a call behind words":           {new("Let me look.\n\n<tool_call>\n{\"name\":\"x\"}\n</tool_call>\n"), "stop", WhyTextCall},
		"a function behind words":       {new("Let me look.\n<function=read>\n</function>"), "stop", WhyTextCall},
		"channels":                      {new("<|channel|>commentary to=functions.read<|message|>{}"), "stop", WhyTextCall},
		"a call that is quoted":         {new("Write <tool_call>{}</tool_call>"), "stop", ""},
		"words behind a call in a line": {new("Models write\n<tool_call>{}</tool_call>\nfor a call."), "stop", ""},
		"thoughts before an answer":     {new("<think><tool_call>?</think>\nIt is 7."), "stop", ""},
		"thoughts alone":                {new("<think>It is 7.</think>\n"), "stop", WhyEmpty},
		"thoughts without an end":       {new("<think>It is 7."), "stop", WhyEmpty},
		"a text about messages":         {new("It said TOOL_ERROR: {}"), "stop", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ReadTools(tc.text, tc.finish)
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if s := ToolsError(got); !strings.HasPrefix(s, protocolHead) || len(s) > 512 || strings.Contains(s, "\n") {
				t.Errorf("sentence %q", s)
			}
		})
	}
}

func TestSpoken(t *testing.T) {
	for text, want := range map[string]string{
		"It is 7. ":                        "It is 7. ",
		"<think>Hm.</think>\n\nIt is 7.":   "It is 7.",
		" <think></think>It is 7.":         "It is 7.",
		"Hm.\n</think>\nIt is 7.":          "It is 7.",
		"<think>Hm.":                       "",
		"<think>a</think>b <think>c":       "b <think>c",
		"Write <think>x</think> around it": "Write <think>x</think> around it",
	} {
		if got := Spoken(text); got != want {
			t.Errorf("%q of %q, want %q", got, text, want)
		}
	}
}

func TestToolResult(t *testing.T) {
	tests := map[string]struct {
		value string
		most  int
		want  string
	}{
		"a value":          {"{ \"a\": 1 }", 100, `{"result":{"a":1}}`},
		"none":             {"", 100, `{"result":null}`},
		"cut":              {`"` + strings.Repeat("x", 400) + `"`, 300, `{"result":"` + strings.Repeat("x", 42) + `","cut":"result is only the beginning of the text of a result of 402 bytes"}`},
		"cut of no string": {"[" + strings.Repeat("1,", 400) + "1]", 300, `{"result":"[` + strings.Repeat("1,", 20) + `1","cut":"result is only the beginning of the text of a result of 803 bytes"}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ToolResult(json.RawMessage(tc.value), tc.most)
			if diff := cmp.Diff(tc.want, got); diff != "" || len(got) > tc.most || !json.Valid([]byte(got)) {
				t.Errorf("%d bytes (-want +got):\n%s", len(got), diff)
			}
		})
	}
}

func TestToolErrorFits(t *testing.T) {
	f := Failure{Fault: contract.Faultf(contract.ReasonEffectUncertain, "m")}
	for range 2000 {
		f.Calls = append(f.Calls, contract.Call{Tool: "pay", State: contract.CallCompleted})
	}
	for name, text := range map[string]string{"tool": ToolError(f, 8<<10), "code": CodeFailure(f, 8<<10)} {
		_, object, _ := strings.Cut(text, toolHead)
		if name == "code" {
			object = text
		}
		if len(text) > 8<<10 || !json.Valid([]byte(object)) || !strings.Contains(text, "moreEffects") {
			t.Errorf("%s: %d bytes: %.200s", name, len(text), text)
		}
	}
}
