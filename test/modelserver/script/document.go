package script

import "fmt"

// created is the time of every answer: a script plays the same at any time.
const created = 1_700_000_000

type object = map[string]any

// chatDocument is a turn as one chat completion.
func chatDocument(t Turn, model string) object {
	m := object{"role": "assistant", "content": t.Text}
	if t.Reasoning != "" {
		m["reasoning_content"] = t.Reasoning
	}
	if len(t.ToolCalls) > 0 {
		m["tool_calls"] = chatCalls(t)
		if t.Text == "" {
			m["content"] = nil
		}
	}
	out := object{
		"id": "chatcmpl-scripted", "object": "chat.completion", "created": created, "model": model,
		"choices": []object{{"index": 0, "message": m, "finish_reason": t.finish()}},
	}
	if t.Usage != nil {
		out["usage"] = chatUsage(t)
	}
	return out
}

func chatCalls(t Turn) []object {
	var out []object
	for i, c := range t.ToolCalls {
		out = append(out, object{
			"index": i, "id": c.ID, "type": "function",
			"function": object{"name": c.Name, "arguments": c.Arguments},
		})
	}
	return out
}

func chatUsage(t Turn) object {
	return object{
		"prompt_tokens": t.Usage.InputTokens, "completion_tokens": t.Usage.OutputTokens,
		"total_tokens": t.Usage.InputTokens + t.Usage.OutputTokens,
	}
}

// responseDocument is a turn as one response.
func responseDocument(t Turn, model string) object {
	items := []object{}
	if t.Reasoning != "" {
		items = append(items, object{"type": "reasoning", "id": "rs_0", "summary": []object{{"type": "summary_text", "text": t.Reasoning}}})
	}
	if t.Text != "" || len(t.ToolCalls) == 0 {
		items = append(items, object{
			"type": "message", "id": "msg_0", "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": t.Text, "annotations": []any{}}},
		})
	}
	for i, c := range t.ToolCalls {
		items = append(items, object{
			"type": "function_call", "id": fmt.Sprintf("fc_%d", i), "call_id": c.ID,
			"name": c.Name, "arguments": c.Arguments, "status": "completed",
		})
	}
	out := object{
		"id": "resp_scripted", "object": "response", "created_at": created, "model": model,
		"status": "completed", "error": nil, "incomplete_details": nil, "output": items,
	}
	switch t.finish() {
	case "length":
		out["status"], out["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	case "content_filter":
		out["status"], out["incomplete_details"] = "incomplete", object{"reason": "content_filter"}
	}
	if t.Usage != nil {
		out["usage"] = object{
			"input_tokens": t.Usage.InputTokens, "output_tokens": t.Usage.OutputTokens,
			"total_tokens": t.Usage.InputTokens + t.Usage.OutputTokens,
		}
	}
	return out
}
