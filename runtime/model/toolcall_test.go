package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// calling are native calls, of id, name and arguments each.
func calling(said ...string) []contract.ModelToolCall {
	var out []contract.ModelToolCall
	for ; len(said) > 2; said = said[3:] {
		out = append(out, contract.ModelToolCall{ID: said[0], Name: said[1], Arguments: said[2]})
	}
	return out
}

// called is the answer of one attempt with those calls and nothing else.
func called(said ...string) loop.ModelAnswer {
	return loop.ModelAnswer{ToolCalls: calling(said...), FinishReason: "tool_calls", Attempts: 1}
}

const callsEnd = `"delta":{},"finish_reason":"tool_calls"`

// deltas is a stream of such lists of tool calls that ends as it should.
func deltas(lists ...string) string {
	var data []string
	for _, l := range lists {
		data = append(data, chunk(`"delta":{"tool_calls":[`+l+`]},"finish_reason":null`))
	}
	return frames(append(data, chunk(callsEnd), "[DONE]")...)
}

// message is a document with those members of its message.
func message(members string) string {
	return `{"choices":[{"index":0,"message":{"role":"assistant",` + members + `},"finish_reason":"tool_calls"}]}`
}

var callStreams = map[string]wild{
	"OpenAI, Azure, vLLM: id and name first, arguments in pieces": {
		body: deltas(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`, `{"index":0,"function":{"arguments":"{\"x\""}}`, `{"index":0,"function":{"arguments":":1}"}}`,
			`{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}}`, `{"index":1,"function":{"arguments":"{}"}}`),
		want: called("a", "f", `{"x":1}`, "b", "g", "{}"),
	},
	"calls that take turns": {
		body: deltas(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}},{"index":1,"id":"b","function":{"name":"f","arguments":"{\"y\":"}}`,
			`{"index":1,"function":{"arguments":"2}"}},{"index":0,"function":{"arguments":"1}"}}`),
		want: called("a", "f", `{"x":1}`, "b", "f", `{"y":2}`),
	},
	"text before a call": {
		body: frames(chunk(`"delta":{"content":"so"}`), chunk(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`), chunk(callsEnd)),
		want: loop.ModelAnswer{Text: new("so"), ToolCalls: calling("a", "f", "{}"), FinishReason: "tool_calls", Attempts: 1},
	},
	"LiteLLM: id, type and name with every piece, or null": {
		body: deltas(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":":1"}}`,
			`{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"}"}}`),
		want: called("a", "f", `{"x":1}`),
	},
	"vLLM with gpt-oss: an id of its own for every piece": {
		body: deltas(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"id":"b","function":{"name":"f","arguments":":1}"}}`),
		want: called("a", "f", `{"x":1}`),
	},
	"vLLM: the last chunk has a piece and the finish reason": {
		body: frames(chunk(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}`), chunk(`"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"finish_reason":"tool_calls"`)),
		want: called("a", "f", `{"x":1}`),
	},
	"vLLM, SGLang: a second call of index 0, pieces with an empty id": {
		body: deltas(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`, `{"index":0,"id":"","function":{"name":null,"arguments":"{}"}}`, `{"index":0,"id":"b","function":{"name":"f","arguments":""}}`, `{"index":0,"id":"","function":{"name":null,"arguments":"{\"x\":1}"}}`),
		want: called("a", "f", "{}", "b", "f", `{"x":1}`),
	},
	"Qianfan: all so far with each piece": {
		body: deltas(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"1"}}`, `{"index":0,"function":{"arguments":"{\"x\":\"12\",\"y\":"}}`, `{"index":0,"function":{"arguments":"{\"x\":\"12\",\"y\":2"}}`, `{"index":0,"function":{"arguments":"{\"x\":\"12\",\"y\":2}"}}`),
		want: called("a", "f", `{"x":"12","y":2}`),
	},
	"an object inside another that begins alike": {
		body: deltas(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`, `{"index":0,"function":{"arguments":"{\"x\":1}}"}}`),
		want: called("a", "f", `{"x":{"x":1}}`),
	},
	"Gemini: no index, and a piece with a signature alone": {
		body: deltas(`{"id":"a","type":"function","extra_content":{"google":{"thought_signature":"s"}},"function":{"name":"f","arguments":"{\"x\":"}}`, `{"function":{"arguments":"1}"}}`, `{"extra_content":{"google":{"thought_signature":"s"}}}`),
		want: called("a", "f", `{"x":1}`),
	},
	"LM Studio: a call of nothing": {body: deltas(`{"id":"","type":"function"}`), want: called()},
	"said again as a whole": {
		body: deltas(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`),
		want: called("a", "f", `{"x":1}`),
	},
	"Ollama: each call whole, in a chunk of its own, all of index 0": {
		body: deltas(`{"id":"a","index":0,"type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"id":"b","index":0,"type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}`),
		want: called("a", "f", `{"x":1}`, "b", "f", `{"x":1}`),
	},
	"Gemini: all of index 0, and no ids": {
		body: deltas(`{"index":0,"id":"","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"index":0,"id":"","function":{"name":"f","arguments":"{\"x\":2}"}}`, `{"index":0,"function":{"name":"g","arguments":""}}`),
		want: called("", "f", `{"x":1}`, "", "f", `{"x":2}`, "", "g", ""),
	},
	"neither index nor id: pieces of one call": {
		body: deltas(`{"function":{"name":"f","arguments":"{\"x\":\"}"}}`, `{"function":{"arguments":"\"}"}}`),
		want: called("", "f", `{"x":"}"}`),
	},
	"neither index nor id: two in one chunk": {
		body: deltas(`{"function":{"name":"f","arguments":{}}},{"function":{"name":"f","arguments":{}}}`),
		want: called("", "f", "{}", "", "f", "{}"),
	},
	"ids and no index": {
		body: deltas(`{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`, `{"function":{"arguments":"1"}}`, `{"id":"a","function":{"arguments":"}"}}`, `{"id":"b","function":{"name":"f"}}`),
		want: called("a", "f", `{"x":1}`, "b", "f", ""),
	},
	"LiteLLM before Ollama: arguments as an object": {
		body: deltas(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x": [1, "<"]}}}`),
		want: called("a", "f", `{"x":[1,"<"]}`),
	},
	"llama.cpp: one letter at a time": {
		body: deltas(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}`, `{"index":0,"function":{"arguments":"\""}}`, `{"index":0,"function":{"arguments":"}"}}`,
			`{"index":0,"function":{"arguments":"\""}}`, `{"index":0,"function":{"arguments":":"}}`, `{"index":0,"function":{"arguments":"1"}}`, `{"index":0,"function":{"arguments":"}"}}`),
		want: called("a", "f", `{"}":1}`),
	},
	"empty arguments":                {body: deltas(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`), want: called("a", "f", "")},
	"null arguments":                 {body: deltas(`{"index":0,"id":"a","function":{"name":"f","arguments":null}}`), want: called("a", "f", "")},
	"arguments that are no object":   {body: deltas(`{"index":0,"id":"a","function":{"name":"f","arguments":[1]}}`), want: called("a", "f", "[1]")},
	"arguments that are no JSON":     {body: deltas(`{"index":0,"id":"a","function":{"name":"f","arguments":"x=1"}}`), want: called("a", "f", "x=1")},
	"a call without a name":          {body: deltas(`{"index":0,"id":"a","function":{"arguments":"{}"}}`), want: called("a", "", "{}")},
	"no function":                    {body: deltas(`{"index":0,"id":"a"}`), want: called("a", "", "")},
	"a list with nothing in it":      {body: deltas(`{"index":0}`), want: called()},
	"a custom call":                  {body: deltas(`{"index":0,"id":"a","type":"custom","custom":{"name":"f","input":"x"}}`), want: called("a", "f", "x")},
	"a call that is a string":        {body: deltas(`"f"`), wantError: "tool call of its answer is in no known form"},
	"the finish reason stop":         {body: frames(chunk(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`), chunk(stopped)), want: loop.ModelAnswer{ToolCalls: calling("a", "f", "{}"), FinishReason: "stop", Attempts: 1}},
	"cut off by the output bound":    {body: frames(chunk(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x"}}]}`), chunk(`"delta":{},"finish_reason":"length"`)), want: loop.ModelAnswer{ToolCalls: calling("a", "f", `{"x`), FinishReason: "length", Attempts: 1}},
	"cut without a finish reason":    {body: frames(chunk(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`)), wantError: "without a finish reason"},
	"the older form, in pieces":      {body: frames(chunk(`"delta":{"function_call":{"name":"f","arguments":""}}`), chunk(`"delta":{"function_call":{"arguments":"{\"x\""}}`), chunk(`"delta":{"function_call":{"arguments":":1}"}}`), chunk(callsEnd)), want: called("", "f", `{"x":1}`)},
	"many pieces of two":             {body: deltas(`{"id":"b"}` + strings.Repeat(`,{"id":"a"}`, 3000)), want: called("b", "", "", "a", "", "")},
	"more calls than are told apart": {body: deltas(many(maxToolCalls + 1)), wantError: "more than 1024 tool calls", wantFinal: true},
	"as many as are told apart":      {body: deltas(many(maxToolCalls)), want: manyCalled(maxToolCalls)},
	"arguments that are too long":    {body: deltas(strings.Repeat(`{"index":0,"id":"a","function":{"name":"f","arguments":"`+strings.Repeat("x", 1000)+`"}},`, 600) + `{"index":0}`), wantError: "tool calls are longer than 524288 bytes", wantFinal: true},
	"Responses: all events": {
		api: contract.ModelAPIResponses,
		body: frames(`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs"}}`, `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":"","status":"in_progress"}}`,
			`{"type":"response.function_call_arguments.delta","item_id":"fc","output_index":1,"delta":"{\"x\""}`, `{"type":"response.function_call_arguments.delta","item_id":"fc","output_index":1,"delta":":1}"}`,
			`{"type":"response.function_call_arguments.done","item_id":"fc","output_index":1,"arguments":"{\"x\":1}"}`, `{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":"{\"x\":1}","status":"completed"}}`,
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"reasoning","id":"rs"},{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":"{\"x\":1}"}]}}`),
		want: called("a", "f", `{"x":1}`),
	},
	"vLLM: Responses: an empty output at the end": {
		api: contract.ModelAPIResponses,
		body: frames(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f"}}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"b","name":"f"}}`, `{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{\"y\":1}"}`,
			`{"type":"response.completed","response":{"status":"completed","output":[]}}`),
		want: called("a", "f", "{}", "b", "f", `{"y":1}`),
	},
	"Responses: no index in the events": {
		api: contract.ModelAPIResponses,
		body: frames(`{"type":"response.output_item.added","item":{"type":"function_call","id":"fc_1","call_id":"a","name":"f"}}`, `{"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"{}"}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{}"}}`, `{"type":"response.completed","response":{"status":"completed","output":[]}}`),
		want: called("a", "f", "{}"),
	},
	"ChatGPT: Responses: an index in one event alone, and no id of items": {
		api: contract.ModelAPIResponses,
		body: frames(`{"type":"response.output_item.added","item":{"type":"function_call","arguments":"","call_id":"a","name":"f"}}`, `{"type":"response.function_call_arguments.done","arguments":"{\"x\":5}","output_index":1}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","arguments":"{\"x\":5}","call_id":"a","name":"f"}}`, `{"type":"response.output_item.added","item":{"type":"function_call","arguments":"","call_id":"b","name":"f"}}`,
			`{"type":"response.function_call_arguments.done","arguments":"{\"x\":6}","output_index":2}`, `{"type":"response.completed","response":{"status":"completed","output":[]}}`),
		want: called("a", "f", `{"x":5}`, "b", "f", `{"x":6}`),
	},
	"Responses: cut off by the output bound": {
		api: contract.ModelAPIResponses,
		body: frames(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f"}}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"x"}`,
			`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}`),
		want: loop.ModelAnswer{ToolCalls: calling("a", "f", `{"x`), FinishReason: "length", Attempts: 1},
	},
}

