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
}

// exchange is an answer of the model, "" when there was none, and what it was told.
type exchange struct{ answer, feedback string }

func (e exchange) bytes() int { return len(e.answer) + len(e.feedback) }

func (e exchange) messages() []Message {
	told := Message{Role: RoleUser, Text: e.feedback}
	if e.answer == "" {
		return []Message{told}
	}
	return []Message{{Role: RoleAssistant, Text: e.answer}, told}
}

// add puts an exchange behind the others, and drops the oldest ones that no longer
// fit. The newest one always stays: without it the model would know nothing of
// what it did.
func (h *history) add(answer *string, feedback string) {
	if feedback == "" {
		return // the run is over
	}
	e := exchange{feedback: feedback}
	if answer != nil && strings.TrimSpace(*answer) != "" {
		e.answer = *answer
	}
	h.exchanges = append(h.exchanges, e)
	h.bytes += e.bytes()
	for len(h.exchanges) > 1 && (h.bytes > maxHistoryBytes || h.maxItems > 0 && int64(h.items()) > h.maxItems) {
		h.bytes -= h.exchanges[0].bytes()
		h.dropped += len(h.exchanges[0].messages())
		h.exchanges = h.exchanges[1:]
	}
}

func (h *history) items() (n int) {
	for _, e := range h.exchanges {
		n += len(e.messages())
	}
	return n
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
		out = append(out, e.messages()...)
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
		n += len(m.Text)
	}
	t.guessIn += estimate(n)
	if a.Text != nil {
		t.guessOut += estimate(len(*a.Text) + len(a.Reasoning))
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
