package agentloop

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
	"github.com/codeact-dev/codeact-operator/runtime/report"
	"github.com/codeact-dev/codeact-operator/runtime/report/reporttest"
	"github.com/codeact-dev/codeact-operator/runtime/run"
	"github.com/codeact-dev/codeact-operator/sandbox"
	"github.com/codeact-dev/codeact-operator/test/modelserver/script"
	"github.com/codeact-dev/codeact-operator/test/replaytest"
	"github.com/codeact-dev/codeact-operator/test/toolserver/tools"
)

// cache is compiled once for all tests.
var cache = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "codeact-cache-")
	if err != nil {
		return "", err
	}
	return dir, sandbox.Precompile(context.Background(), dir)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := cache(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// world is everything around one run: its model, its tools, and the API server.
type world struct {
	t      *testing.T
	model  *script.Server
	tools  string // their URL
	bundle contract.Bundle
	creds  egress.Credentials
	// decision is somebody's answer to every call that waits.
	decision contract.Decision
	events   bytes.Buffer
	log      bytes.Buffer
}

// scripted is the name of the script, and of the model.
const scripted = "scripted"

// newWorld serves the tools lookup, order and charge. The last one breaks down
// when it was told what to do.
func newWorld(t *testing.T, api contract.ModelAPI, s script.Script) *world {
	t.Helper()
	w := &world{t: t, model: script.New(script.Config{})}
	w.model.Play(scripted, s)
	model, tool := httptest.NewServer(w.model), httptest.NewServer(tools.New(tools.Config{}))
	t.Cleanup(model.Close)
	t.Cleanup(tool.Close)
	w.tools = tool.URL
	w.bundle = contract.Bundle{
		Run:   contract.RunRef{Namespace: "team-a", Name: "r", UID: "u", Generation: 1},
		Input: json.RawMessage(`{"sku":"bolt-m8"}`), Limits: contract.DefaultLimits(), TimeoutMs: 60_000,
		SourceDigest: contract.Digest(nil), Operator: contract.OperatorPolicy{AllowLoopback: true},
		CodeAct: contract.Switch{Enabled: true, From: contract.LayerOperator}, Recipes: contract.Switch{Enabled: true, From: contract.LayerOperator},
		Agent: &contract.PinnedAgent{
			Protocol: contract.ProtocolCode, Finalize: contract.FinalizeDirect, Prompt: "Order what is missing.", MaxSteps: 6,
			Model: contract.PinnedModel{
				Tool: scripted, URL: model.URL + "/s/" + scripted + "/v1", Model: scripted, API: api, TimeoutMs: 20_000,
				Auth: contract.Auth{Type: contract.AuthNone}, Retry: &contract.Retry{Attempts: 3, BackoffMs: 1},
			},
		},
	}
	w.offer("/lookup", contract.Tool{
		Name: "lookup", Effect: contract.EffectReadOnly, Description: "Tells how many pieces of one article are in stock, as {sku, stock}.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"sku":{"type":"string"}},"required":["sku"],"additionalProperties":false}`),
	})
	w.offer("/order", contract.Tool{
		Name: "order", Effect: contract.EffectIdempotent, Description: "Orders some pieces of one article and returns the order, as {id, …}.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"sku":{"type":"string"},"quantity":{"type":"integer"}},"required":["sku","quantity"]}`),
	})
	w.offer("/fail?status=500", contract.Tool{Name: "charge", Effect: contract.EffectEffectful})
	return w
}

func (w *world) offer(path string, tool contract.Tool) {
	w.t.Helper()
	tool = tool.Defaulted()
	digest, err := tool.Digest()
	if err != nil {
		w.t.Fatal(err)
	}
	w.bundle.Tools = append(w.bundle.Tools, contract.PinnedTool{
		Tool: tool, Digest: digest, TimeoutMs: 20_000, Backend: contract.Backend{HTTP: &contract.HTTPBackend{URL: w.tools + path}},
	})
}

// run lives through the runtime's whole process and returns the verified report.
func (w *world) run() contract.Execution {
	w.t.Helper()
	dir, err := cache()
	if err != nil {
		w.t.Fatal(err)
	}
	raw, digest, err := w.bundle.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(w.t.TempDir(), contract.BundleKey)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		w.t.Fatal(err)
	}
	api := reporttest.New(w.t, reporttest.Run{
		Namespace: "team-a", Name: "r", UID: "u", Spec: map[string]any{}, ExecutionGeneration: 1, PodName: "pod", PinnedDigest: digest,
	})
	api.Intercept(func(http.ResponseWriter, *http.Request, int) bool { w.decide(api); return false })
	code := run.Run(w.t.Context(), run.Config{
		BundlePath: path, BundleDigest: digest, Pod: report.Pod{Name: "pod", UID: "pod-uid"},
		TerminationPath: path + ".end", CacheDir: dir, API: func() (*rest.Config, error) { return api.Config(), nil },
		Events: &w.events, Log: &w.log, Now: time.Now, ReportFor: 10 * time.Second, Credentials: w.creds,
		Client: func(c *report.Config) { c.LookEvery = time.Millisecond },
	})
	writes := api.Writes()
	if len(writes) == 0 {
		w.t.Fatalf("exit code %d, and nothing was reported: %s", code, w.log.String())
	}
	e := writes[len(writes)-1]
	if err := e.Verify(contract.Expected{RunUID: "u", Generation: 1, BundleDigest: digest}); err != nil {
		w.t.Fatal(err)
	}
	if (code == run.ExitSucceeded) != (e.Result == contract.ResultSucceeded) {
		w.t.Errorf("exit code %d with the result %s", code, e.Result)
	}
	return e
}

