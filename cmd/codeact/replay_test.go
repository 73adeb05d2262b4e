package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/stub"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/runtime/replay"
)

const (
	reorders = `function main(input) {
  const item = tools.call("lookup", { sku: input.sku });
  return { order: tools.call("order", { quantity: 20 - item.stock, sku: item.sku }).id };
}
`
	stumbles = `function main(input) {
  const item = tools.call("lookup", { sku: input.sku });
  return item.shelf.row;
}
`
	shopTools = `{"lookup":{"returns":{"sku":"bolt-m8","stock":12},"effect":"ReadOnly"},"order":{"returns":{"id":"order-0001"},"effect":"Idempotent"},"strict":{"echo":true,"inputSchema":{"type":"object","required":["a"]}}}`
)

// spoken is a model whose answers are known before.
type spoken struct {
	answers []loop.ModelAnswer
	n       int
}

// Ask implements loop.Model.
func (s *spoken) Ask(context.Context, loop.ModelRequest) (loop.ModelAnswer, error) {
	s.n++
	return s.answers[s.n-1], nil
}

// asking is an answer with native calls, each a name and its arguments.
func asking(pairs ...string) loop.ModelAnswer {
	a := loop.ModelAnswer{Attempts: 1, FinishReason: "tool_calls"}
	for ; len(pairs) > 1; pairs = pairs[2:] {
		a.ToolCalls = append(a.ToolCalls, contract.ModelToolCall{Name: pairs[0], Arguments: pairs[1]})
	}
	return a
}

func saying(text string) loop.ModelAnswer {
	return loop.ModelAnswer{Text: &text, FinishReason: "stop", Attempts: 1}
}

func quoted(source string) string {
	b, _ := json.Marshal(source) // of a string
	return string(b)
}

