package script

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
)

// chunkRunes is the length of the parts that a text is streamed in.
const chunkRunes = 12

// stream writes a turn as server-sent events.
type stream struct {
	w     http.ResponseWriter
	r     *http.Request
	turn  Turn
	asked asked
	gone  bool
}

func (s *stream) write(responses bool) {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.w.WriteHeader(http.StatusOK)
	if responses {
		s.responses()
		return
	}
	s.chat()
}

// frame writes one event, after the turn's drip.
func (s *stream) frame(event string, v any) {
	if s.gone = s.gone || !wait(s.r, s.turn.DripMs); s.gone {
		return
	}
	raw, _ := json.Marshal(v) // of maps and strings
	text := "data: " + string(raw) + "\n\n"
	if event != "" {
		text = "event: " + event + "\n" + text
	}
	s.flush(text)
}

func (s *stream) flush(text string) {
	_, err := io.WriteString(s.w, text)
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	s.gone = s.gone || err != nil
}

// half cuts the answer inside a frame, if the turn says so.
func (s *stream) half() {
	if s.turn.Cut == CutFrame {
		s.flush(`data: {"id":"cut","cho`)
		panic(http.ErrAbortHandler)
	}
}

func (s *stream) chunk(choices []object, usage object) object {
	out := object{"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": created, "model": s.asked.Model, "choices": choices}
	if usage != nil {
		out["usage"] = usage
	}
	return out
}

func (s *stream) delta(d object, finish any) {
	s.frame("", s.chunk([]object{{"index": 0, "delta": d, "finish_reason": finish}}, nil))
}

func (s *stream) chat() {
	s.delta(object{"role": "assistant", "content": ""}, nil)
	for _, p := range parts(s.turn.Reasoning) {
		s.delta(object{"reasoning_content": p}, nil)
	}
	text := parts(s.turn.Text)
	for i := range len(text) + 1 {
		if i == len(text)/2 && s.turn.Error != "" {
			s.frame("", object{"error": errorObject(s.turn.Error)})
			return
		}
		if i < len(text) {
			s.delta(object{"content": text[i]}, nil)
		}
	}
	s.chatCalls()
	s.half()
	if s.turn.Cut == CutEnd {
		return
	}
	s.delta(object{}, s.turn.finish())
	if s.turn.Usage != nil && s.asked.StreamOptions != nil && s.asked.StreamOptions.IncludeUsage {
		s.frame("", s.chunk([]object{}, chatUsage(s.turn)))
	}
	if !s.gone {
		s.flush("data: [DONE]\n\n")
	}
}

// chatCalls begins each call, and then sends its arguments in parts.
func (s *stream) chatCalls() {
	for i, c := range s.turn.ToolCalls {
		s.delta(object{"tool_calls": []object{{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""}}}}, nil)
		for _, p := range parts(c.Arguments) {
			s.delta(object{"tool_calls": []object{{"index": i, "function": object{"arguments": p}}}}, nil)
		}
	}
}

// responseCalls does the same with the items of a response.
func (s *stream) responseCalls(items []object) {
	for i, item := range items {
		if item["type"] != "function_call" {
			continue
		}
		begun := maps.Clone(item)
		begun["arguments"], begun["status"] = "", "in_progress"
		s.frame("response.output_item.added", object{"type": "response.output_item.added", "output_index": i, "item": begun})
		text, _ := item["arguments"].(string)
		for _, p := range parts(text) {
			s.frame("response.function_call_arguments.delta", object{"type": "response.function_call_arguments.delta", "item_id": item["id"], "output_index": i, "delta": p})
		}
		s.frame("response.function_call_arguments.done", object{"type": "response.function_call_arguments.done", "item_id": item["id"], "output_index": i, "arguments": text})
		s.frame("response.output_item.done", object{"type": "response.output_item.done", "output_index": i, "item": item})
	}
}

func (s *stream) responses() {
	whole := responseDocument(s.turn, s.asked.Model)
	begun := object{"id": whole["id"], "object": "response", "status": "in_progress", "output": []any{}}
	s.frame("response.created", object{"type": "response.created", "sequence_number": 0, "response": begun})
	for _, p := range parts(s.turn.Reasoning) {
		s.frame("response.reasoning_summary_text.delta", object{"type": "response.reasoning_summary_text.delta", "item_id": "rs_0", "output_index": 0, "summary_index": 0, "delta": p})
	}
	text := parts(s.turn.Text)
	for i := range len(text) + 1 {
		if i == len(text)/2 && s.turn.Error != "" {
			s.frame("error", object{"type": "error", "message": s.turn.Error, "code": "scripted_error", "param": nil})
			return
		}
		if i < len(text) {
			s.frame("response.output_text.delta", object{"type": "response.output_text.delta", "item_id": "msg_0", "output_index": 0, "content_index": 0, "delta": text[i]})
		}
	}
	if items, ok := whole["output"].([]object); ok {
		s.responseCalls(items)
	}
	s.half()
	if s.turn.Cut == CutEnd {
		return
	}
	last := "response.completed"
	if whole["status"] == "incomplete" {
		last = "response.incomplete"
	}
	s.frame(last, object{"type": last, "response": whole})
}

// parts cuts a text between runes.
func parts(text string) []string {
	var out []string
	for r := []rune(text); len(r) > 0; {
		n := min(chunkRunes, len(r))
		out, r = append(out, string(r[:n])), r[n:]
	}
	return out
}
