// Package agentloop takes whole runs of agents through the runtime in one
// process: the bundle's file, the model's client, the loop, the sandbox, the tools
// over HTTP, and the report. Only the model is scripted, and the API server is
// the one of tests.
package agentloop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/test/modelserver/script"
)

// says is a turn that costs 10 tokens in and 2 out.
func says(text string) script.Turn {
	return script.Turn{Text: text, Reasoning: "let me think", Usage: &script.Usage{InputTokens: 10, OutputTokens: 2}}
}

// writes is a turn with a program.
func writes(source string) script.Turn {
	b, _ := json.Marshal(map[string]string{"type": "code", "language": "javascript", "code": source}) // of strings
	return says(string(b))
}

const (
	looks  = `function main(x){return tools.call("lookup",{sku:x.sku}).stock}`
	orders = `function main(x){const a=tools.call("lookup",{sku:x.sku});return tools.call("order",{sku:a.sku,quantity:20-a.stock}).id}`
	breaks = `function main(x){tools.call("lookup",{sku:x.sku});throw new Error("not like this")}`
	pays   = `function main(){return tools.call("charge",{})}`
	none   = `function main(){return null}`
	bolt   = `/lookup {"sku":"bolt-m8"}`
)

// life is what is expected of a run.
type life struct {
	turns []script.Turn
	agent func(*contract.PinnedAgent)
	world func(*world)

	wantOutput string
	wantReason contract.Reason
	wantSteps  []string
	wantCalls  []string
	wantAsked  []string // at the tools
	wantHeard  []string // by the model
}

var lives = map[string]life{
	"a program with calls": {
		turns:      []script.Turn{writes(orders)},
		wantOutput: `"order-0001"`, wantSteps: []string{"Code"}, wantCalls: []string{"lookup Completed", "order Completed"},
		wantAsked: []string{bolt, `/order {"quantity":8,"sku":"bolt-m8"}`}, wantHeard: []string{"Order"},
	},
	"a failure that is repaired": {
		turns:      []script.Turn{writes(breaks), writes(looks)},
		wantOutput: "12", wantSteps: []string{"Code JavaScriptError", "Code"}, wantCalls: []string{"lookup Completed", "lookup Completed"},
		wantAsked: []string{bolt, bolt}, wantHeard: []string{"Order", "CODE_ERROR:"},
	},
	"the model closes": {
		turns:      []script.Turn{writes(looks), writes(looks), says(`Done. {"type":"final","output":{"stock":12}}`)},
		agent:      func(a *contract.PinnedAgent) { a.Finalize = contract.FinalizeModel },
		wantOutput: `{"stock":12}`, wantSteps: []string{"Code", "Refused", "Final drift"}, wantCalls: []string{"lookup Completed"},
		wantAsked: []string{bolt}, wantHeard: []string{"Order", "CODE_RESULT:", "FINALIZE_MODE:"},
	},
	"prose at first": {
		turns:      []script.Turn{says("I will look it up."), writes(looks)},
		wantOutput: "12", wantSteps: []string{"ProtocolError ProtocolError", "Code"}, wantCalls: []string{"lookup Completed"},
		wantAsked: []string{bolt}, wantHeard: []string{"Order", "PROTOCOL_ERROR:"},
	},
	"nothing but prose": {
		turns:      []script.Turn{says("One."), says("Two."), says("Three.")},
		wantReason: contract.ReasonProtocolError, wantSteps: []string{"ProtocolError ProtocolError", "ProtocolError ProtocolError", "ProtocolError ProtocolError"},
		wantHeard: []string{"Order", "PROTOCOL_ERROR:", "PROTOCOL_ERROR:"},
	},
	"an effect in doubt": {
		turns:      []script.Turn{writes(pays), writes(orders), writes(looks)},
		wantOutput: "12", wantSteps: []string{"Code EffectUncertain", "Code EffectUncertain", "Code"},
		wantCalls: []string{"charge Uncertain", "lookup Completed", "order Refused", "lookup Completed"},
		wantAsked: []string{"/fail {}", bolt, bolt}, wantHeard: []string{"Order", "CODE_ERROR:", "CODE_ERROR:"},
	},
	"no end": {
		turns: []script.Turn{writes(none), writes(none)}, agent: func(a *contract.PinnedAgent) { a.MaxSteps = 2 },
		wantReason: contract.ReasonStepLimitExceeded, wantSteps: []string{"Code", "Code"}, wantHeard: []string{"Order", "CODE_RESULT:"},
	},
	"too many tokens": {
		turns: []script.Turn{writes(none), writes(looks)}, agent: func(a *contract.PinnedAgent) { a.MaxTokens = 20 },
		wantReason: contract.ReasonTokenBudgetExceeded, wantSteps: []string{"Code", " TokenBudgetExceeded"}, wantHeard: []string{"Order", "CODE_RESULT:"},
	},
	"the endpoint is busy": {
		turns: []script.Turn{func() script.Turn {
			t := writes(looks)
			t.Status, t.Times = 503, 2
			return t
		}()},
		wantOutput: "12", wantSteps: []string{"Code in 3"}, wantCalls: []string{"lookup Completed"},
		wantAsked: []string{bolt}, wantHeard: []string{"Order", "Order", "Order"},
	},
	"the model is silent": {
		turns:      []script.Turn{writes(none)},
		wantReason: contract.ReasonModelError, wantSteps: []string{"Code", "ModelError ModelError"}, wantHeard: []string{"Order"},
	},
}

