package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/loop/protocol"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// counting counts what reaches it.
type counting struct{ calls *atomic.Int64 }

func (c counting) Call(context.Context, broker.Request) (broker.Answer, error) {
	c.calls.Add(1)
	return broker.Answer{Body: []byte("7"), Bytes: 1}, nil
}

// call is an answer with calls of one tool, each with an id and its arguments.
func call(tool string, pairs ...string) says {
	var s says
	for i := 0; i < len(pairs); i += 2 {
		s.calls = append(s.calls, contract.ModelToolCall{ID: pairs[i], Name: tool, Arguments: pairs[i+1]})
	}
	return s
}

func nested(n int) string {
	return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}"
}

func repeat(n int, c contract.ModelToolCall) (s says) {
	for i := range n {
		c.ID = fmt.Sprintf("i%d", i)
		s.calls = append(s.calls, c)
	}
	return s
}

// TestHostileAnswers has answers that no honest model gives. Each is followed by the
// end of the run, which must come: the run goes on with a message that says what was
// wrong, and pay is called as often as one reading of the answer allows.
func TestHostileAnswers(t *testing.T) {
	const twice = "a key occurs twice in an object of the arguments"
	long := strings.Repeat("n", 100_000)
	tests := map[string]struct {
		answer says
		want   string // in what is told last
		step   string
		pays   int64
	}{
		"no ids":                       {call("pay", "", "{}", "", "{}"), `{"result":7}`, "Tools pay pay", 2},
		"one id for two calls":         {call("pay", "a", `{"n":1}`, "a", `{"n":2}`), `{"result":7}`, "Tools pay pay", 2},
		"one call said twice":          {call("pay", "a", `{"n":1}`, "a", `{"n":1}`), "an earlier call of this answer has the same id", "Tools pay pay:InvalidArguments", 1},
		"one call said twice in bits":  {call("pay", "a", `{"n":1}`, "b", `{"n":1}`, "a", `{"n":1}`), "an earlier call of this answer has the same id", "Tools pay pay pay:InvalidArguments", 2},
		"a huge id":                    {call("pay", long, "{}"), `{"result":7}`, "Tools pay", 1},
		"ids of no text":               {call("pay", "\xff", "{}", "\xfe", "{}", "\ufffd", "{}"), "", "Tools pay pay pay:CallLimitExceeded CallLimitExceeded", 2},
		"ids of controls":              {call("pay", "a\nb", "{}", " ", "{}"), `{"result":7}`, "Tools pay pay", 2},
		"the id of a made one":         {call("pay", "", "{}", "call_1_1", "{}"), `{"result":7}`, "Tools pay pay", 2},
		"1000 calls":                   {repeat(1000, contract.ModelToolCall{Name: "pay"}), "PROTOCOL_ERROR: the answer has far more than 32 calls, so none of them was made", "ProtocolError ProtocolError", 0},
		"129 calls":                    {repeat(129, contract.ModelToolCall{Name: "pay"}), "far more than 32 calls", "ProtocolError ProtocolError", 0},
		"more bytes than an answer":    {call("pay", "a", `{"a":"`+strings.Repeat("x", contract.MaxModelAnswerBytes)+`"}`), "PROTOCOL_ERROR: the answer has more than 524288 bytes", "ProtocolError ProtocolError", 0},
		"no name":                      {call("", "a", "{}"), `no tool named \"\" is offered`, "Tools :ToolNotAllowed", 0},
		"a name with a blank":          {call("pay ", "a", "{}"), `no tool named \"pay \" is offered`, "Tools pay :ToolNotAllowed", 0},
		"a name in capitals":           {call("PAY", "a", "{}"), "is offered", "Tools PAY:ToolNotAllowed", 0},
		"a name with a prefix":         {call("functions.pay", "a", "{}"), "is offered", "Tools functions.pay:ToolNotAllowed", 0},
		"a huge name":                  {call(long, "a", "{}"), strings.Repeat("n", 64) + `\" is offered`, "Tools " + strings.Repeat("n", 64) + ":ToolNotAllowed", 0},
		"a name of no text":            {call("pay\xff", "a", "{}"), "is offered", "Tools pay\xff:ToolNotAllowed", 0},
		"a name of the prototype":      {call("__proto__", "a", "{}"), "is offered", "Tools __proto__:ToolNotAllowed", 0},
		"a key twice":                  {call("pay", "a", `{"to":"ann","to":"bob"}`), twice, "Tools pay:InvalidArguments", 0},
		"a key twice in a list":        {call("pay", "a", `{"x":[{"a":1,"b":{},"a":2}]}`), twice, "Tools pay:InvalidArguments", 0},
		"a key twice, spelled apart":   {call("pay", "a", `{"to":1,"\u0074o":2}`), twice, "Tools pay:InvalidArguments", 0},
		"a source twice":               {call("run_code", "a", `{"source":"return 1","source":"call pay"}`), twice, "Tools run_code:InvalidArguments", 0},
		"a source in two cases":        {call("run_code", "a", `{"source":"return 1","Source":"call pay"}`), "additionalProperties", "Tools run_code:InvalidArguments", 0},
		"half a character":             {call("pay", "a", `{"to":"\ud83d"}`), "not well-formed Unicode", "Tools pay:InvalidArguments", 0},
		"half a character in a source": {call("run_code", "a", `{"source":"\udc00"}`), "not well-formed Unicode", "Tools run_code:InvalidArguments", 0},
		"no text":                      {call("pay", "a", "{\"to\":\"\xff\"}"), "not well-formed Unicode", "Tools pay:InvalidArguments", 0},
		"deeply nested":                {call("pay", "a", nested(9_000)), `{"result":7}`, "Tools pay", 1},
		"too deeply nested":            {call("pay", "a", nested(200_000)), "the arguments are not JSON", "Tools pay:InvalidArguments", 0},
		"an unfinished object":         {call("pay", "a", strings.Repeat(`{"a":`, 50_000)), "the arguments are not JSON", "Tools pay:InvalidArguments", 0},
		"a string of JSON":             {call("pay", "a", `"{\"n\":1}"`), "the arguments are no JSON object", "Tools pay:InvalidArguments", 0},
		"two objects":                  {call("pay", "a", `{}{}`), "the arguments are not JSON", "Tools pay:InvalidArguments", 0},
		"a comment":                    {call("pay", "a", `{} // x`), "the arguments are not JSON", "Tools pay:InvalidArguments", 0},
		"a huge number":                {call("sum", "a", `{"n":1e400}`), "TOOL_ERROR", "Tools sum:InvalidArguments", 0},
		"an infinite one":              {call("sum", "a", `{"n":Infinity}`), "the arguments are not JSON", "Tools sum:InvalidArguments", 0},
		"text beside a call":           {says{text: "I pay now.", calls: call("pay", "a", "{}").calls, finish: "stop"}, `{"result":7}`, "Tools pay", 1},
		"text that is none beside it":  {says{text: "\xff\xfe", calls: call("pay", "a", "{}").calls}, `{"result":7}`, "Tools pay", 1},
		"calls that are cut":           {says{calls: call("pay", "a", "{}").calls, finish: "length"}, "none of its calls was made", "ProtocolError ProtocolError", 0},
		"calls in another word's cut":  {says{calls: call("pay", "a", "{}").calls, finish: "max_output_tokens"}, "none of its calls was made", "ProtocolError ProtocolError", 0},
		"calls that are filtered":      {says{calls: call("pay", "a", "{}").calls, finish: "content_filter"}, "none of its calls was made", "ProtocolError ProtocolError", 0},
		"another language":             {call("run_code", "a", `{"source":"print(1)","language":"python"}`), "additionalProperties", "Tools run_code:InvalidArguments", 0},
		"a program that is no text":    {call("run_code", "a", `{"source":["return 1"]}`), "do not match its schema", "Tools run_code:InvalidArguments", 0},
		"run_code from code":           {call("run_code", "a", `{"source":"call run_code"}`), `tool \"run_code\" is not granted`, "Tools run_code:ToolNotAllowed", 0},
		"a recipe from code":           {call("run_code", "a", `{"source":"call sum"}`), `tool \"sum\" is not granted`, "Tools run_code:ToolNotAllowed", 0},
		"a recipe that calls run_code": {call("relay", "a", `{"tool":"run_code"}`), `tool \"run_code\" is not granted`, "Tools relay:ToolNotAllowed", 0},
		"a recipe that calls a recipe": {call("relay", "a", `{"tool":"spend"}`), `tool \"spend\" is not granted`, "Tools relay:ToolNotAllowed", 0},
		"a recipe led to another tool": {call("relay", "a", `{"tool":"pay"}`), `does not declare the tool \"pay\"`, "Tools relay:ToolNotAllowed", 0},
		"a recipe as it is meant":      {call("relay", "a", `{"tool":"hidden"}`), `{"result":7}`, "Tools relay", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var pays atomic.Int64
			c, m := toolsConfig(speaks(tc.answer, says{text: "end"}))
			for i := range c.Tools {
				if c.Tools[i].Tool.Name == "pay" {
					c.Tools[i].Backend = counting{&pays}
				}
			}
			relay := c.Bundle.Agent.Recipes[0]
			relay.ToolName, relay.InputSchema = "relay", nil
			c.Bundle.Agent.Recipes = append(c.Bundle.Agent.Recipes, relay)
			c.Sandbox = executor(relays)
			var out bytes.Buffer
			c.Events = NewEvents(&out, clock())
			c.Events.Record(contract.TranscriptOrigin{})
			o := Run(t.Context(), c)
			if ends := tc.want == ""; ends != (o.Fault != nil) || len(o.Steps) == 0 {
				t.Fatalf("%v, steps %+v", o.Fault, o.Steps)
			}
			if d := cmp.Diff(tc.step, toolSteps(o)[0]); d != "" || pays.Load() != tc.pays {
				t.Errorf("pays %d, want %d; step (-want +got):\n%s", pays.Load(), tc.pays, d)
			}
			if o.Fault == nil {
				checkTold(t, m.requests[1], tc.answer, tc.want)
			}
			for line := range bytes.Lines(out.Bytes()) {
				if !json.Valid(line) || len(line) > 2*contract.MaxEventContentBytes {
					t.Errorf("an event of %d bytes: %.200s", len(line), line)
				}
			}
		})
	}
}

