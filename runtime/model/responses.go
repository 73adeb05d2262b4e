package model

import (
	"encoding/json"
	"strconv"
)

// response is a response of the Responses API.
type response struct {
	Status     json.RawMessage `json:"status"`
	Error      json.RawMessage `json:"error"`
	Incomplete struct {
		Reason json.RawMessage `json:"reason"`
	} `json:"incomplete_details"`
	Output json.RawMessage `json:"output"`
	Usage  json.RawMessage `json:"usage"`
}

type responseItem struct {
	Type    json.RawMessage `json:"type"`
	Content json.RawMessage `json:"content"`
	Summary json.RawMessage `json:"summary"`
}

// responseEvent holds the members of an event that count.
type responseEvent struct {
	Type     json.RawMessage `json:"type"`
	Delta    json.RawMessage `json:"delta"`
	Response json.RawMessage `json:"response"`
	Error    json.RawMessage `json:"error"`
	Item     *responseItem   `json:"item"`
	Index    json.RawMessage `json:"output_index"`
}

// responseDocument takes a whole response.
func (a *answer) responseDocument(raw []byte) error {
	var doc response
	if err := json.Unmarshal(raw, &doc); err != nil {
		return broken("its answer is not JSON in the form of the API")
	}
	if given(doc.Error) {
		return a.failed(doc.Error)
	}
	a.count(doc.Usage)
	var items []responseItem
	if given(doc.Output) {
		if err := json.Unmarshal(doc.Output, &items); err != nil {
			return broken("its answer is not JSON in the form of the API")
		}
	}
	if err := a.items(items); err != nil {
		return err
	}
	return a.status(doc)
}

// items takes the output of a response: where a stream brought it before, it only
// says it again, and some endpoints leave it empty then.
func (a *answer) items(items []responseItem) error {
	text, reasoning, calls := a.text.Len() == 0, a.reasoning.Len() == 0, len(a.calls) == 0
	for i, it := range items {
		said, _ := content(it.Content)
		switch str(it.Type) {
		case "message":
			if !text {
				continue
			}
			if err := a.addText(said); err != nil {
				return err
			}
		case "reasoning":
			if reasoning {
				a.addReasoning(thought(it.Summary) + thought(it.Content))
			}
		case "function_call", "custom_tool_call":
			if calls {
				a.addCall("item " + strconv.Itoa(i))
			}
		}
	}
	return nil
}

// status reads how the response ended, in the words of chat completions, so that
// the loop has to know one vocabulary.
func (a *answer) status(doc response) error {
	switch str(doc.Status) {
	case "completed", "":
		a.finish = "stop"
		if len(a.calls) > 0 {
			a.finish = "tool_calls"
		}
	case "incomplete":
		switch reason := str(doc.Incomplete.Reason); reason {
		case "content_filter":
			a.finish = reason
		default:
			a.finish = "length"
		}
	default: // failed, cancelled, queued, in_progress
		return broken("its response was not completed")
	}
	return nil
}

// responseEvent takes one event of a response's stream.
func (a *answer) responseEvent(name string, raw []byte) error {
	var e responseEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return broken("its answer is not JSON in the form of the API")
	}
	if t := str(e.Type); t != "" {
		name = t
	}
	if given(e.Error) {
		return a.failed(e.Error)
	}
	switch name {
	case "error":
		return a.failed(raw)
	case "response.output_text.delta", "response.refusal.delta":
		return a.addText(str(e.Delta))
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		a.addReasoning(str(e.Delta))
	case "response.output_item.added":
		if e.Item != nil && (str(e.Item.Type) == "function_call" || str(e.Item.Type) == "custom_tool_call") {
			a.addCall("index " + string(e.Index))
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		if !given(e.Response) {
			return broken("its response was not completed")
		}
		return a.responseDocument(e.Response)
	}
	return nil
}
