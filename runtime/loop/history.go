package loop

import (
	"fmt"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// maxHistoryBytes bounds what the model is shown of earlier steps, in bytes,
// unless the newest exchange alone has more.
const maxHistoryBytes = 256 << 10

// history is what the model is shown: always the system text and the user's
// prompt, and of the exchanges behind them the newest ones.
type history struct {
	system, prompt string
	// maxItems bounds the messages of the exchanges; 0 means no bound of its own.
	maxItems  int64
	exchanges []exchange
	bytes     int
	// dropped counts the messages that are no longer shown.
	dropped int
	// asked counts the requests that unseen was called for.
	asked int
}

// exchange is an answer of the model, unless there was none, and what it was told:
// one message, or the result of each of its calls. It stays or goes as a whole.
type exchange []Message

func (e exchange) bytes() (n int) {
	for _, m := range e {
		n += m.bytes()
	}
	return n
}

func (m Message) bytes() int {
	n := len(m.Text)
	for _, c := range m.ToolCalls {
		n += len(c.Name) + len(c.Arguments)
	}
	return n
}

// add puts an answer and what the model is told of it behind the others.
func (h *history) add(answer *string, feedback string) {
	if feedback == "" {
		return // the run is over
	}
	var e exchange
	if answer != nil && strings.TrimSpace(*answer) != "" {
		e = exchange{{Role: RoleAssistant, Text: *answer}}
	}
	h.push(append(e, Message{Role: RoleUser, Text: feedback}))
}

// addCalls puts an answer with its native calls behind the others, and the result
// of each.
func (h *history) addCalls(answer *string, calls []contract.ModelToolCall, results []Message) {
	said := Message{Role: RoleAssistant, ToolCalls: calls}
	if answer != nil {
		said.Text = *answer
	}
	h.push(append(exchange{said}, results...))
}

// push puts an exchange behind the others, and drops the oldest ones that no longer
// fit. The newest one always stays: without it the model would know nothing of
// what it did.
func (h *history) push(e exchange) {
	h.exchanges = append(h.exchanges, e)
	h.bytes += e.bytes()
	for len(h.exchanges) > 1 && (h.bytes > maxHistoryBytes || h.maxItems > 0 && int64(h.items()) > h.maxItems) {
		h.bytes -= h.exchanges[0].bytes()
		h.dropped += len(h.exchanges[0])
		h.exchanges = h.exchanges[1:]
	}
}

func (h *history) items() (n int) {
	for _, e := range h.exchanges {
		n += len(e)
	}
	return n
}

// unseen is what the next request shows for the first time, without the model's
// own answers: called once for each request.
func (h *history) unseen() *contract.EventContent {
	var fresh []Message
	if h.asked == 0 {
		fresh = []Message{{Role: RoleSystem, Text: h.system}, {Role: RoleUser, Text: h.prompt}}
	} else if n := len(h.exchanges); n > 0 {
		fresh = h.exchanges[n-1]
	}
	h.asked++
	c := &contract.EventContent{Dropped: h.dropped}
	for _, m := range fresh {
		if m.Role != RoleAssistant {
			c.Messages = append(c.Messages, contract.EventMessage{Role: string(m.Role), Text: m.Text, ToolCallID: m.ToolCallID})
		}
	}
	return c
}

// messages is the whole of the next request. What was dropped is said behind the
// prompt.
func (h *history) messages() []Message {
	prompt := h.prompt
	if h.dropped > 0 {
		prompt += fmt.Sprintf("\n\n(%d earlier messages of this conversation are left out.)", h.dropped)
	}
	out := []Message{{Role: RoleSystem, Text: h.system}, {Role: RoleUser, Text: prompt}}
	for _, e := range h.exchanges {
		out = append(out, e...)
	}
	return out
}

// bytesPerToken is what an endpoint that does not count is believed to need.
const bytesPerToken = 4

// tokens is what the model used. Only what the endpoint counted is compared with a
// bound: an estimate is shown, and ends no run.
type tokens struct {
	in, out int64
	counted bool
	// guessIn and guessOut are estimates over all requests.
	guessIn, guessOut int64
}

func (t *tokens) add(r ModelRequest, a ModelAnswer) {
	n := 0
	for _, m := range r.Messages {
		n += m.bytes()
	}
	for _, x := range r.Tools {
		n += len(x.Name) + len(x.Description) + len(x.Parameters)
	}
	t.guessIn += estimate(n)
	said := Message{ToolCalls: a.ToolCalls}
	if a.Text != nil {
		said.Text = *a.Text
	}
	if n := said.bytes(); n > 0 || a.Text != nil {
		t.guessOut += estimate(n + len(a.Reasoning))
	}
	if a.Counted {
		t.counted = true
		t.in, t.out = sum(t.in, a.InputTokens), sum(t.out, a.OutputTokens)
	}
}

func estimate(bytes int) int64 { return int64((bytes + bytesPerToken - 1) / bytesPerToken) }

// maxTokenCount is more than any run uses, and far from where numbers end.
const maxTokenCount = 1 << 53

// sum adds what an endpoint says, which nobody has checked.
func sum(a, b int64) int64 { return min(a+min(max(0, b), maxTokenCount), maxTokenCount) }

func (t *tokens) total() int64 { return t.in + t.out }

// over reports whether more than most was counted; 0 is no bound.
func (t *tokens) over(most int64) bool { return most > 0 && t.total() > most }

// into shows what was counted, or the estimate when the endpoint counted nothing.
func (t *tokens) into(u *contract.Usage) {
	u.InputTokens, u.OutputTokens = t.in, t.out
	if !t.counted && t.guessIn > 0 {
		u.InputTokens, u.OutputTokens, u.TokensEstimated = t.guessIn, t.guessOut, true
	}
}
