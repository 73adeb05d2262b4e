package run

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/runtime/report/reporttest"
)

// script is a model that gives its answers one after another, and then waits for
// the end of its context.
type script struct {
	answers []string
	waiting chan struct{}
}

func (s *script) Ask(ctx context.Context, _ loop.ModelRequest) (loop.ModelAnswer, error) {
	if len(s.answers) == 0 {
		close(s.waiting)
		<-ctx.Done()
		return loop.ModelAnswer{}, ctx.Err()
	}
	text := s.answers[0]
	s.answers = s.answers[1:]
	return loop.ModelAnswer{Text: &text, InputTokens: 10, OutputTokens: 2, Counted: true, Attempts: 1}, nil
}

func program(source string) string {
	return `{"type":"code","language":"javascript","code":` + strconv.Quote(source) + `}`
}

// newAgentPod is newPod for an agent whose model is the script.
func newAgentPod(t *testing.T, answers ...string) (*pod, *script, func(*Config)) {
	t.Helper()
	p := newPod(t, "", contract.EffectIdempotent, says("7"))
	p.bundle.Agent = &contract.PinnedAgent{Protocol: contract.ProtocolCode, Finalize: contract.FinalizeDirect, Prompt: "Pay.", MaxSteps: 5}
	p.pin()
	s := &script{answers: answers, waiting: make(chan struct{})}
	return p, s, func(c *Config) {
		c.Model = func(contract.Bundle, egress.Credentials) (loop.Model, *contract.Fault) { return s, nil }
	}
}

const paysAndFails = `function main(){tools.call("pay",{});throw new Error("late")}`

// TestAgent runs two programs. Each write-through has the steps so far.
func TestAgent(t *testing.T) {
	p, _, model := newAgentPod(t, program(paysAndFails), program(`function main(){return tools.call("pay",{})}`))
	if code := p.run(model); code != ExitSucceeded {
		t.Fatalf("exit code %d, log %s", code, p.log.String())
	}
	e := p.last()
	if e.Output != "7" || e.Usage.InputTokens != 20 || e.Usage.OutputTokens != 4 || e.Usage.TokensEstimated {
		t.Errorf("report %+v with the usage %+v", e, e.Usage)
	}
	if diff := cmp.Diff([]string{"u:2:1 Completed", "u:2:2 Completed"}, states(e.Calls)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	var got []string
	for _, w := range p.api.Writes() {
		got = append(got, steps(w.Steps)+" "+strings.Join(states(w.Calls), ","))
	}
	want := []string{
		" ", "Code u:2:1 Dispatched", "Code u:2:1 Completed",
		"Code JavaScriptError,Code u:2:1 Completed,u:2:2 Dispatched", "Code JavaScriptError,Code u:2:1 Completed,u:2:2 Completed",
		"Code JavaScriptError,Code u:2:1 Completed,u:2:2 Completed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if m := p.message(); len(m.Steps) != 2 || m.Output != "7" {
		t.Errorf("termination message %+v", m)
	}
}

func steps(list []contract.Step) string {
	var out []string
	for _, s := range list {
		out = append(out, strings.TrimSpace(string(s.Kind)+" "+s.Reason))
	}
	return strings.Join(out, ",")
}

// TestAgentIsStopped ends runs whose model is asked.
func TestAgentIsStopped(t *testing.T) {
	tests := map[string]struct {
		change  func(*reporttest.Run)
		timeout int64
		want    contract.Reason
	}{
		"node drain": {func(*reporttest.Run) {}, 0, contract.ReasonInterrupted},
		"cancelled":  {func(r *reporttest.Run) { r.Spec["cancel"] = true }, 0, contract.ReasonCancelled},
		"too late":   {nil, 700, contract.ReasonDeadlineExceeded},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, s, model := newAgentPod(t, program(paysAndFails))
			if tc.timeout > 0 {
				p.bundle.TimeoutMs = tc.timeout
				p.pin()
			}
			if tc.change != nil {
				go func() {
					<-s.waiting
					p.api.Change(tc.change)
					close(p.stop)
				}()
			}
			p.wantFailed(p.run(model), tc.want)
			e := p.last()
			if want := "Code JavaScriptError," + string(tc.want); steps(e.Steps) != want {
				t.Errorf("steps %s, want %s", steps(e.Steps), want)
			}
		})
	}
}

func TestAgentWithoutModel(t *testing.T) {
	tests := map[string]struct {
		change func(*contract.Bundle)
		model  func(contract.Bundle, egress.Credentials) (loop.Model, *contract.Fault)
		want   contract.Reason
	}{
		"its URL is none": {func(b *contract.Bundle) { b.Agent.Model.URL = "::" }, nil, contract.ReasonModelError},
		"there is a reason": {
			func(*contract.Bundle) {}, func(contract.Bundle, egress.Credentials) (loop.Model, *contract.Fault) {
				return nil, contract.Faultf(contract.ReasonBackendInvalid, "b")
			}, contract.ReasonBackendInvalid,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, _, _ := newAgentPod(t)
			tc.change(&p.bundle)
			p.pin()
			p.wantFailed(p.run(func(c *Config) { c.Model = tc.model }), tc.want)
		})
	}
}