// relays is acts with a program that calls the tool that its input names.
func relays(ctx context.Context, p sandbox.Program, c sandbox.Caller) (sandbox.Result, error) {
	var in struct{ Tool string }
	if p.Source == "call hidden" && json.Unmarshal(p.Input, &in) == nil && in.Tool != "" {
		p.Source = "call " + in.Tool
	}
	return acts(ctx, p, c)
}

// checkTold holds the messages behind an answer to what endpoints take, and the last
// one to what it must say.
func checkTold(t *testing.T, r ModelRequest, answer says, want string) {
	t.Helper()
	told := lastTold(r)
	if len(told) == 0 || !strings.Contains(told[len(told)-1], want) {
		t.Errorf("told %.300q, want %q", told, want)
	}
	total := 0
	for _, x := range told {
		total += len(x)
		if !utf8.ValidString(x) {
			t.Errorf("told %.100q, which is no text", x)
		}
	}
	if total > maxHistoryBytes+protocol.MaxFeedbackBytes {
		t.Errorf("told %d bytes", total)
	}
	ids := map[string]bool{}
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			if ids[c.ID] || !plainID(c.ID) || !contract.ValidToolName(c.Name) || !json.Valid([]byte(c.Arguments)) {
				t.Errorf("shown again: %.200q", fmt.Sprint(c))
			}
			ids[c.ID] = true
		}
	}
	if n := len(answer.calls); len(ids) > 0 && (len(ids) != n || len(told) != n) {
		t.Errorf("%d calls were shown again as %d, with %d results", n, len(ids), len(told))
	}
}

