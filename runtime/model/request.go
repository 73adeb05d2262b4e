package model

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// form is what requests are made of, as far as the endpoint can.
type form struct {
	// stream asks for a stream, usage for a count of tokens in it.
	stream, usage bool
	// modern bounds the answer by max_completion_tokens instead of max_tokens.
	modern bool
}

// fullForm is what the first request tries.
var fullForm = form{stream: true, usage: true}

// streamWord is the parameter, and not the end of "upstream".
var streamWord = regexp.MustCompile(`(?i)\bstream(ing)?\b`)

// without returns the form without what the endpoint says that it cannot do.
func (f form) without(x *failure) (form, bool) {
	if x.status != http.StatusBadRequest && x.status != http.StatusUnprocessableEntity {
		return f, false
	}
	switch says := x.complaint; {
	case f.usage && (strings.Contains(says, "stream_options") || strings.Contains(says, "include_usage")):
		f.usage = false
	case !f.modern && strings.Contains(says, "max_completion_tokens"):
		f.modern = true
	case f.stream && streamWord.MatchString(says):
		f.stream, f.usage = false, false
	default:
		return f, false
	}
	return f, true
}

// send sends one request and returns the answer as it is, or with an error nil.
func (c *Client) send(ctx context.Context, token string, messages []loop.Message) (*http.Response, error) {
	var res *http.Response
	opts := []option.RequestOption{option.WithResponseBodyInto(&res)}
	if token != "" {
		opts = append(opts, option.WithAPIKey(token))
	}
	if c.form.stream {
		opts = append(opts, option.WithJSONSet("stream", true))
	}
	var err error
	if c.pin.API == contract.ModelAPIChat {
		_, err = c.chat.New(ctx, c.chatParams(messages), opts...)
	} else {
		_, err = c.response.New(ctx, c.responseParams(messages), opts...)
	}
	if res != nil {
		return res, nil // the SDK's reading of an error loses what is in no known form
	}
	return nil, err
}

func (c *Client) chatParams(messages []loop.Message) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{Model: c.pin.Model, N: param.NewOpt(int64(1))}
	for _, m := range messages {
		switch m.Role {
		case loop.RoleSystem:
			p.Messages = append(p.Messages, openai.SystemMessage(m.Text))
		case loop.RoleAssistant:
			p.Messages = append(p.Messages, openai.AssistantMessage(m.Text))
		default:
			p.Messages = append(p.Messages, openai.UserMessage(m.Text))
		}
	}
	if c.form.stream && c.form.usage {
		p.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	o := c.options
	p.Stop.OfStringArray = o.Stop
	extra := c.extra()
	if o.ReasoningEffort != "" {
		p.ReasoningEffort = openai.ReasoningEffort(o.ReasoningEffort)
	}
	if o.Seed != nil {
		p.Seed = param.NewOpt(*o.Seed)
	}
	if o.Store != nil {
		p.Store = param.NewOpt(*o.Store)
	}
	if o.User != "" {
		p.User = param.NewOpt(o.User)
	}
	// Ollama and others ignore max_completion_tokens in silence, while those that
	// no longer take max_tokens say so (RATIONALE.md).
	switch {
	case o.MaxOutputTokens > 0 && c.form.modern:
		p.MaxCompletionTokens = param.NewOpt(o.MaxOutputTokens)
	case o.MaxOutputTokens > 0:
		extra["max_tokens"] = json.RawMessage(strconv.FormatInt(o.MaxOutputTokens, 10))
	}
	p.SetExtraFields(extra)
	return p
}

func (c *Client) responseParams(messages []loop.Message) responses.ResponseNewParams {
	p := responses.ResponseNewParams{Model: c.pin.Model}
	input := responses.ResponseInputParam{}
	for _, m := range messages {
		role := responses.EasyInputMessageRole(m.Role)
		input = append(input, responses.ResponseInputItemParamOfMessage(m.Text, role))
	}
	p.Input.OfInputItemList = input
	o := c.options
	if o.ReasoningEffort != "" {
		p.Reasoning.Effort = openai.ReasoningEffort(o.ReasoningEffort)
	}
	if o.Store != nil {
		p.Store = param.NewOpt(*o.Store)
	}
	if o.User != "" {
		p.User = param.NewOpt(o.User)
	}
	if o.MaxOutputTokens > 0 {
		p.MaxOutputTokens = param.NewOpt(o.MaxOutputTokens)
	}
	p.SetExtraFields(c.extra())
	return p
}

// extra are the members that keep their spelling: those of extraBody, which New
// has checked, and numbers, which a float64 would spell anew.
func (c *Client) extra() map[string]any {
	out := map[string]any{}
	var body map[string]json.RawMessage
	if len(c.options.ExtraBody) > 0 {
		_ = json.Unmarshal(c.options.ExtraBody, &body)
	}
	for name, value := range body {
		out[name] = value
	}
	if c.options.Temperature != "" {
		out["temperature"] = json.RawMessage(c.options.Temperature)
	}
	if c.options.TopP != "" {
		out["top_p"] = json.RawMessage(c.options.TopP)
	}
	return out
}
