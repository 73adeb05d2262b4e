package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// answering is a tool that gives one answer.
type answering string

func (a answering) Call(context.Context, broker.Request) (broker.Answer, error) {
	return broker.Answer{Body: []byte(a), Bytes: int64(len(a))}, nil
}

// TestHugeResult: an answer that the program may see and the transcript may not is
// named with its size and its digest, and no reason to leave out what follows.
func TestHugeResult(t *testing.T) {
	huge := `"` + strings.Repeat("h", contract.MaxContentBytes) + `"`
	c, _ := agentConfig(answers(code("call huge"), final))
	c.Tools = append(c.Tools, broker.Tool{PinnedTool: contract.PinnedTool{Tool: contract.Tool{Name: "huge", Effect: contract.EffectReadOnly}}, Backend: answering(huge)})
	c.Bundle.Run, c.Bundle.Limits.OutputBytes = recordedBundle.Run, 1<<20
	c.Events = recording()
	if o := Run(t.Context(), c); o.Fault != nil || len(o.Value) != len(huge) {
		t.Fatalf("%d bytes, %v", len(o.Value), o.Fault)
	}
	events, ref := kept(t, c.Events)
	fields := map[contract.EventType]string{}
	for _, x := range events {
		if x.Content == nil {
			continue
		}
		for _, o := range x.Content.Omitted {
			fields[x.Type] += o.Field
			if o.Bytes != int64(len(huge)) || o.Digest != contract.Digest([]byte(huge)) || o.Kept != 0 {
				t.Errorf("%s: %+v", x.Type, o)
			}
		}
	}
	if ref.Truncated || fields[contract.EventCall] != "result" || fields[contract.EventFinal] != "output" {
		t.Errorf("left out: %v, truncated: %t", fields, ref.Truncated)
	}
}

// TestNoTranscript runs an agent whose every word has the canary, and looks for it:
// with a transcript it is in every kind of content, without one it is nowhere.
func TestNoTranscript(t *testing.T) {
	const canary = "hunter2"
	for _, kept := range []contract.Transcript{contract.TranscriptFull, contract.TranscriptNone} {
		t.Run(string(kept), func(t *testing.T) {
			text := code(canary)
			c, _ := agentConfig(func(_ context.Context, _ int, r ModelRequest) (ModelAnswer, error) {
				if r.Delta != nil {
					r.Delta(strings.Repeat(canary, deltaBytes), strings.Repeat(canary, deltaBytes))
				}
				return ModelAnswer{Text: &text, Reasoning: canary, FinishReason: "stop", Attempts: 1}, nil
			})
			c.Sandbox = executor(func(ctx context.Context, _ sandbox.Program, caller sandbox.Caller) (sandbox.Result, error) {
				v, err := caller.Call(ctx, "say", json.RawMessage(`{"x":"`+canary+`"}`))
				if err != nil {
					return sandbox.Result{}, err
				}
				_, _ = caller.Call(ctx, canary, json.RawMessage(`{}`))
				return sandbox.Result{Value: v}, nil
			})
			c.Tools = []broker.Tool{{PinnedTool: contract.PinnedTool{Tool: contract.Tool{Name: "say", Effect: contract.EffectReadOnly}}, Backend: answering(`"` + canary + `"`)}}
			c.Bundle.Agent.Prompt, c.Bundle.Input = canary, json.RawMessage(`"`+canary+`"`)
			c.Bundle.Transcript = kept
			var out bytes.Buffer
			c.Events = NewEvents(&out, c.Now)
			if kept != contract.TranscriptNone {
				c.Events.Record(recordedOrigin)
			}
			Run(t.Context(), c)
			packed, ref := c.Events.Transcript()
			var deltas, contents int
			for line := range strings.Lines(out.String()) {
				var x contract.Event
				if err := json.Unmarshal([]byte(line), &x); err != nil {
					t.Fatal(err)
				}
				if x.Type == contract.EventModelDelta {
					deltas++
				}
				if x.Content != nil {
					contents++
				}
				// The name of a tool that is not there is the program's own word, and no content.
				x.Tool = ""
				if bare, _ := x.Line(); kept == contract.TranscriptNone && bytes.Contains(bare, []byte(canary)) {
					t.Errorf("event %s", line)
				}
			}
			if some := kept != contract.TranscriptNone; (ref != nil) != some || (len(packed) > 0) != some || (deltas > 0) != some || (contents > 0) != some {
				t.Errorf("%d deltas, %d contents, %d bytes packed", deltas, contents, len(packed))
			}
		})
	}
}

// gate is a stream that nobody reads before it is opened.
type gate struct {
	open chan struct{}
	w    io.Writer
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	return g.w.Write(p)
}

// TestSlowReader: a stream that nobody reads stops neither the run nor its
// transcript; what is missing on it is counted there.
func TestSlowReader(t *testing.T) {
	const events = 100
	var out bytes.Buffer
	g := &gate{open: make(chan struct{}), w: &out}
	e := NewEvents(g, clock())
	e.Record(recordedOrigin)
	done := make(chan struct{})
	go func() {
		defer close(done)
		large := json.RawMessage(`"` + strings.Repeat("x", contract.MaxContentBytes/2) + `"`)
		for range events {
			e.step(recordedBundle, result(large))
		}
		e.finished(recordedBundle, Outcome{Value: json.RawMessage("1")})
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("the run waits for its stream")
	}
	records, ref := kept(t, e)
	if len(records) != events+1 || ref.Truncated {
		t.Errorf("%d records", len(records))
	}
	close(g.open)
	e.live.flush()
	var lines int
	var dropped int64
	for line := range strings.Lines(out.String()) {
		var x contract.Event
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		if x.Type == contract.EventLinesDropped {
			dropped += x.Omitted.Records
			continue
		}
		lines++
	}
	if dropped == 0 || int64(lines)+dropped != events+1 {
		t.Errorf("%d lines, and %d dropped", lines, dropped)
	}
}