// TestWholeRuns takes each run through both APIs, streamed and not.
func TestWholeRuns(t *testing.T) {
	eachWay(t, lives)
}

func eachWay(t *testing.T, lives map[string]life) {
	t.Helper()
	for name, tc := range lives {
		for _, api := range []contract.ModelAPI{contract.ModelAPIChat, contract.ModelAPIResponses} {
			for _, stream := range []script.Streaming{script.StreamAsAsked, script.StreamRefused} {
				t.Run(strings.TrimSpace(fmt.Sprintf("%s/%s %s", name, api, stream)), func(t *testing.T) { tc.check(t, api, stream) })
			}
		}
	}
}

func (l life) check(t *testing.T, api contract.ModelAPI, stream script.Streaming) {
	protocol := "tools.call" // in the system text
	if l.world != nil {
		protocol = contract.RunCodeTool
	}
	w := newWorld(t, api, script.Script{Turns: l.turns, Model: scripted, Stream: stream, System: []string{protocol}})
	if l.agent != nil {
		l.agent(w.bundle.Agent)
	}
	if l.world != nil {
		l.world(w)
	}
	e := w.run()
	// The first request asks for a stream, and is asked again without.
	if stream == script.StreamRefused && len(e.Steps) > 0 {
		e.Steps[0].Attempts--
	}
	var reason contract.Reason
	if e.Error != nil {
		reason = e.Error.Reason
	}
	if e.Output != l.wantOutput || reason != l.wantReason {
		t.Errorf("output %s, error %+v, want %s or %s", e.Output, e.Error, l.wantOutput, l.wantReason)
	}
	for what, x := range map[string][2][]string{
		"steps": {l.wantSteps, stepsOf(e.Steps)}, "journal": {l.wantCalls, callsOf(e.Calls)},
		"requests of the tools": {l.wantAsked, w.asked()}, "requests of the model": {l.wantHeard, w.heard()},
	} {
		if diff := cmp.Diff(x[0], x[1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	if n := int64(len(l.turns)); e.Usage.InputTokens != 10*n || e.Usage.OutputTokens != 2*n || e.Usage.TokensEstimated {
		t.Errorf("usage %+v of %d turns", e.Usage, n)
	}
	w.wantReplayed(len(l.wantCalls))
	events := w.types()
	if events[0] != string(contract.EventExecutionStarted) || events[len(events)-1] != string(contract.EventExecutionFinished) {
		t.Errorf("events %q", events)
	}
	for _, x := range [][2]contract.EventType{
		{contract.EventStepStarted, contract.EventStepFinished}, {contract.EventModelRequested, contract.EventModelAnswered},
		{contract.EventProgramStarted, contract.EventProgramFinished},
	} {
		if a, b := count(events, x[0]), count(events, x[1]); a != b {
			t.Errorf("%d of %s and %d of %s", a, x[0], b, x[1])
		}
	}
}

func count(types []string, t contract.EventType) (n int) {
	for _, x := range types {
		if x == string(t) {
			n++
		}
	}
	return n
}

func stepsOf(list []contract.Step) (out []string) {
	for i, s := range list {
		text := string(s.Kind)
		if s.Reason != "" {
			text += " " + s.Reason
		}
		for _, t := range s.Tools {
			text += strings.TrimRight(" "+t.Name+" "+t.Reason, " ")
		}
		if s.Drift {
			text += " drift"
		}
		if s.Attempts > 1 {
			text += fmt.Sprintf(" in %d", s.Attempts)
		}
		if s.Step != int64(i+1) {
			text = fmt.Sprintf("%d: %s", s.Step, text)
		}
		out = append(out, text)
	}
	return out
}

func callsOf(list []contract.Call) (out []string) {
	for _, c := range list {
		out = append(out, c.Tool+" "+string(c.State))
	}
	return out
}
