package protocol

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// MaxFeedbackBytes bounds every text that is fed back to a model.
const MaxFeedbackBytes = 64 << 10

// The beginnings of the texts that are fed back.
const (
	resultHead   = "CODE_RESULT: "
	errorHead    = "CODE_ERROR: "
	protocolHead = "PROTOCOL_ERROR: "
	finalizeHead = "FINALIZE_MODE: "
)

// CodeResult tells the model the result of a program, which is JSON text, and in
// one more line what is to come next. Of a result that is too long it has the
// beginning as a string, a mark and the size.
func CodeResult(value json.RawMessage, f contract.Finalize) string {
	next := "\nThe run goes on: return something that is neither null nor blank, or end it with " + finalForm + "."
	if f == contract.FinalizeModel {
		next = "\nThe program succeeded: now end the run with " + finalForm + "."
	}
	text := cmp.Or(oneLine(value), "null")
	whole := resultHead + `{"result":` + text + "}" + next
	if len(whole) <= MaxFeedbackBytes {
		return whole
	}
	const room = 256 // for the mark
	shown := beginning(text, MaxFeedbackBytes-len(resultHead)-len(next)-room)
	return fmt.Sprintf(`%s{"result":%s,"cut":"result is only the beginning of the text of a result of %d bytes"}%s`, resultHead, shown, len(text), next)
}

// Failure is how a program failed.
type Failure struct {
	Fault *contract.Fault
	// Calls are the tool calls of this program.
	Calls []contract.Call
	// ReadOnly says that from now on only the tools named in Callable, whose effect
	// is ReadOnly, can be called in this run.
	ReadOnly bool
	Callable []string
}

// Effect is a tool call that took effect, or may have.
type Effect struct {
	Tool  string             `json:"tool"`
	Seq   int64              `json:"seq"`
	State contract.CallState `json:"state"`
}

// Effects returns the calls that a corrected program must not repeat: those that
// are done, and those that may be; not those that only read, nor those that are
// proven to have done nothing.
func Effects(calls []contract.Call) []Effect {
	out := []Effect{}
	for _, c := range calls {
		if c.Effect != contract.EffectReadOnly && (c.State == contract.CallCompleted || c.MayHaveHappened()) {
			out = append(out, Effect{Tool: contract.Truncate(c.Tool, 64), Seq: c.Seq, State: c.State})
		}
	}
	return out
}

// codeError has its keys in the order in which they are shown.
type codeError struct {
	Reason  contract.Reason `json:"reason"`
	Message string          `json:"message"`
	Line    int             `json:"line,omitempty"`
	Column  int             `json:"column,omitempty"`
	Stack   []string        `json:"stack,omitempty"`
	Effects []Effect        `json:"effects"`
	// MoreEffects counts those that are not listed.
	MoreEffects int    `json:"moreEffects,omitempty"`
	Note        string `json:"note,omitempty"`
}

// CodeError tells the model why its program failed, where, and what took effect
// nevertheless. Fault is set.
func CodeError(x Failure) string {
	return boundedError(x, MaxFeedbackBytes, func(e codeError) string { return errorHead + encode(e) })
}

// boundedError spells a failure, with as many of its effects as fit.
func boundedError(x Failure, most int, spell func(codeError) string) string {
	f := x.Fault
	e := codeError{
		Reason: f.Reason, Message: contract.Truncate(f.Message, contract.MaxMessageBytes), Line: f.Line, Column: f.Column,
		Effects: Effects(x.Calls),
	}
	for _, frame := range f.Stack[:min(len(f.Stack), contract.MaxStackFrames)] {
		e.Stack = append(e.Stack, contract.Truncate(frame, contract.MaxFrameBytes))
	}
	if x.ReadOnly {
		e.Note = "Whether a call took effect is not known. " + onlyThese(x.Callable)
	}
	text := spell(e)
	for len(text) > most && len(e.Effects) > 0 {
		kept := len(e.Effects) / 2
		e.MoreEffects += len(e.Effects) - kept
		e.Effects = e.Effects[:kept]
		text = spell(e)
	}
	return text
}

func onlyThese(names []string) string {
	if len(names) == 0 {
		return "From now on no tool can be called in this run."
	}
	names = names[:min(len(names), contract.MaxRecipeTools)]
	return "From now on only these tools can be called in this run: " + contract.Truncate(strings.Join(names, ", "), 8<<10) + "."
}

// ProtocolError tells the model why its answer was no message.
//
//nolint:revive // the name is that of the text, like CodeError and FinalizeMode
func ProtocolError(m Message) string { return protocolHead + m.sentence() }

// FinalizeMode tells the model that its program was not run, because only the end
// may follow.
func FinalizeMode() string {
	return finalizeHead + "this program was not run. A program has succeeded before, and after that only the end is taken. Answer with " + finalForm + "."
}

// oneLine is JSON text without blanks around its tokens, so that no text in it can
// look like another message. What is no JSON becomes a string.
func oneLine(value json.RawMessage) string {
	if len(value) == 0 {
		return ""
	}
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		return encode(strings.ToValidUTF8(string(value), "\uFFFD"))
	}
	return out.String()
}

// beginning is a JSON string of at most most bytes with the beginning of a JSON
// text: of a string what it says, of anything else its text.
func beginning(text string, most int) string {
	if text[0] != '"' {
		text = encode(contract.Truncate(text, most))
	}
	if len(text) <= most {
		return text
	}
	// A cut must not split a character or an escape, nor a pair of these.
	at := 1
	for n := piece(text[at:]); at+n < most; n = piece(text[at:]) {
		at += n
	}
	return text[:at] + `"`
}

// piece is the length of the first character of what is inside a JSON string.
func piece(s string) int {
	if s[0] != '\\' {
		_, n := utf8.DecodeRuneInString(s)
		return n
	}
	switch {
	case s[1] != 'u':
		return 2
	case len(s) >= 12 && s[6] == '\\' && s[7] == 'u' && surrogates(s[2:6], s[8:12]):
		return 12
	}
	return 6
}

func surrogates(high, low string) bool {
	h, l := unit(high), unit(low)
	return h >= 0xD800 && h < 0xDC00 && l >= 0xDC00 && l < 0xE000
}

func encode(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return `""` // Strings and numbers only: they have no way to fail.
	}
	return strings.TrimSuffix(out.String(), "\n")
}
