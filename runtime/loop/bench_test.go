package loop

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// conversation is what an agent of 12 steps says: a prompt of some pages, programs,
// calls with rows of an inventory, and reasoning.
func conversation(b *testing.B) (events []contract.Event) {
	b.Helper()
	var pages []string
	for _, name := range []string{"agentrun.md", "toolgrant.md", "recipe.md"} {
		text, err := os.ReadFile("../../api/v1alpha1/" + name)
		if err != nil {
			b.Fatal(err)
		}
		pages = append(pages, string(text))
	}
	prose := strings.Join(pages, "\n")
	chaos := rand.NewChaCha8([32]byte{3})
	rows := func(n int) json.RawMessage {
		var out []string
		for i := range n {
			id := make([]byte, 8)
			_, _ = chaos.Read(id)
			out = append(out, fmt.Sprintf(`{"sku":"bolt-%d","id":"%s","count":%d,"place":"shelf %d"}`, i, hex.EncodeToString(id), chaos.Uint64()%5000, i%40))
		}
		return json.RawMessage("[" + strings.Join(out, ",") + "]")
	}
	add := func(t contract.EventType, c *contract.EventContent) {
		events = append(events, contract.Event{Type: t, Step: int64(len(events)/8 + 1), Tool: "lookup_stock", Content: c})
	}
	add(contract.EventModelRequested, &contract.EventContent{Messages: []contract.EventMessage{{Role: "system", Text: prose[:20_000]}}})
	for step := range 12 {
		at := 20_000 + step*2500
		add(contract.EventStepStarted, nil)
		add(contract.EventModelAnswered, &contract.EventContent{Text: code(prose[at : at+900]), Reasoning: prose[at+900 : at+2400]})
		add(contract.EventProgramStarted, &contract.EventContent{Source: prose[at : at+900], SourceDigest: contract.Digest([]byte(prose[at:]))})
		for range 5 {
			add(contract.EventCall, &contract.EventContent{Arguments: rows(1)})
			add(contract.EventCall, &contract.EventContent{Result: rows(40), ResultDigest: contract.Digest(rows(1))})
		}
		add(contract.EventProgramFinished, &contract.EventContent{Result: rows(10)})
		add(contract.EventModelRequested, &contract.EventContent{Messages: []contract.EventMessage{{Role: "user", Text: string(rows(10))}}})
	}
	return events
}

// BenchmarkRecorder packs a conversation at the levels of gzip.
func BenchmarkRecorder(b *testing.B) {
	events := conversation(b)
	for name, level := range map[string]int{"fastest": gzip.BestSpeed, "default": gzip.DefaultCompression} {
		b.Run(name, func(b *testing.B) {
			var r *recorder
			for b.Loop() {
				r = newRecorder(recordedOrigin)
				r.zip, _ = gzip.NewWriterLevel(&r.out, level)
				for _, e := range events {
					r.record(e, false)
				}
				r.close(contract.Event{})
			}
			b.ReportMetric(float64(r.text), "text-bytes")
			b.ReportMetric(float64(r.out.Len()), "packed-bytes")
		})
	}
}

// BenchmarkRecordedCalls runs a program of 64 calls with a result of 4 KiB each: with
// no events, with events without contents, and with a transcript.
func BenchmarkRecordedCalls(b *testing.B) {
	const calls = 64
	value := `"` + strings.Repeat("abcdefgh", 512) + `"`
	for name, kept := range map[string]contract.Transcript{"silent": "", "none": contract.TranscriptNone, "full": contract.TranscriptFull} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c, _ := agentConfig(nil)
				c.Bundle.Agent, c.Bundle.Transcript, c.Now = nil, kept, time.Now
				c.Tools = c.Tools[2:]
				c.Tools[0].Backend, c.Tools[0].MaxCalls = answering(value), calls
				c.Sandbox = executor(func(ctx context.Context, _ sandbox.Program, caller sandbox.Caller) (sandbox.Result, error) {
					for range calls {
						if _, err := caller.Call(ctx, "read", json.RawMessage(`{"sku":"bolt-m8"}`)); err != nil {
							return sandbox.Result{}, err
						}
					}
					return sandbox.Result{Value: json.RawMessage("1")}, nil
				})
				if kept != "" {
					c.Events = NewEvents(io.Discard, c.Now)
				}
				if kept == contract.TranscriptFull {
					c.Events.Record(recordedOrigin)
				}
				if o := Run(b.Context(), c); o.Fault != nil {
					b.Fatal(o.Fault)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*calls), "us/call")
		})
	}
}
