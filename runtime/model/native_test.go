package model

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/test/modelserver/script"
)

// TestNativeTools: an answer with calls, their results, and the answer to these,
// through both APIs, streaming and not.
func TestNativeTools(t *testing.T) {
	none := []string{}
	turns := []script.Turn{
		{Text: "let me see", Reasoning: "hm", ToolCalls: []script.ToolCall{{Name: "read", Arguments: `{"path":"/a/longer/path/than/one/part"}`}, {Name: "list"}}, WantTools: []string{"list", "read"}, WantResults: none},
		{Text: "done", WantTools: []string{"list", "read"}, WantResults: []string{"seven", "no such"}},
		{Text: "bye", WantTools: none, WantResults: none},
	}
	offered := []loop.ModelTool{{Name: "read", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}, {Name: "list"}}
	first := loop.ModelAnswer{
		Text: new("let me see"), Reasoning: "hm", FinishReason: "tool_calls", Attempts: 1,
		ToolCalls: calling("call_1_1", "read", `{"path":"/a/longer/path/than/one/part"}`, "call_1_2", "list", ""),
	}
	for _, api := range []contract.ModelAPI{contract.ModelAPIChat, contract.ModelAPIResponses} {
		for _, streaming := range []script.Streaming{script.StreamAsAsked, script.StreamIgnored} {
			t.Run(fmt.Sprint(api, " ", streaming), func(t *testing.T) {
				s, url := play(t, script.Script{Turns: turns, Stream: streaming})
				c, _ := newClient(t, pinned(url, api))
				messages := question.Messages[:2:2]
				for i, want := range []loop.ModelAnswer{first, said("done"), said("bye")} {
					var told string
					q := loop.ModelRequest{Messages: messages, Tools: offered, Delta: func(text, _ string) { told += text }}
					if i == 2 {
						q.Tools, q.Messages = nil, question.Messages
					}
					ans, err := c.Ask(t.Context(), q)
					if err != nil {
						t.Fatal(err, s.Log("")[i].Problem)
					}
					if d := cmp.Diff(want, ans); d != "" {
						t.Error(d)
					}
					if told != *ans.Text { // a call is no part of the text
						t.Errorf("told %q", told)
					}
					messages = append(messages, loop.Message{Role: loop.RoleAssistant, Text: *ans.Text, ToolCalls: ans.ToolCalls})
					for n, call := range ans.ToolCalls {
						messages = append(messages, loop.Message{Role: loop.RoleTool, ToolCallID: call.ID, Text: []string{"seven", "no such path"}[n]})
					}
				}
			})
		}
	}
}
