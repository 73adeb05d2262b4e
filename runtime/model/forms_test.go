package model

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// raw starts a server that answers each request with the text.
func raw(t *testing.T, contentType, text string) string {
	t.Helper()
	h := httptest.NewServer(heard(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(h.Close)
	return h.URL
}

// frames makes a stream of the data of its events.
func frames(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// chunk is a chunk of a chat completion with the members of its one choice.
func chunk(choice string) string {
	return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,` + choice + `}]}`
}

const stopped = `"delta":{},"finish_reason":"stop"`

// said is the answer of one attempt with that text.
func said(text string) loop.ModelAnswer {
	return loop.ModelAnswer{Text: &text, FinishReason: "stop", Attempts: 1}
}

func counted(a loop.ModelAnswer, in, out int64) loop.ModelAnswer {
	a.InputTokens, a.OutputTokens, a.Counted = in, out, true
	return a
}

// wild is an answer as an endpoint in the wild gives it. RATIONALE.md has the
// sources.
type wild struct {
	api  contract.ModelAPI // chat when it is empty
	kind string            // the content type; text/event-stream when it is empty
	body string
	want loop.ModelAnswer
	// wantError is a part of the error; wantFinal, that nobody asks again.
	wantError string
	wantFinal bool
}

var streams = map[string]wild{
	"Azure: a first chunk with the verdict on the prompt, later ones without choices": {
		body: frames(`{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}`,
			chunk(`"delta":{"content":"","role":"assistant","refusal":null},"content_filter_results":{},"finish_reason":null,"logprobs":null`),
			chunk(`"delta":{"content":"x"},"content_filter_results":{"hate":{"filtered":false}},"finish_reason":null`),
			chunk(`"finish_reason":null,"content_filter_offsets":{"check_offset":1}`), chunk(stopped),
			`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"completion_tokens_details":{"reasoning_tokens":0}}}`, "[DONE]"),
		want: counted(said("x"), 3, 4),
	},
	"Azure: filtered": {
		body: frames(chunk(`"delta":{"content":"x"}`), chunk(`"delta":{},"finish_reason":"content_filter"`), "[DONE]"),
		want: loop.ModelAnswer{Text: new("x"), FinishReason: "content_filter", Attempts: 1},
	},
	"Ollama: an empty finish reason with every chunk": {
		body: frames(chunk(`"delta":{"role":"assistant","content":"x"},"finish_reason":""`), chunk(`"delta":{"role":"assistant","content":"y"},"finish_reason":""`),
			chunk(`"delta":{"role":"assistant","content":""},"finish_reason":"stop"`), "[DONE]"),
		want: said("xy"),
	},
	"Ollama: reasoning": {
		body: frames(chunk(`"delta":{"role":"assistant","content":"","reasoning":"hm"},"finish_reason":null`), chunk(`"delta":{"content":"x"},"finish_reason":"stop"`), "[DONE]"),
		want: loop.ModelAnswer{Text: new("x"), Reasoning: "hm", FinishReason: "stop", Attempts: 1},
	},
	"vLLM: reasoning_content, a stop_reason, usage with every chunk": {
		body: frames(chunk(`"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null`),
			chunk(`"delta":{"reasoning_content":"hm"},"finish_reason":null`), chunk(`"delta":{"content":"x"},"finish_reason":null`),
			`{"choices":[{"index":0,"delta":{"content":"y"},"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`,
			`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`, "[DONE]"),
		want: counted(loop.ModelAnswer{Text: new("xy"), Reasoning: "hm", FinishReason: "stop", Attempts: 1}, 3, 2),
	},
	"vLLM: aborted, as if it were done": {
		body:      frames(chunk(`"delta":{"content":"x"}`), chunk(`"delta":{"content":""},"finish_reason":"abort"`), "[DONE]"),
		wantError: "ended early (abort)",
	},
	"vLLM: an error object of the older form": {
		body:      frames(`{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}`, "[DONE]"),
		wantError: "is an error (BadRequestError)", wantFinal: true,
	},
	"vLLM: an error, then [DONE]": {
		body:      frames(chunk(`"delta":{"content":"x"}`), `{"error":{"message":"queue full","type":"InternalServerError","param":null,"code":500}}`, "[DONE]"),
		wantError: "is an error (InternalServerError)",
	},
	"SGLang: the request is at fault, inside a 200": {
		body:      frames(`{"error":{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}}`, "[DONE]"),
		wantError: "is an error (BadRequestError)", wantFinal: true,
	},
	"vllm-mlx: a null finish reason, then [DONE]": {
		body:      frames(chunk(`"delta":{"content":"x"},"finish_reason":null`), chunk(`"delta":{},"finish_reason":null`), "[DONE]"),
		wantError: "without a finish reason",
	},
	"llama.cpp: timings, null content, comments": {
		body: ": \n\n" + frames(`{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"timings":{"prompt_n":1}}`,
			chunk(`"finish_reason":null,"delta":{"reasoning_content":"hm"}`)) + ":\n\n: keep-alive\n\n" +
			frames(chunk(`"finish_reason":null,"delta":{"content":"x"}`), chunk(stopped), `{"choices":[],"usage":{"completion_tokens":4,"prompt_tokens":3,"total_tokens":7},"timings":{}}`, "[DONE]"),
		want: counted(loop.ModelAnswer{Text: new("x"), Reasoning: "hm", FinishReason: "stop", Attempts: 1}, 3, 4),
	},
	"llama.cpp: an error inside a 200": {
		body:      frames(`{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":9}}`),
		wantError: "is an error (exceed_context_size_error)", wantFinal: true,
	},
	"the same reasoning under two names": {
		body: frames(chunk(`"delta":{"reasoning_content":"hm","reasoning":"hm","content":"x"}`), chunk(stopped), "[DONE]"),
		want: loop.ModelAnswer{Text: new("x"), Reasoning: "hm", FinishReason: "stop", Attempts: 1},
	},
	"Envoy AI Gateway, OpenRouter: reasoning as an object, or a list": {
		body: frames(chunk(`"delta":{"reasoning_content":{"text":"h"}}`), chunk(`"delta":{"reasoning":[{"type":"reasoning.text","text":"m"}],"content":"x"}`), chunk(stopped), "[DONE]"),
		want: loop.ModelAnswer{Text: new("x"), Reasoning: "hm", FinishReason: "stop", Attempts: 1},
	},
	"LiteLLM: an event named error": {
		body:      frames(chunk(`"delta":{"content":"x"}`)) + "event: error\ndata: {\"type\":\"api_error\",\"message\":\"Internal server error\"}\n\n",
		wantError: "is an error (api_error)",
	},
	"LiteLLM: an error as a bare string": {
		body:      frames(chunk(`"delta":{"content":"x"}`), `{"error":"boom"}`, "[DONE]"),
		wantError: "its answer is an error",
	},
	"Mistral: empty usage with every chunk": {
		body: frames(`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}],"usage":{}}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{}}`, "[DONE]"),
		want: said("x"),
	},
	"Mistral: thinking as a part of the content": {
		body: frames(chunk(`"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]},"finish_reason":null`),
			chunk(`"delta":{"content":[{"type":"text","text":"x"}]},"finish_reason":null`), chunk(stopped), "[DONE]"),
		want: loop.ModelAnswer{Text: new("x"), Reasoning: "hm", FinishReason: "stop", Attempts: 1},
	},
	"OpenRouter: comments": {
		body: ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + frames(chunk(`"delta":{"content":"x"},"native_finish_reason":null`), chunk(stopped), "[DONE]"),
		want: said("x"),
	},
	"OpenRouter: an error beside a finish reason": {
		body:      frames(chunk(`"delta":{"content":"x"}`), `{"error":{"code":502,"message":"provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`),
		wantError: "its answer is an error",
	},
	"a gateway: comments that became data, empty data, pings": {
		body: "data: : keepalive\n\ndata:\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n" + frames(chunk(`"delta":{"content":"x"}`), chunk(stopped), "[DONE]"),
		want: said("x"),
	},
	"lines that end with CR LF, a BOM, no space behind the colon": {
		body: "\xef\xbb\xbf" + strings.ReplaceAll(strings.ReplaceAll(frames(chunk(`"delta":{"content":"x"}`), chunk(stopped), "[DONE]"), "\n", "\r\n"), "data: ", "data:"),
		want: said("x"),
	},
	"no [DONE]":              {body: frames(chunk(`"delta":{"content":"x"}`), chunk(stopped)), want: said("x")},
	"no last blank line":     {body: strings.TrimRight(frames(chunk(`"delta":{"content":"x"}`), chunk(stopped)), "\n"), want: said("x")},
	"plain text as its type": {kind: "text/plain", body: frames(chunk(`"delta":{"content":"x"}`), chunk(stopped)), want: said("x")},
	"other choices": {
		body: frames(`{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"stop"}]}`, chunk(`"delta":{"content":"x"}`), chunk(stopped)),
		want: said("x"),
	},
	"cut inside a frame, properly ended": {body: frames(chunk(`"delta":{"content":"x"}`), chunk(stopped)) + `data: {"cho`, wantError: "cut inside a frame"},
	"cut inside a field's name":          {body: frames(chunk(`"delta":{"content":"x"}`), chunk(stopped)) + `dat`, wantError: "cut inside a frame"},
	"a frame that is not JSON":           {body: frames(chunk(`"delta":{"content":"x"}`), "<html>"), wantError: "not JSON"},
	"comments alone":                     {body: ": a\n\n: b\n\n", wantError: "without a finish reason"},
	"Responses: an empty output at the end": {
		api: contract.ModelAPIResponses,
		body: frames(`{"type":"response.output_text.delta","delta":"x"}`, `{"type":"response.output_text.done","text":"x"}`,
			`{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":3,"output_tokens":4}}}`),
		want: counted(said("x"), 3, 4),
	},
	"Responses: no deltas": {
		api:  contract.ModelAPIResponses,
		body: frames(`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]}}`, "[DONE]"),
		want: said("x"),
	},
	"Responses: failed": {
		api:       contract.ModelAPIResponses,
		body:      frames(`{"type":"response.output_text.delta","delta":"x"}`, `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"m"}}}`),
		wantError: "is an error (server_error)",
	},
	"Responses: an error": {
		api: contract.ModelAPIResponses, body: "event: error\n" + frames(`{"type":"error","code":"rate_limit_exceeded","message":"m"}`), wantError: "is an error (rate_limit_exceeded)",
	},
}

