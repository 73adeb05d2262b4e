package script

import (
	"net/http"
	"strings"
	"testing"
)

const (
	chatTools     = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]`
	responseTools = `"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false}]`
	beginning     = `{"role":"system","content":"be brief"},{"role":"user","content":"hello"}`
	aCall         = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	itsResult     = `{"role":"tool","tool_call_id":"a","content":"it is 7"}`
)

// TestNativeAnswers: calls in documents and in streams of both APIs.
func TestNativeAnswers(t *testing.T) {
	play := `{"turns":[{"toolCalls":[{"name":"f","arguments":{"text": "something longer"}},{"id":"mine","name":"g","arguments":"no JSON"}]}]}`
	for name, tc := range map[string]struct {
		path, body string
		want       []string
	}{
		"chat": {"chat/completions", `{"model":"m","messages":[` + beginning + `]}`, []string{
			`{"function":{"arguments":"{\"text\":\"something longer\"}","name":"f"},"id":"call_1_1"`, `"id":"mine"`, `"arguments":"no JSON"`,
		}},
		"chat, a stream": {"chat/completions", `{"model":"m","stream":true,"messages":[` + beginning + `]}`, []string{
			`"tool_calls":[{"function":{"arguments":"","name":"f"},"id":"call_1_1","index":0,"type":"function"}]`, `"tool_calls":[{"function":{"arguments":"{\"text\":\"som"},"index":0}]`,
			`"tool_calls":[{"function":{"arguments":"no JSON"},"index":1}]`, `"finish_reason":"tool_calls"`,
		}},
		"responses": {"responses", `{"model":"m","input":[` + beginning + `]}`, []string{
			`"arguments":"{\"text\":\"something longer\"}","call_id":"call_1_1"`, `"call_id":"mine"`,
		}},
		"responses, a stream": {"responses", `{"model":"m","stream":true,"input":[` + beginning + `]}`, []string{
			"event: response.output_item.added\n", `"delta":"{\"text\":\"som"`, `"arguments":"{\"text\":\"something longer\"}","item_id":"fc_0","output_index":0,"type":"response.function_call_arguments.done"`,
			"event: response.output_item.done\n", `"output_index":1`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := start(t, Config{})
			if status, text := post(t, url+"/script?name=one", play); status != http.StatusNoContent {
				t.Fatal(text)
			}
			status, got := post(t, url+"/s/one/v1/"+tc.path, tc.body)
			if status != http.StatusOK {
				t.Errorf("status %d", status)
			}
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %s in %s", want, got)
				}
			}
		})
	}
}