// engine executes what is replayed.
var engine = sync.OnceValues(func() (*sandbox.Engine, error) {
	dir, err := cache()
	if err != nil {
		return nil, err
	}
	return sandbox.New(context.Background(), sandbox.Options{CacheDir: dir})
})

// wantReplayed replays the run from the lines that it has written.
func (w *world) wantReplayed(calls int) {
	w.t.Helper()
	e, err := engine()
	if err != nil {
		w.t.Fatal(err)
	}
	var lines bytes.Buffer
	for line := range strings.Lines(w.events.String()) {
		if strings.Contains(line, `"hash":`) {
			lines.WriteString(line)
		}
	}
	rec := replaytest.Read(w.t, &lines)
	replaytest.Check(w.t, e, rec)
	of := rec.Direct
	for _, p := range rec.Programs {
		of += len(p.Calls)
	}
	if of != calls {
		w.t.Errorf("the record has %d calls, want %d", of, calls)
	}
}

// decide answers what the last report says is waiting.
func (w *world) decide(api *reporttest.API) {
	writes := api.Writes()
	if len(writes) == 0 || w.decision == "" {
		return
	}
	list := []any{}
	for _, p := range writes[len(writes)-1].Pending {
		list = append(list, map[string]any{"id": p.ID, "decision": string(w.decision), "by": "ann"})
	}
	if len(list) > 0 {
		api.Change(func(r *reporttest.Run) { r.Spec = map[string]any{"resolutions": list} })
	}
}

// heard is the last message of each request that a turn was played to, cut behind
// its first word, with the number of messages.
func (w *world) heard() (out []string) {
	w.t.Helper()
	for _, r := range w.model.Log(scripted) {
		if r.Turn == 0 {
			continue // refused before it was heard
		}
		if r.Problem != "" {
			w.t.Errorf("request %d: %s", len(out), r.Problem)
		}
		var body struct {
			Messages, Input []struct{ Role, Content, Output string }
		}
		if err := json.Unmarshal(r.Body, &body); err != nil {
			w.t.Fatalf("%v: %s", err, r.Body)
		}
		list := append(body.Messages, body.Input...)
		last := list[len(list)-1]
		word, _, _ := strings.Cut(last.Content+last.Output, " ")
		if strings.HasPrefix(word, `{"result":`) {
			word = "result"
		}
		out = append(out, word)
	}
	return out
}

// asked are the paths that the tools were called at.
func (w *world) asked() (out []string) {
	w.t.Helper()
	r, err := http.Get(w.tools + "/log")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	var list []tools.Received
	if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
		w.t.Fatal(err)
	}
	for _, x := range list {
		out = append(out, x.Path+" "+x.Arguments)
	}
	return out
}

// types are the types of the events, without those of the start and the end.
func (w *world) types() (out []string) {
	w.t.Helper()
	for line := range strings.Lines(w.events.String()) {
		var e contract.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, string(e.Type))
	}
	return out
}
