package vectors_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// speaker is a model that gives its answers one after another, and keeps what it
// was asked last.
type speaker struct {
	answers []string
	read    []loop.Message
}

// Ask implements loop.Model.
func (s *speaker) Ask(_ context.Context, r loop.ModelRequest) (loop.ModelAnswer, error) {
	s.read = r.Messages
	if len(s.answers) == 0 {
		return loop.ModelAnswer{}, errors.New("there is no answer left")
	}
	text := s.answers[0]
	s.answers = s.answers[1:]
	return loop.ModelAnswer{Text: &text}, nil
}

// codeMessage is the message with a program.
func codeMessage(t *testing.T, source string) string {
	t.Helper()
	b, err := json.Marshal(map[string]string{"type": "code", "language": "javascript", "code": source})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func agentOf(f contract.Finalize) func(*contract.Bundle) {
	return func(b *contract.Bundle) {
		b.Agent = &contract.PinnedAgent{Protocol: contract.ProtocolCode, Finalize: f, Prompt: "Do it.", MaxSteps: 5}
	}
}

func TestBR30MaxCallsPerRunIsForTheRun(t *testing.T) {
	s := serve(t, say("1"))
	tool := pinned("pay", s.url, contract.EffectReadOnly)
	tool.MaxCalls = 2
	o := scene{
		tools: []contract.PinnedTool{tool}, bundle: agentOf(contract.FinalizeDirect),
		model: &speaker{answers: []string{
			codeMessage(t, `function main(){tools.call("pay",{});tools.call("pay",{});throw new Error("no")}`),
			codeMessage(t, catchAll),
		}},
	}.play(t.Context(), t)
	wantFault(t, o, contract.ReasonCallLimitExceeded)
	wantSent(t, s, 2)
	want := []string{"1 pay Completed ", "2 pay Completed ", "0 pay Refused CallLimitExceeded"}
	if diff := cmp.Diff(want, states(o.Calls)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"u:1:1", "u:1:2"}, s.sent()); diff != "" {
		t.Errorf("idempotency keys (-want +got):\n%s", diff)
	}
}

func TestBR01TheModelReadsTheProgramsResultOnly(t *testing.T) {
	s := serve(t, say("5"))
	m := &speaker{answers: []string{
		codeMessage(t, `function main(){const secret=4;return {answer:tools.call("increment",{secret})*10}}`), `{"type":"final","output":"completed"}`,
	}}
	o := scene{
		tools: []contract.PinnedTool{pinned("increment", s.url, contract.EffectReadOnly)}, bundle: agentOf(contract.FinalizeModel), model: m,
	}.play(t.Context(), t)
	wantValue(t, o, `"completed"`)
	wantSent(t, s, 1)
	var results []string
	for _, x := range m.read[2:] { // behind the system text and the prompt
		if x.Role == loop.RoleUser {
			results = append(results, x.Text)
		}
	}
	if len(results) != 1 || !strings.HasPrefix(results[0], `CODE_RESULT: {"result":{"answer":50}}`) ||
		strings.Contains(results[0], "increment") || strings.Contains(results[0], "secret") {
		t.Errorf("the model was told %q", results)
	}
}
