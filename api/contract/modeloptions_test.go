package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestCheckExtraBody(t *testing.T) {
	many := make([]string, MaxExtraBodyMembers+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"m%d":1`, i)
	}
	for name, tc := range map[string]struct {
		body string
		want string // part of the error; "" is none
	}{
		"none":                {},
		"what servers add":    {body: `{"top_k":20,"chat_template_kwargs":{"model":"x"},"response_format":{"type":"json_object"},"max_tokens":5}`},
		"a list":              {body: `[]`, want: "not a JSON object"},
		"null":                {body: `null`, want: "not a JSON object"},
		"two values":          {body: `{} {}`, want: "not a JSON object"},
		"messages":            {body: `{"messages":[]}`, want: `may not set "messages"`},
		"input":               {body: `{"input":"x"}`, want: `may not set "input"`},
		"tools":               {body: `{"tools":[]}`, want: `may not set "tools"`},
		"model":               {body: `{"model":"x"}`, want: `may not set "model"`},
		"stream":              {body: `{"stream":false}`, want: `may not set "stream"`},
		"n":                   {body: `{"n":2}`, want: `may not set "n"`},
		"another case":        {body: `{"Messages":[]}`, want: `may not set "Messages"`},
		"a folded letter":     {body: `{"me\u017f\u017fages":[]}`, want: "may not set"},
		"an escaped name":     {body: `{"\u006dodel":"x"}`, want: `may not set "model"`},
		"another endpoint":    {body: `{"api_base":"http://x"}`, want: `may not set "api_base"`},
		"other models":        {body: `{"models":["x"]}`, want: `may not set "models"`},
		"somebody's state":    {body: `{"previous_response_id":"x"}`, want: "may not set"},
		"a field of its own":  {body: `{"temperature":1}`, want: "use the field temperature"},
		"a name twice":        {body: `{"top_k":1,"top_k":2}`, want: "twice"},
		"a name twice folded": {body: `{"top_k":1,"TOP_K":2}`, want: "twice"},
		"too many members":    {body: "{" + strings.Join(many, ",") + "}", want: "more than 32"},
		"too many bytes":      {body: `{"x":"` + strings.Repeat("x", MaxExtraBodyBytes) + `"}`, want: "more than 16384"},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, CheckExtraBody(json.RawMessage(tc.body)), tc.want) })
	}
}

func TestCheckModelOptions(t *testing.T) {
	seed := int64(1)
	for name, tc := range map[string]struct {
		api  ModelAPI
		o    ModelOptions
		want string
	}{
		"all of chat":         {api: ModelAPIChat, o: ModelOptions{Temperature: "0.10", TopP: "1", MaxOutputTokens: 5, Seed: &seed, Stop: []string{"x"}}},
		"no number":           {api: ModelAPIChat, o: ModelOptions{Temperature: `{}`}, want: "temperature is not a JSON number"},
		"a number and more":   {api: ModelAPIChat, o: ModelOptions{TopP: `1,"n":2`}, want: "topP is not a JSON number"},
		"negative":            {api: ModelAPIChat, o: ModelOptions{MaxOutputTokens: -1}, want: "negative"},
		"max_tokens alone":    {api: ModelAPIChat, o: ModelOptions{ExtraBody: json.RawMessage(`{"max_tokens":1}`)}},
		"max_tokens twice":    {api: ModelAPIChat, o: ModelOptions{MaxOutputTokens: 1, ExtraBody: json.RawMessage(`{"Max_Tokens":1}`)}, want: "beside maxOutputTokens"},
		"seed":                {api: ModelAPIResponses, o: ModelOptions{Seed: &seed}, want: "no seed"},
		"stop":                {api: ModelAPIResponses, o: ModelOptions{Stop: []string{"x"}}, want: "no stop"},
		"reasoning twice":     {api: ModelAPIResponses, o: ModelOptions{ReasoningEffort: "low", ExtraBody: json.RawMessage(`{"reasoning":{}}`)}, want: "beside reasoningEffort"},
		"a refused extraBody": {api: ModelAPIResponses, o: ModelOptions{ExtraBody: json.RawMessage(`{"model":1}`)}, want: "may not set"},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, CheckModelOptions(tc.api, tc.o), tc.want) })
	}
}

// wantError holds an error to a part of its text; "" wants none.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("error %v, want none", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, want one with %q", err, want)
	}
}
