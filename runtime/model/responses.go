package model

import "encoding/json"

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
	// A call has two ids: ID is the item's, CallID the one that its result names.
	ID        json.RawMessage `json:"id"`
	CallID    json.RawMessage `json:"call_id"`
	Name      json.RawMessage `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`
}

// isCall reports whether an item is a native tool call.
func (i *responseItem) isCall() bool {
	if i == nil {
		return false
	}
	t := str(i.Type)
	return t == "function_call" || t == "custom_tool_call"
}

func (i *responseItem) piece(key string) piece {
	p := (&chatFunction{Name: i.Name, Arguments: i.Arguments, Input: i.Input}).piece()
	p.key, p.id = key, str(i.CallID)
	if p.id == "" {
		p.id = str(i.ID)
	}
	return p
}

// responseEvent holds the members of an event that count.
type responseEvent struct {
	Type      json.RawMessage `json:"type"`
	Delta     json.RawMessage `json:"delta"`
	Response  json.RawMessage `json:"response"`
	Error     json.RawMessage `json:"error"`
	Item      *responseItem   `json:"item"`
	Index     json.RawMessage `json:"output_index"`
	ItemID    json.RawMessage `json:"item_id"`
	Arguments json.RawMessage `json:"arguments"`
}

// key names the item that an event is about.
func (e *responseEvent) key() string {
	if given(e.Index) {
		return "index " + string(e.Index)
	}
	if e.Item != nil && given(e.Item.ID) {
		return "item " + str(e.Item.ID)
	}
	if e.Item != nil {
		return "call " + str(e.Item.CallID)
	}
	return "item " + str(e.ItemID)
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
	text, reasoning := a.text.Len() == 0, a.reasoning.Len() == 0
	var all calls
	for _, it := range items {
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
			if err := all.add(it.piece("")); err != nil {
				return err
			}
		}
	}
	if len(all.list) >= len(a.calls.list) {
		a.calls = all
	}
	return nil
}

// status reads how the response ended, in the words of chat completions, so that
// the loop has to know one vocabulary.
func (a *answer) status(doc response) error {
	switch str(doc.Status) {
	case "completed", "":
		a.finish = "stop"
		if len(a.calls.list) > 0 {
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
	case "response.output_item.added", "response.output_item.done":
		if e.Item.isCall() {
			return a.calls.known(e.Item.piece(e.key()))
		}
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		return a.calls.streamed(piece{key: a.begun(e.key()), arguments: argumentsOf(e.Delta)})
	case "response.function_call_arguments.done":
		return a.calls.known(piece{key: a.begun(e.key()), arguments: argumentsOf(e.Arguments)})
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		if !given(e.Response) {
			return broken("its response was not completed")
		}
		return a.responseDocument(e.Response)
	}
	return nil
}

// begun is the key of the call that arguments are for: that of the newest one, if
// they come under a key that no call began with.
func (a *answer) begun(key string) string {
	if n := len(a.calls.list); n > 0 && a.calls.of(piece{key: key}) == nil {
		return a.calls.list[n-1].key
	}
	return key
}
