package broker

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// shown is the newest complete media of a run. It comes and goes as a whole.
type shown struct {
	media *contract.Media
	seq   int64
}

// show keeps what a tool showed beside its answer, if that is complete.
// Incomplete media is nothing.
func (fl *flight) show(m *contract.Media) bool {
	if m == nil || m.Complete() != nil {
		return false
	}
	fl.keep(m)
	return true
}

// unshow is show for a call that failed, or whose answer is not accepted: what
// may have changed something, and shows nothing of it, makes an earlier picture
// a wrong one.
func (fl *flight) unshow(m *contract.Media, p Proof) {
	if !fl.show(m) && fl.t.effect() != contract.EffectReadOnly && p != NeverSent {
		fl.keep(nil)
	}
}

func (fl *flight) keep(m *contract.Media) {
	b := fl.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.book.closed {
		return
	}
	b.shown = shown{media: m}
	if m != nil {
		b.shown.seq = b.book.calls[fl.place].Seq
	}
}

// leave keeps the evidence of a call that ended the run with f: for the report,
// never for the program. A call that was proven to do nothing leaves none unless
// the fault is its own.
func (fl *flight) leave(f *contract.Fault) {
	b := fl.b
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.book.calls[fl.place]
	own := f.Reason.Class() == contract.ClassTerminal && c.State != contract.CallAbandoned
	if b.book.closed || !own && c.State != contract.CallUncertain && c.State != contract.CallCompleted {
		return
	}
	left := contract.Left{
		Seq: c.Seq, Tool: c.Tool, Reason: f.Reason, Result: fl.result,
		ResultBytes: c.ResultBytes, ResultDigest: c.ResultDigest, Receipt: c.Receipt,
	}
	b.evidence = left.Evidence(min(b.outputBytes, contract.MaxEvidenceBytes))
}

func (b *Broker) left() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.evidence
}

// minPayload is the length from which a payload is looked for in a message.
const minPayload = 16

// withoutPayload is a failure's message for a report that has its result as
// evidence: nothing stands in a report twice, neither the result nor a text in it.
func withoutPayload(message string, result json.RawMessage) string {
	x, err := contract.DecodeJSON(result)
	if err != nil {
		return message
	}
	if inMessage(message, string(result)) || quotes(message, x) {
		return "its answer is in the evidence"
	}
	return message
}

// quotes reports whether the message holds one of the texts in x.
func quotes(message string, x any) bool {
	switch x := x.(type) {
	case string:
		return inMessage(message, x)
	case []any:
		return slices.ContainsFunc(x, func(v any) bool { return quotes(message, v) })
	case map[string]any:
		for _, v := range x {
			if quotes(message, v) {
				return true
			}
		}
	}
	return false
}

// inMessage looks for a payload as a backend may have put it into its message: cut,
// and in one line.
func inMessage(message, payload string) bool {
	payload = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, contract.Truncate(strings.TrimSpace(payload), contract.MaxMessageBytes/4)))
	return len(payload) >= minPayload && strings.Contains(message, payload)
}