var callDocuments = map[string]wild{
	"OpenAI, Azure, vLLM": {
		body: message(`"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]`),
		want: called("a", "f", `{"x":1}`, "b", "g", "{}"),
	},
	"one id for all": {body: message(`"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"a","function":{"name":"f","arguments":"{}"}}]`), want: called("a", "f", "{}", "a", "f", "{}")},
	"no ids":         {body: message(`"content":"","tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"id":null,"function":{"name":"f","arguments":""}}]`), want: called("", "f", "{}", "", "f", "")},
	"LiteLLM before Ollama: arguments as objects": {body: message(`"content":"","tool_calls":[{"id":"a","index":0,"function":{"name":"f","arguments":{"x": 1}}},{"id":"b","index":0,"function":{"name":"f","arguments":{}}}]`), want: called("a", "f", `{"x":1}`, "b", "f", "{}")},
	"an empty list":            {body: `{"choices":[{"message":{"content":"x","tool_calls":[]},"finish_reason":"stop"}]}`, want: said("x")},
	"an empty function_call":   {body: `{"choices":[{"message":{"content":"x","function_call":{}},"finish_reason":"stop"}]}`, want: said("x")},
	"both forms":               {body: message(`"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}],"function_call":{"name":"f","arguments":"{}"}`), want: called("a", "f", "{}")},
	"more calls than are told": {body: message(`"tool_calls":[` + many(maxToolCalls+1) + `]`), wantError: "more than 1024 tool calls", wantFinal: true},
	"Responses": {
		api: contract.ModelAPIResponses,
		body: `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"so"}]},{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":"{\"x\":1}"},
			{"type":"function_call","id":"fc_2","name":"f","arguments":{}},{"type":"custom_tool_call","call_id":"c","name":"g","input":"x"}]}`,
		want: loop.ModelAnswer{Text: new("so"), ToolCalls: calling("a", "f", `{"x":1}`, "fc_2", "f", "{}", "c", "g", "x"), FinishReason: "tool_calls", Attempts: 1},
	},
	"Responses: more calls than are told": {
		api: contract.ModelAPIResponses, body: `{"status":"completed","output":[{"type":"function_call"}` + strings.Repeat(`,{"type":"function_call"}`, maxToolCalls) + `]}`,
		wantError: "more than 1024 tool calls", wantFinal: true,
	},
}

