package loop

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

func TestHistory(t *testing.T) {
	long := strings.Repeat("x", maxHistoryBytes/2)
	tests := map[string]struct {
		maxItems int64
		answers  []*string
		feedback string
		want     []string // the messages behind the prompt
		dropped  string
	}{
		"nothing yet":        {},
		"no bound":           {0, []*string{new("a"), new("b"), new("c")}, "f", []string{"a", "f", "b", "f", "c", "f"}, ""},
		"exactly the bound":  {4, []*string{new("a"), new("b")}, "f", []string{"a", "f", "b", "f"}, ""},
		"pairs are dropped":  {5, []*string{new("a"), new("b"), new("c"), new("d")}, "f", []string{"c", "f", "d", "f"}, "4"},
		"the newest stays":   {1, []*string{new("a"), new("b")}, "f", []string{"b", "f"}, "2"},
		"no answer":          {0, []*string{nil, new(" \n"), new("b")}, "f", []string{"f", "f", "b", "f"}, ""},
		"what counts of one": {2, []*string{nil, new("b")}, "f", []string{"b", "f"}, "1"},
		"bytes":              {0, []*string{new("a"), new("b"), new(long)}, "f", []string{"a", "f", "b", "f", long, "f"}, ""},
		"too many bytes":     {0, []*string{new("a"), new(long), new(long)}, "f", []string{long, "f"}, "4"},
		"one is too long":    {0, []*string{new("a"), new(long + long + "x")}, "f", []string{long + long + "x", "f"}, "2"},
		"the run is over":    {0, []*string{new("a")}, "", nil, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := history{system: "s", prompt: "p", maxItems: tc.maxItems}
			for _, a := range tc.answers {
				h.add(a, tc.feedback)
			}
			m := h.messages()
			prompt := "p"
			if tc.dropped != "" {
				prompt = "p\n\n(" + tc.dropped + " earlier messages of this conversation are left out.)"
			}
			if diff := cmp.Diff([]Message{{Role: RoleSystem, Text: "s"}, {Role: RoleUser, Text: prompt}}, m[:2]); diff != "" {
				t.Errorf("the first messages are %q", m[:2])
			}
			var got []string
			for _, x := range m[2:] {
				got = append(got, x.Text)
				if told := x.Role == RoleUser; told != (x.Text == tc.feedback) {
					t.Errorf("%.20q is of the role %s", x.Text, x.Role)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%.500s", diff)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	counted := func(in, out int64) ModelAnswer { return ModelAnswer{Counted: true, InputTokens: in, OutputTokens: out} }
	uncounted := ModelAnswer{Text: new("12345"), Reasoning: "6789"}
	tests := map[string]struct {
		answers []ModelAnswer
		most    int64
		over    bool
		want    contract.Usage
	}{
		"none":               {nil, 1, false, contract.Usage{}},
		"the bound":          {[]ModelAnswer{counted(1, 2), counted(3, 4)}, 10, false, contract.Usage{InputTokens: 4, OutputTokens: 6}},
		"one more":           {[]ModelAnswer{counted(1, 2), counted(3, 5)}, 10, true, contract.Usage{InputTokens: 4, OutputTokens: 7}},
		"no bound":           {[]ModelAnswer{counted(100, 200)}, 0, false, contract.Usage{InputTokens: 100, OutputTokens: 200}},
		"nothing counted":    {[]ModelAnswer{uncounted, uncounted}, 1, false, contract.Usage{InputTokens: 6, OutputTokens: 6, TokensEstimated: true}},
		"some counted":       {[]ModelAnswer{uncounted, counted(1, 2)}, 3, false, contract.Usage{InputTokens: 1, OutputTokens: 2}},
		"negative is none":   {[]ModelAnswer{counted(-5, 2)}, 1, true, contract.Usage{OutputTokens: 2}},
		"and no overflow":    {[]ModelAnswer{counted(math.MaxInt64, math.MaxInt64), counted(math.MaxInt64, 1)}, 10, true, contract.Usage{InputTokens: maxTokenCount, OutputTokens: maxTokenCount}},
		"counted as nothing": {[]ModelAnswer{counted(0, 0)}, 1, false, contract.Usage{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var x tokens
			for _, a := range tc.answers {
				x.add(ModelRequest{Messages: []Message{{Text: "123456789"}}}, a)
			}
			var got contract.Usage
			x.into(&got)
			if diff := cmp.Diff(tc.want, got); diff != "" || x.over(tc.most) != tc.over {
				t.Errorf("over %v %v, usage (-want +got):\n%s", tc.most, x.over(tc.most), diff)
			}
		})
	}
}

// TestWhatTheModelIsTold looks at the last message of each request.
func TestWhatTheModelIsTold(t *testing.T) {
	native := func(ctx context.Context, n int, r ModelRequest) (ModelAnswer, error) {
		a, err := answers(code("return 8"))(ctx, n, r)
		a.ToolCalls = make([]contract.ModelToolCall, 1)
		return a, err
	}
	tests := map[string]struct {
		model  asks
		change func(*Config)
		want   []string
	}{
		"a failure": {answers(code("fail JavaScriptError")), nil, []string{`CODE_ERROR: {"reason":"JavaScriptError"`, `"message":"it failed"`, `"line":3`, `"effects":[]`}},
		"what took effect": {
			answers(code("call pay")), func(c *Config) { c.Sandbox = throws(acts) },
			[]string{`CODE_ERROR: {"reason":"JavaScriptError"`, `"tool":"pay"`, `"state":"Completed"`},
		},
		"what may have taken effect":     {answers(code("call lose")), nil, []string{`CODE_ERROR: {"reason":"EffectUncertain"`, `"tool":"lose"`, `"state":"Uncertain"`, "only these tools can be called in this run: read."}},
		"a name that is not granted":     {answers(code("call ghost")), nil, []string{`CODE_ERROR: {"reason":"ToolNotAllowed"`}},
		"a native call beside a message": {native, nil, []string{"PROTOCOL_ERROR: "}},
		"an answer that is too long":     {answers(final + strings.Repeat(" ", contract.MaxModelAnswerBytes)), nil, []string{"PROTOCOL_ERROR: "}},
		"an output that is too long":     {answers(final), func(c *Config) { c.Bundle.Limits.OutputBytes = 5 }, []string{"PROTOCOL_ERROR: "}},
		"no answer":                      {func(context.Context, int, ModelRequest) (ModelAnswer, error) { return ModelAnswer{}, nil }, nil, []string{"PROTOCOL_ERROR: "}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, m := agentConfig(tc.model)
			c.Bundle.Agent.MaxSteps = 2
			if tc.change != nil {
				tc.change(&c)
			}
			if o := Run(t.Context(), c); o.Fault == nil || o.Fault.Reason != contract.ReasonStepLimitExceeded || o.Value != nil {
				t.Errorf("outcome %+v", o)
			}
			if len(m.requests) != 2 {
				t.Fatalf("the model was asked %d times", len(m.requests))
			}
			list := m.requests[1].Messages
			for _, want := range tc.want {
				if got := list[len(list)-1].Text; !strings.Contains(got, want) {
					t.Errorf("the model was told %q, want %q in it", got, want)
				}
			}
		})
	}
}

// TestAgentRecord looks at what is written down of the steps.
func TestAgentRecord(t *testing.T) {
	failing, reading := code("fail JavaScriptError"), "So: "+code("call read")
	c, m := agentConfig(func(ctx context.Context, n int, r ModelRequest) (ModelAnswer, error) {
		a, err := answers(failing, reading)(ctx, n, r)
		a.Counted, a.InputTokens, a.OutputTokens, a.Attempts = true, 10, int64(n), int64(n)
		return a, err
	})
	c.Bundle.Agent.Instructions, c.Bundle.Input = "Be brief.", []byte(`{"n":1}`)
	var told []string
	c.Steps = func(s []contract.Step) { told = append(told, fmt.Sprint(stepsOf(Outcome{Steps: s}))) }
	o := Run(t.Context(), c)
	want := []contract.Step{
		{Step: 1, Kind: contract.StepCode, Reason: "JavaScriptError", ProgramDigest: contract.Digest([]byte("fail JavaScriptError")), InputTokens: 10, OutputTokens: 1, Attempts: 1, ModelMs: 1},
		{Step: 2, Kind: contract.StepCode, Drift: true, ProgramDigest: contract.Digest([]byte("call read")), InputTokens: 10, OutputTokens: 2, Attempts: 2, ModelMs: 1, Calls: 1},
	}
	for i := range o.Steps {
		if o.Steps[i].ProgramMs < 1 {
			t.Errorf("step %d took its program no time", i+1)
		}
		o.Steps[i].ProgramMs = 0
	}
	if diff := cmp.Diff(want, o.Steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	u := o.Usage
	if u.InputTokens != 20 || u.OutputTokens != 3 || u.HeapBytes != 65536 || u.Fuel != 20 || u.ChildCalls != 1 || u.WallMs == 0 {
		t.Errorf("usage %+v", u)
	}
	if diff := cmp.Diff([]string{"[Code]", "[Code JavaScriptError]", "[Code JavaScriptError Code]", "[Code JavaScriptError Code]"}, told); diff != "" {
		t.Errorf("the steps were told as (-want +got):\n%s", diff)
	}
	first := m.requests[0].Messages
	if !strings.HasPrefix(first[0].Text, "Be brief.\n") || !strings.Contains(first[0].Text, `"name":"read"`) ||
		!strings.HasPrefix(first[1].Text, "p\n") || !strings.Contains(first[1].Text, `{"n":1}`) {
		t.Errorf("the first request has %q", first)
	}
	var e contract.Execution
	o.Report(&e, c.Now())
	if len(e.Steps) != 2 || e.Output != "7" {
		t.Errorf("report %+v", e)
	}
}
