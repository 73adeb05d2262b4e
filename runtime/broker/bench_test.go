package broker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// answers is a backend that answers at once.
type answers string

func (a answers) Call(context.Context, broker.Request) (broker.Answer, error) {
	return broker.Answer{Body: []byte(a), Bytes: int64(len(a))}, nil
}

// BenchmarkCall compares one call of a tool through the broker and its HTTP
// backend with the same POST made by net/http alone, each on a connection of its
// own. The difference is what the broker costs.
func BenchmarkCall(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	defer s.Close()
	args := json.RawMessage(`{"amount":100,"to":"acme"}`)

	b.Run("plain", func(b *testing.B) {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		for b.Loop() {
			res, err := c.Post(s.URL, "application/json", bytes.NewReader(args))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadAll(res.Body); err != nil {
				b.Fatal(err)
			}
			_ = res.Body.Close()
		}
	})

	tool := httpTool(b, s.URL, contract.EffectReadOnly)
	plain, checked := tool, tool
	checked.Tool.InputSchema = json.RawMessage(`{"type":"object","required":["amount"],"properties":{"amount":{"type":"integer"},"to":{"type":"string"}}}`)
	checked.Tool.OutputSchema = json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}}}`)
	checked.Constraints = []contract.Constraint{{Expression: "args.amount <= 100"}}
	instant := checked
	instant.Backend = answers(`{"ok":true}`)
	for _, bm := range []struct {
		name  string
		tool  broker.Tool
		hooks []broker.Hook
	}{
		{"broker", plain, nil},
		{"broker-schemas-constraint-hook", checked, []broker.Hook{broker.Pass{}}},
		{"broker-alone", instant, []broker.Hook{broker.Pass{}}},
	} {
		b.Run(bm.name, func(b *testing.B) { benchCalls(b, bm.tool, bm.hooks, args) })
	}
}

// benchCalls makes calls by runs of 64, which is what a run may make.
func benchCalls(b *testing.B, tool broker.Tool, hooks []broker.Hook, args json.RawMessage) {
	fresh := func() *broker.Broker {
		br, err := broker.New(broker.Config{
			Run: contract.RunRef{UID: "u", Generation: 1}, Limits: contract.DefaultLimits(),
			Tools: []broker.Tool{tool}, Hooks: hooks, Now: time.Now, Observe: func(broker.Event) {},
		})
		if err != nil {
			b.Fatal(err)
		}
		return br
	}
	br, n := fresh(), int64(0)
	for b.Loop() {
		if n++; n > contract.DefaultLimits().Calls() {
			b.StopTimer()
			br, n = fresh(), 1
			b.StartTimer()
		}
		if _, err := br.Call(b.Context(), "pay", args); err != nil {
			b.Fatal(err)
		}
	}
}