// TestNativeChecks: what is wrong with a request that has tools, calls or results.
func TestNativeChecks(t *testing.T) {
	turn := func(members string) string { return `{"turns":[{"text":"x",` + members + `}]}` }
	chat := func(more, members string) string {
		return `{"model":"m",` + members + `"messages":[` + beginning + more + `]}`
	}
	responses := func(more, members string) string {
		return `{"model":"m",` + members + `"input":[` + beginning + more + `]}`
	}
	const (
		called = `,{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
		output = `,{"type":"function_call_output","call_id":"a","output":"it is 7"}`
	)
	for name, tc := range map[string]struct {
		script, body string
		// want is a part of the problem; "" when there is none.
		want string
	}{
		"tools as wanted":       {turn(`"wantTools":["f"]`), chat("", chatTools+","), ""},
		"responses: as wanted":  {turn(`"wantTools":["f"]`), responses("", responseTools+","), ""},
		"other tools":           {turn(`"wantTools":["f","g"]`), chat("", chatTools+","), `the tools offered are [\"f\"], want [\"f\" \"g\"]`},
		"no tools":              {turn(`"wantTools":[]`), chat("", ""), ""},
		"tools in spite of it":  {turn(`"wantTools":[]`), chat("", chatTools+","), "the tools offered are"},
		"by the script":         {`{"wantTools":["g"],"turns":["x"]}`, chat("", chatTools+","), "the tools offered are"},
		"an empty list":         {turn(`"status":200`), chat("", `"tools":[],`), "0 tools are offered"},
		"the other API's form":  {turn(`"status":200`), chat("", responseTools+","), "form of the other API"},
		"and the other way":     {turn(`"status":200`), responses("", chatTools+","), "form of the other API"},
		"two of one name":       {turn(`"status":200`), chat("", strings.Replace(chatTools, `}}}]`, `}}},{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]`, 1)+","), "two tools have the name"},
		"a name":                {turn(`"status":200`), chat("", strings.Replace(chatTools, `"f"`, `"f.g"`, 1)+","), "a tool has the name"},
		"no properties":         {turn(`"status":200`), chat("", strings.Replace(chatTools, `,"properties":{}`, ``, 1)+","), "no schema of an object"},
		"a result as wanted":    {turn(`"wantResults":["is 7"],"lastPrefix":"it","wantLast":["7"]`), chat(","+aCall+","+itsResult, ""), ""},
		"responses: a result":   {turn(`"wantResults":["is 7"]`), responses(called+output, ""), ""},
		"another result":        {turn(`"wantResults":["is 8"]`), chat(","+aCall+","+itsResult, ""), "tool result 1 does not hold"},
		"more results":          {turn(`"wantResults":["7","8"]`), chat(","+aCall+","+itsResult, ""), "there are 1 tool results at the end, want 2"},
		"results, none wanted":  {turn(`"wantResults":[]`), chat(","+aCall+","+itsResult, ""), "there are 1 tool results"},
		"another last message":  {turn(`"wantLast":["8"]`), chat(","+aCall+","+itsResult, ""), "the last message does not hold"},
		"no result":             {turn(`"status":200`), chat(","+aCall, ""), `the call \"a\" has no result`},
		"a user instead":        {turn(`"status":200`), chat(","+aCall+`,{"role":"user","content":"x"}`, ""), "stands where the result"},
		"a result of nothing":   {turn(`"status":200`), chat(","+itsResult, ""), "which no answer before it called"},
		"two results":           {turn(`"status":200`), chat(","+aCall+","+itsResult+","+itsResult, ""), "which no answer before it called"},
		"no id":                 {turn(`"status":200`), chat(","+strings.Replace(aCall, `"id":"a",`, "", 1)+","+itsResult, ""), "a call has no id"},
		"no object":             {turn(`"status":200`), chat(","+strings.Replace(aCall, `"{}"`, `"{"`, 1)+","+itsResult, ""), "are no JSON object"},
		"responses: no object":  {turn(`"status":200`), responses(strings.Replace(called, `"{}"`, `"[]"`, 1)+output, ""), "are no JSON object"},
		"responses: other item": {turn(`"status":200`), responses(`,{"type":"reasoning"}`, ""), "has the type"},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := start(t, Config{})
			if status, text := post(t, url+"/script?name=one", tc.script); status != http.StatusNoContent {
				t.Fatal(text)
			}
			path := "chat/completions"
			if strings.Contains(tc.body, `"input"`) {
				path = "responses"
			}
			status, got := post(t, url+"/s/one/v1/"+path, tc.body)
			if (status == http.StatusOK) != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("status %d, %s, want %q", status, got, tc.want)
			}
		})
	}
}

// TestScriptsAreExact: a typing error in a call is no call.
func TestScriptsAreExact(t *testing.T) {
	_, url := start(t, Config{})
	for _, body := range []string{`{"turns":[{"toolCalls":[{"nam":"f"}]}]}`, `{"turns":[{"wantTool":["f"]}]}`, `{"turns":[{"toolCalls":["f"]}]}`} {
		if status, _ := post(t, url+"/script?name=one", body); status != http.StatusBadRequest {
			t.Errorf("%s: status %d", body, status)
		}
	}
}
