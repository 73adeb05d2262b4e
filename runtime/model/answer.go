package model

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// answer is one answer as it comes together, whole or in parts.
type answer struct {
	text, reasoning part
	finish          string
	// calls are the native tool calls, old those of the form before them.
	calls, old    calls
	input, output int64
	counted       bool

	secret egress.Secret
	// behind is how many bytes stay untold, for the credential that may begin there.
	behind int
	delta  func(text, reasoning string)
}

// part is one of the two texts and how much of it was told.
type part struct {
	strings.Builder
	told int
}

// addText adds to the answer's text, which must not be longer than allowed.
func (a *answer) addText(s string) error {
	if a.text.Len()+len(s) > contract.MaxModelAnswerBytes {
		return refused("its answer is longer than %d bytes", contract.MaxModelAnswerBytes)
	}
	a.text.WriteString(s)
	return nil
}

// addReasoning adds what fits: nobody acts on it.
func (a *answer) addReasoning(s string) {
	a.reasoning.WriteString(contract.Truncate(s, contract.MaxModelAnswerBytes-a.reasoning.Len()))
}

// count takes the endpoint's count of tokens, under the names of either API. What
// is not a count leaves the one before it.
func (a *answer) count(raw json.RawMessage) {
	var u struct {
		Prompt     json.RawMessage `json:"prompt_tokens"`
		Completion json.RawMessage `json:"completion_tokens"`
		Input      json.RawMessage `json:"input_tokens"`
		Output     json.RawMessage `json:"output_tokens"`
	}
	if json.Unmarshal(raw, &u) != nil {
		return
	}
	in, inOK := tokens(u.Prompt, u.Input)
	out, outOK := tokens(u.Completion, u.Output)
	if inOK && outOK && (in > 0 || out > 0) {
		a.input, a.output, a.counted = in, out, true
	}
}

// tokens reads the first of the numbers that is there.
func tokens(raws ...json.RawMessage) (int64, bool) {
	for _, raw := range raws {
		n, err := strconv.ParseFloat(string(raw), 64)
		if err == nil && n >= 0 && n <= math.MaxInt32 {
			return int64(n), true
		}
	}
	return 0, false
}

// tell tells Delta what may be told: all of it at the end, before that no byte
// that the credential could begin at.
func (a *answer) tell(end bool) error {
	if a.delta == nil {
		return nil
	}
	text, err := a.fresh(&a.text, end)
	if err != nil {
		return err
	}
	reasoning, err := a.fresh(&a.reasoning, end)
	if err != nil {
		return err
	}
	if text != "" || reasoning != "" {
		a.delta(text, reasoning)
	}
	return nil
}

// fresh returns what is new of a text and may be told.
func (a *answer) fresh(p *part, end bool) (string, error) {
	all := p.String()
	to := len(all)
	if !end {
		to = max(to-a.behind, 0)
		for to > 0 && to < len(all) && !utf8.RuneStart(all[to]) {
			to--
		}
	}
	if to <= p.told {
		return "", nil
	}
	if a.secret.In([]byte(all[max(p.told-a.behind, 0):])) {
		return "", leaked()
	}
	fresh := all[p.told:to]
	p.told = to
	return fresh, nil
}

func leaked() *failure {
	return refused("its answer holds the credential that it was sent, so nothing of it is kept")
}

// whole returns the answer, if it may be kept.
func (a *answer) whole() (loop.ModelAnswer, error) {
	native := a.native()
	said := []string{a.text.String(), a.reasoning.String(), a.finish}
	for _, c := range native {
		said = append(said, c.ID, c.Name, c.Arguments)
	}
	for _, s := range said {
		if a.secret.In([]byte(s)) {
			return loop.ModelAnswer{}, leaked()
		}
	}
	if err := a.tell(true); err != nil {
		return loop.ModelAnswer{}, err
	}
	out := loop.ModelAnswer{
		Reasoning: a.reasoning.String(), FinishReason: contract.Truncate(a.finish, 64), ToolCalls: native,
		InputTokens: a.input, OutputTokens: a.output, Counted: a.counted,
	}
	if a.text.Len() > 0 {
		s := a.text.String()
		out.Text = &s
	}
	return out, nil
}

// given reports whether a member is there and says something.
func given(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", `""`, "{}", "false":
		return false
	}
	return true
}

// str reads a string; anything else is "".
func str(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}