var documents = map[string]wild{
	"null content":              {body: `{"choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"stop"}]}`, want: loop.ModelAnswer{FinishReason: "stop", Attempts: 1}},
	"parts":                     {body: `{"choices":[{"message":{"content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{}},{"type":"text","text":"y"}]},"finish_reason":"stop"}]}`, want: said("xy")},
	"thinking parts":            {body: `{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"x"}]},"finish_reason":"stop"}]}`, want: loop.ModelAnswer{Text: new("x"), Reasoning: "hm", FinishReason: "stop", Attempts: 1}},
	"a refusal":                 {body: `{"choices":[{"message":{"content":null,"refusal":"I cannot"},"finish_reason":"stop"}]}`, want: said("I cannot")},
	"no usage, odd members":     {body: `{"id":1,"created":"now","choices":[{"index":0,"message":{"content":"x","tool_calls":null},"finish_reason":"stop","logprobs":[]}],"usage":null}`, want: said("x")},
	"no finish reason":          {body: `{"choices":[{"message":{"content":"x"}}]}`, want: loop.ModelAnswer{Text: new("x"), Attempts: 1}},
	"usage in floats":           {body: `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3.0,"completion_tokens":4e0}}`, want: counted(said("x"), 3, 4)},
	"usage that is none":        {body: `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":-3,"completion_tokens":1e300}}`, want: said("x")},
	"blanks before it":          {body: "\n \n" + `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`, want: said("x")},
	"plain text as its type":    {kind: "text/plain", body: `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`, want: said("x")},
	"a null error":              {body: `{"error":null,"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`, want: said("x")},
	"a function call":           {body: `{"choices":[{"message":{"content":null,"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"function_call"}]}`, want: loop.ModelAnswer{ToolCalls: calling("", "f", "{}"), FinishReason: "function_call", Attempts: 1}},
	"no choices":                {body: `{"choices":[]}`, wantError: "no choices"},
	"Azure: only a verdict":     {body: `{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[]}`, wantError: "no choices"},
	"no message":                {body: `{"choices":[{"finish_reason":"stop"}]}`, wantError: "no message"},
	"an error in a 200":         {body: `{"error":{"message":"busy","type":"overloaded_error","code":529}}`, wantError: "is an error (overloaded_error)"},
	"an error in a choice":      {body: `{"choices":[{"message":{"content":""},"finish_reason":null,"error":{"code":502,"message":"m"}}]}`, wantError: "is an error"},
	"Databricks: an error code": {body: `{"error_code":"INVALID_PARAMETER_VALUE","message":"m"}`, wantError: "no choices"},
	"another API":               {body: `{"choices":"x"}`, wantError: "form of the API"},
	"two documents":             {body: `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}{}`, wantError: "form of the API"},
	"half a document":           {body: `{"choices":[{"message":{"content":"x`, wantError: "form of the API"},
	"HTML":                      {kind: "text/html", body: "<html>welcome</html>", wantError: "neither JSON nor a stream"},
	"HTML as JSON":              {body: "<html>welcome</html>", wantError: "neither JSON nor a stream"},
	"a JSON string":             {body: `"x"`, wantError: "neither JSON nor a stream"},
	"nothing":                   {body: "", wantError: "is empty"},
	"blanks":                    {body: " \n ", wantError: "is empty"},
	"Responses: all kinds of items": {
		api: contract.ModelAPIResponses,
		body: `{"status":"completed","error":null,"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"content":null},{"type":"web_search_call"},
			{"type":"message","content":[{"type":"output_text","text":"x"},{"type":"output_text","text":"y"}]}],"usage":{"input_tokens":3,"output_tokens":4,"output_tokens_details":{"reasoning_tokens":1}}}`,
		want: counted(loop.ModelAnswer{Text: new("xy"), Reasoning: "hm", FinishReason: "stop", Attempts: 1}, 3, 4),
	},
	"Responses: reasoning text": {
		api:  contract.ModelAPIResponses,
		body: `{"status":"completed","output":[{"type":"reasoning","content":[{"type":"reasoning_text","text":"hm"}]},{"type":"message","content":[{"type":"output_text","text":"x"}]}]}`,
		want: loop.ModelAnswer{Text: new("x"), Reasoning: "hm", FinishReason: "stop", Attempts: 1},
	},
	"Responses: still at it": {api: contract.ModelAPIResponses, body: `{"status":"in_progress","output":[]}`, wantError: "not completed"},
	"Responses: failed":      {api: contract.ModelAPIResponses, body: `{"status":"failed","error":{"code":"invalid_prompt","message":"m"}}`, wantError: "is an error (invalid_prompt)"},
}