// many is a list of n calls.
func many(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`{"index":%d,"id":"a%d","function":{"name":"f","arguments":"{}"}}`, i, i))
	}
	return strings.Join(out, ",")
}

func manyCalled(n int) loop.ModelAnswer {
	var said []string
	for i := range n {
		said = append(said, fmt.Sprintf("a%d", i), "f", "{}")
	}
	return called(said...)
}

func TestForms(t *testing.T) {
	for _, set := range []struct {
		what, kind string
		table      map[string]wild
	}{
		{"stream", "text/event-stream", streams}, {"document", "application/json", documents},
		{"calls in a stream", "text/event-stream", callStreams}, {"calls in a document", "application/json", callDocuments},
	} {
		for name, tc := range set.table {
			t.Run(set.what+": "+name, func(t *testing.T) {
				if tc.api == "" {
					tc.api = contract.ModelAPIChat
				}
				if tc.kind == "" {
					tc.kind = set.kind
				}
				c, waits := newClient(t, pinned(raw(t, tc.kind, tc.body), tc.api))
				ans, err := ask(t, c)
				if tc.wantError != "" {
					wantFault(t, err, tc.wantError)
					if tc.wantFinal != (len(*waits) == 0) {
						t.Errorf("waits %v", *waits)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(tc.want, ans); d != "" {
					t.Error(d)
				}
			})
		}
	}
}
