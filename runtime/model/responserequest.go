package model

import (
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// responseTool offers a tool to the Responses API, which takes a tool for strict
// unless it is told otherwise.
type responseTool struct {
	Type string `json:"type"`
	function
	Strict bool `json:"strict"`
}

func (c *Client) responseParams(r loop.ModelRequest) (responses.ResponseNewParams, error) {
	p := responses.ResponseNewParams{Model: c.pin.Model}
	p.Input.OfInputItemList = responseItems(r.Messages)
	o := c.options
	if o.ReasoningEffort != "" {
		p.Reasoning.Effort = shared.ReasoningEffort(o.ReasoningEffort)
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
	extra := c.extra()
	if len(r.Tools) > 0 {
		var tools []responseTool
		for _, t := range r.Tools {
			tools = append(tools, responseTool{Type: "function", function: functionOf(t)})
		}
		// The SDK would read the schemas into maps, and lose the order of their members.
		raw, err := marshal(tools)
		if err != nil {
			return p, err
		}
		extra["tools"] = raw
	}
	p.SetExtraFields(extra)
	return p, nil
}

// responseItems are the messages, with each call and each result as an item.
func responseItems(messages []loop.Message) responses.ResponseInputParam {
	input := responses.ResponseInputParam{}
	for _, m := range messages {
		if m.Role == loop.RoleTool {
			item := responses.ResponseInputItemParamOfFunctionCallOutput(m.Text)
			item.OfFunctionCallOutput.CallID = param.NewOpt(m.ToolCallID)
			input = append(input, item)
			continue
		}
		if m.Text != "" || len(m.ToolCalls) == 0 {
			input = append(input, responses.ResponseInputItemParamOfMessage(m.Text, responses.EasyInputMessageRole(m.Role)))
		}
		for _, call := range m.ToolCalls {
			input = append(input, responses.ResponseInputItemParamOfFunctionCall(readable(call.Arguments), call.ID, call.Name))
		}
	}
	return input
}