// TestHugeTurns holds the history to its bounds, whatever a turn weighs: the newest
// turn stays as a whole, and no result of it is without its call.
func TestHugeTurns(t *testing.T) {
	large := calls(contract.RunCodeTool, `{"source":"return \"`+strings.Repeat("x", 120_000)+`\""}`)
	many := says{}
	for i := range 40 {
		many.calls = append(many.calls, contract.ModelToolCall{Name: contract.RunCodeTool, Arguments: fmt.Sprintf(`{"source":"return \"%s\"","input":%d}`, strings.Repeat("y", 10_000), i)})
	}
	for name, maxItems := range map[string]int64{"by bytes": 0, "by items": 2} {
		t.Run(name, func(t *testing.T) {
			c, m := toolsConfig(speaks(large, many, large, many, large, says{text: "end"}))
			c.Bundle.Agent.MaxSteps, c.Bundle.Agent.MaxItems = 8, maxItems
			if o := Run(t.Context(), c); o.Fault != nil {
				t.Fatal(o.Fault)
			}
			for i, r := range m.requests {
				total, open := 0, map[string]bool{}
				for _, x := range r.Messages {
					total += x.bytes()
					for _, c := range x.ToolCalls {
						open[c.ID] = true
					}
					if x.Role == RoleTool && !open[x.ToolCallID] {
						t.Errorf("request %d: a result of %s without its call", i+1, x.ToolCallID)
					}
					delete(open, x.ToolCallID)
				}
				if len(open) > 0 || total > maxHistoryBytes+contract.MaxModelAnswerBytes+protocol.MaxFeedbackBytes {
					t.Errorf("request %d: %d bytes, %d calls without results", i+1, total, len(open))
				}
				if maxItems > 0 && i > 1 && !strings.Contains(r.Messages[1].Text, "earlier messages of this conversation are left out") {
					t.Errorf("request %d does not say what was dropped", i+1)
				}
			}
		})
	}
}

// TestMadeUpNames: with transcript None, nothing that a model or a program made up is
// on the stream.
func TestMadeUpNames(t *testing.T) {
	var out bytes.Buffer
	answer := calls("hunter2", "{}", "read", "{}", contract.RunCodeTool, `{"source":"call hunter2"}`, "sum", "{}")
	answer.calls[1].ID = "hunter2"
	c, _ := toolsConfig(speaks(answer, says{text: "end"}))
	for _, x := range c.Tools {
		c.Bundle.Tools = append(c.Bundle.Tools, x.PinnedTool)
	}
	c.Bundle.Transcript, c.Events = contract.TranscriptNone, NewEvents(&out, clock())
	if o := Run(t.Context(), c); o.Fault != nil {
		t.Fatal(o.Fault)
	}
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("the stream has it:\n%s", out.String())
	}
	for _, want := range []string{`"tool":"read"`, `"tool":"hidden"`, `"tool":"sum"`, `"tool":"run_code"`, `"tool":"` + contract.UnknownTool + `"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the stream has no %s", want)
		}
	}
}