// lived are the events of a run of the shop, without seals.
func lived(t *testing.T, edit func(*contract.Bundle), answers ...loop.ModelAnswer) []contract.Event {
	t.Helper()
	stubs, err := stub.Parse([]byte(shopTools))
	if err != nil {
		t.Fatal(err)
	}
	tools := stub.New(stubs).List
	for i := range tools {
		tools[i].Direct = true
	}
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	b := contract.Bundle{
		Run:   contract.RunRef{Namespace: "team-a", Name: "r", UID: talkOf.RunUID, Generation: talkOf.Generation},
		Input: json.RawMessage(`{"sku":"bolt-m8"}`), Limits: contract.DefaultLimits(),
	}
	edit(&b)
	b.SourceDigest = contract.Digest([]byte(b.Source))
	e := loop.NewEvents(io.Discard, now)
	e.Record(talkOf)
	err = inSandbox(t.Context(), contract.DefaultLimits(), func(r replay.Replayer) error {
		loop.Run(t.Context(), loop.Config{Sandbox: r.Sandbox, Bundle: b, Tools: tools, Now: now, Events: e, Model: &spoken{answers: answers}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	packed, ref := e.Transcript()
	var events []contract.Event
	err = contract.VerifyTranscript(strings.NewReader(string(packed)), talkOf, *ref, func(_ []byte, x contract.Event) error {
		events = append(events, x)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func ofRecipe(b *contract.Bundle) {
	b.Source, b.Recipe = reorders, &contract.PinnedRecipe{Name: "reorder", ToolName: "reorder"}
	b.InputSchema = json.RawMessage(`{"type":"object","required":["sku"]}`)
}

func ofAgent(protocol contract.Protocol) func(*contract.Bundle) {
	return func(b *contract.Bundle) {
		b.Agent = &contract.PinnedAgent{Protocol: protocol, Finalize: contract.FinalizeDirect, Prompt: "Order what is missing.", MaxSteps: 6}
		if protocol == contract.ProtocolTools {
			b.Agent.Recipes = []contract.PinnedRecipeTool{{
				PinnedRecipe: contract.PinnedRecipe{Name: "reorder", ToolName: "reorder"}, Source: reorders, SourceDigest: contract.Digest([]byte(reorders)),
				InputSchema: json.RawMessage(`{"type":"object","required":["sku"]}`), Limits: contract.DefaultLimits(), Tools: []string{"lookup", "order"},
			}}
		}
	}
}

// shopped is the run of an agent that has every kind of program.
func shopped(t *testing.T) []contract.Event {
	return lived(t, ofAgent(contract.ProtocolTools),
		asking("lookup", `{"sku":"bolt-m8"}`, "run_code", `{"source":`+quoted(stumbles)+`}`),
		asking("run_code", `{"source":`+quoted(reorders)+`,"input":{ "sku": "bolt-m8" }}`, "reorder", `{"sku": "nut-m8"}`, "reorder", `{"SKU":1}`),
		saying("It is ordered."))
}

// coded is the run of an agent in the protocol Code.
func coded(t *testing.T) []contract.Event {
	turn := func(source string) loop.ModelAnswer {
		return saying(`{"type":"code","language":"javascript","code":` + quoted(source) + `}`)
	}
	return lived(t, ofAgent(contract.ProtocolCode), turn(stumbles), turn(reorders))
}

// changed are the events after one change of the n-th event that it takes.
func changed(events []contract.Event, n int, change func(*contract.Event, *contract.EventContent) bool) []contract.Event {
	var out []contract.Event
	for _, e := range events {
		e.Hash, e.N = "", 0
		if e.Content != nil {
			c := *e.Content
			e.Content = &c
			if n > 0 && change(&e, &c) {
				n--
			}
		}
		out = append(out, e)
	}
	return out
}

// TestReplayText holds what a person is shown to testdata/replay-*.txt.
func TestReplayText(t *testing.T) {
	edited := strings.Replace(reorders, "20 -", "21 -", 1)
	tests := map[string]struct {
		events   func(t *testing.T) []contract.Event
		files    map[string]string
		args     []string
		wantCode int
	}{
		"recipe": {events: func(t *testing.T) []contract.Event { return lived(t, ofRecipe) }},
		"agent":  {events: shopped},
		"code":   {events: coded},
		"source": {wantCode: exitFailed, events: func(t *testing.T) []contract.Event {
			return changed(shopped(t), 1, func(_ *contract.Event, c *contract.EventContent) bool {
				if c.Source != reorders {
					return false
				}
				c.Source, c.SourceDigest = edited, contract.Digest([]byte(edited))
				return true
			})
		}},
		"result": {wantCode: exitFailed, events: func(t *testing.T) []contract.Event {
			return changed(lived(t, ofRecipe), 1, func(e *contract.Event, c *contract.EventContent) bool {
				if e.Tool == "order" && c.Result != nil {
					c.Result = json.RawMessage(`{"id":"order-0002"}`)
					return true
				}
				return false
			})
		}},
		"omitted": {wantCode: exitUsage, events: func(t *testing.T) []contract.Event {
			return changed(shopped(t), 1, func(e *contract.Event, c *contract.EventContent) bool {
				if e.Step == 2 && c.Result != nil {
					*c = *c.Bare()
					return true
				}
				return false
			})
		}},
		"cut":       {wantCode: exitUsage, events: func(t *testing.T) []contract.Event { e := shopped(t); return e[:len(e)-9] }},
		"with":      {wantCode: exitFailed, args: []string{"--with", "reorder"}, events: shopped},
		"with-same": {args: []string{"--with", "reorder"}, events: func(t *testing.T) []contract.Event { return lived(t, ofRecipe) }},
	}
	manifest := "version = 1\nname = \"reorder\"\ndescription = \"Orders.\"\ntools = [\"lookup\", \"order\"]\n"
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			home, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			lines, _ := sealed(t, tc.events(t))
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "reorder"), 0o700); err != nil {
				t.Fatal(err)
			}
			source := reorders
			if name == "with" {
				source = edited
			}
			for file, text := range map[string]string{"recipe.toml": manifest, "main.js": source} {
				if err := os.WriteFile(filepath.Join(dir, "reorder", file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := append([]string{"replay", "-"}, tc.args...)
			if len(tc.args) > 0 {
				args[3] = filepath.Join(dir, "reorder")
			}
			code, out, errs := command(t, nil, strings.Join(lines, ""), args...)
			if code != tc.wantCode {
				t.Errorf("code %d, %s", code, errs)
			}
			said := strings.ReplaceAll(out, dir+"/", "")
			code, out, _ = command(t, map[string]string{"t.gz": zipped(t, strings.Join(lines, ""))}, "", append(append([]string{"replay", "t.gz"}, args[2:]...), "-o", "json")...)
			if code != tc.wantCode || !json.Valid([]byte(out)) {
				t.Errorf("as JSON: code %d, %s", code, out)
			}
			t.Chdir(home)
			golden(t, "replay-"+name+".txt", "", said)
		})
	}
}

// TestReplayRefuses has what is not replayed at all.
func TestReplayRefuses(t *testing.T) {
	lines, ref := sealed(t, lived(t, ofRecipe))
	all := strings.Join(lines, "")
	none, err := contract.Event{Type: contract.EventExecutionStarted}.Line()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		text string
		args []string
		want string
	}{
		"edited":                  {text: strings.Replace(all, `"tool":"order"`, `"tool":"pay"`, 1), want: "does not hold"},
		"cut, with the last hash": {text: strings.Join(lines[:3], ""), args: []string{"--last-hash", ref.LastHash}, want: "record 3 of the transcript does not hold"},
		"without a beginning":     {text: strings.Join(lines[1:], ""), want: "record 1 of the transcript does not hold"},
		"transcript: None":        {text: string(none), want: "transcript: None"},
		"no recipe of it":         {text: all, args: []string{"--with", "."}, want: "no program of the run"},
		"step alone":              {text: all, args: []string{"--step", "1"}, want: "for --with"},
		"another output":          {text: all, args: []string{"-o", "xml"}, want: "want text or json"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			code, out, errs := command(t, map[string]string{"t": tc.text}, "", append([]string{"replay", "t"}, tc.args...)...)
			if code != exitUsage || out != "" || !strings.Contains(errs, tc.want) {
				t.Errorf("code %d, %s%s", code, out, errs)
			}
		})
	}
}
