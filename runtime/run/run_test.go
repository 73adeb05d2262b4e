package run

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/report"
	"github.com/codeact-dev/codeact-operator/runtime/report/reporttest"
	"github.com/codeact-dev/codeact-operator/sandbox"
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

// pod is one runtime pod with its API server and its tool.
type pod struct {
	t        *testing.T
	api      *reporttest.API
	bundle   contract.Bundle
	raw      []byte
	digest   string
	dir      string
	stop     chan struct{}
	events   bytes.Buffer
	log      bytes.Buffer
	toolHits chan string // one entry for each request of the tool, its idempotency key
}

// newPod makes a pod that runs source with one tool "pay".
func newPod(t *testing.T, source string, effect contract.Effect, tool http.HandlerFunc) *pod {
	t.Helper()
	p := &pod{t: t, dir: t.TempDir(), stop: make(chan struct{}), toolHits: make(chan string, 100)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		p.toolHits <- r.Header.Get("Idempotency-Key")
		tool(w, r)
	}))
	t.Cleanup(s.Close)
	pay := contract.Tool{Name: "pay", Effect: effect}.Defaulted()
	digest, err := pay.Digest()
	if err != nil {
		t.Fatal(err)
	}
	p.bundle = contract.Bundle{
		Run:    contract.RunRef{Namespace: "team-a", Name: "r", UID: "u", Generation: 2},
		Source: source, SourceDigest: contract.Digest([]byte(source)), Limits: contract.DefaultLimits(), TimeoutMs: 60_000,
		Operator: contract.OperatorPolicy{AllowLoopback: true},
		CodeAct:  contract.Switch{Enabled: true, From: contract.LayerOperator},
		Tools:    []contract.PinnedTool{{Tool: pay, Digest: digest, Backend: contract.Backend{HTTP: &contract.HTTPBackend{URL: s.URL}}, TimeoutMs: 30_000}},
	}
	p.pin()
	return p
}

// pin writes the bundle anew, after a test changed it.
func (p *pod) pin() {
	p.t.Helper()
	var err error
	if p.raw, p.digest, err = p.bundle.Encode(); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.file(contract.BundleKey), p.raw, 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.api = reporttest.New(p.t, reporttest.Run{
		Namespace: "team-a", Name: "r", UID: "u", Spec: map[string]any{"input": 1},
		ExecutionGeneration: 2, PodName: "pod", PinnedDigest: p.digest,
	})
}

func (p *pod) file(name string) string { return filepath.Join(p.dir, name) }

func (p *pod) run(change ...func(*Config)) int {
	p.t.Helper()
	dir, err := cache()
	if err != nil {
		p.t.Fatal(err)
	}
	c := Config{
		BundlePath: p.file(contract.BundleKey), BundleDigest: p.digest, Pod: report.Pod{Name: "pod", UID: "pod-uid"},
		TerminationPath: p.file("termination"), CacheDir: dir,
		API:    func() (*rest.Config, error) { return p.api.Config(), nil },
		Events: &p.events, Log: &p.log, Now: time.Now, Stop: p.stop, ReportFor: 10 * time.Second,
		Client: func(c *report.Config) {
			c.FirstWait, c.ClaimFor, c.WriteFor, c.RefusedFor = 2*time.Millisecond, 3*time.Second, time.Second, 100*time.Millisecond
		},
	}
	for _, f := range change {
		f(&c)
	}
	return Run(p.t.Context(), c)
}

// message returns the termination message as a report that was verified.
func (p *pod) message() *contract.Execution {
	p.t.Helper()
	b, err := os.ReadFile(p.file("termination"))
	if err != nil {
		p.t.Fatal(err)
	}
	e, err := contract.ParseTermination(b)
	if err != nil {
		p.t.Fatalf("%v: %s", err, b)
	}
	if err := e.Verify(contract.Expected{RunUID: "u", Generation: 2, BundleDigest: p.digest}); err != nil {
		p.t.Fatal(err)
	}
	return e
}

// last returns the last report that the API server took, verified.
func (p *pod) last() contract.Execution {
	p.t.Helper()
	w := p.api.Writes()
	if len(w) == 0 {
		p.t.Fatalf("nothing was written; log %s", p.log.String())
	}
	e := w[len(w)-1]
	if err := e.Verify(contract.Expected{RunUID: "u", Generation: 2, BundleDigest: p.digest}); err != nil {
		p.t.Fatal(err)
	}
	return e
}

func (p *pod) wantFailed(code int, want contract.Reason) {
	p.t.Helper()
	e := p.last()
	if code != ExitFailed || e.Result != contract.ResultFailed || e.Error.Reason != want {
		p.t.Errorf("exit code %d, report %+v, error %+v, want %s; log %s", code, e, e.Error, want, p.log.String())
	}
	if m := p.message(); m.Error == nil || m.Error.Reason != want {
		p.t.Errorf("termination message %+v, want %s", m, want)
	}
}

func states(calls []contract.Call) []string {
	out := []string{}
	for _, c := range calls {
		out = append(out, strings.TrimSpace(c.ID+" "+string(c.State)+" "+string(c.Reason)))
	}
	return out
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// never answers until its client leaves.
func never(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

const paysOnce = `function main(){return {paid:tools.call("pay",{n:1})}}`

func TestSuccess(t *testing.T) {
	p := newPod(t, paysOnce, contract.EffectEffectful, says("7"))
	if code := p.run(); code != ExitSucceeded {
		t.Errorf("exit code %d, log %s", code, p.log.String())
	}
	var got []string
	for _, e := range p.api.Writes() {
		if e.Claim.PodUID != "pod-uid" || e.BundleDigest != p.digest {
			t.Errorf("report %+v", e)
		}
		got = append(got, string(e.Result)+" "+strings.Join(states(e.Calls), ","))
	}
	want := []string{" ", " u:2:1 Dispatched", " u:2:1 Completed", "Succeeded u:2:1 Completed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if e := p.last(); e.Output != `{"paid":7}` || e.Usage.ChildCalls != 1 || e.Usage.HeapBytes == 0 || e.CompletionTime == "" {
		t.Errorf("report %+v", e)
	}
	if diff := cmp.Diff(p.last(), *p.message()); diff != "" {
		t.Errorf("report and termination message (-report +message):\n%s", diff)
	}
	if n := strings.Count(p.events.String(), "\n"); n != 4 {
		t.Errorf("events:\n%s", p.events.String())
	}
}

func TestProgramFails(t *testing.T) {
	p := newPod(t, "function main(){\n  throw new Error('no')\n}", contract.EffectReadOnly, says("1"))
	p.wantFailed(p.run(), contract.ReasonJavaScriptError)
	if e := p.last().Error; e.Line != 2 || !strings.Contains(e.Message, "no") {
		t.Errorf("error %+v", e)
	}
}

func TestNotClaimed(t *testing.T) {
	tests := map[string]struct {
		change func(*pod, *Config)
		want   string
		asked  bool // the API server
	}{
		"another digest":    {func(_ *pod, c *Config) { c.BundleDigest = contract.Digest([]byte("x")) }, "DigestMismatch", false},
		"no digest":         {func(_ *pod, c *Config) { c.BundleDigest = "" }, "DigestMismatch", false},
		"no bundle":         {func(p *pod, c *Config) { c.BundlePath = p.file("absent") }, "bundle", false},
		"a changed bundle":  {func(p *pod, _ *Config) { p.spoil() }, "DigestMismatch", false},
		"no pod UID":        {func(_ *pod, c *Config) { c.Pod.UID = "" }, contract.EnvPodUID, false},
		"no way to the API": {func(_ *pod, c *Config) { c.API = func() (*rest.Config, error) { return nil, io.EOF } }, "EOF", false},
		"another pod's claim": {func(p *pod, _ *Config) {
			p.api.Change(func(r *reporttest.Run) {
				r.Execution = &contract.Execution{Generation: 2, RunUID: "u", Claim: contract.Claim{PodName: "pod", PodUID: "other"}}
			})
		}, "has the claim", true},
		"stopped meanwhile": {func(p *pod, _ *Config) {
			p.api.Change(func(r *reporttest.Run) { r.PodName = "" })
			close(p.stop)
		}, "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, paysOnce, contract.EffectReadOnly, says("1"))
			if code := p.run(func(c *Config) { tc.change(p, c) }); code != ExitNotClaimed {
				t.Errorf("exit code %d", code)
			}
			text, err := os.ReadFile(p.file("termination"))
			if err != nil || !strings.HasPrefix(string(text), "codeact-runtime: ") || !strings.Contains(string(text), tc.want) {
				t.Errorf("termination message %q, %v", text, err)
			}
			if _, err := contract.ParseTermination(text); err == nil {
				t.Error("the termination message is a report")
			}
			if len(p.api.Writes()) != 0 || len(p.toolHits) != 0 || tc.asked && p.api.Count("GET") == 0 {
				t.Errorf("%d writes, %d requests of the tool", len(p.api.Writes()), len(p.toolHits))
			}
		})
	}
}

func (p *pod) spoil() {
	raw := bytes.Replace(p.raw, []byte("paid"), []byte("prey"), 1)
	if err := os.WriteFile(p.file(contract.BundleKey), raw, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// TestStop stops the pod while a tool is busy.
func TestStop(t *testing.T) {
	tests := map[string]struct {
		effect contract.Effect
		change func(*reporttest.Run)
		want   contract.Reason
		calls  []string
	}{
		"node drain, harmless call": {contract.EffectReadOnly, func(*reporttest.Run) {}, contract.ReasonInterrupted, []string{"u:2:1 Failed Interrupted"}},
		"node drain":                {contract.EffectEffectful, func(*reporttest.Run) {}, contract.ReasonEffectsAmbiguous, []string{"u:2:1 Uncertain Interrupted"}},
		"cancelled":                 {contract.EffectEffectful, func(r *reporttest.Run) { r.Spec["cancel"] = true }, contract.ReasonCancelled, []string{"u:2:1 Uncertain Cancelled"}},
		"deleted":                   {contract.EffectReadOnly, func(r *reporttest.Run) { r.Deleting = true }, contract.ReasonCancelled, []string{"u:2:1 Failed Cancelled"}},
		"edited":                    {contract.EffectIdempotent, func(r *reporttest.Run) { r.Spec["input"] = 2 }, contract.ReasonSuperseded, []string{"u:2:1 Uncertain Superseded"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, `function main(){try{tools.call("pay",{})}catch(e){}return 1}`, tc.effect, never)
			go func() {
				<-p.toolHits
				p.api.Change(tc.change)
				close(p.stop)
			}()
			p.wantFailed(p.run(), tc.want)
			if diff := cmp.Diff(tc.calls, states(p.last().Calls)); diff != "" {
				t.Errorf("journal (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunTimeout(t *testing.T) {
	p := newPod(t, `function main(){for(;;);}`, contract.EffectReadOnly, says("1"))
	p.bundle.TimeoutMs = 300
	p.pin()
	p.wantFailed(p.run(), contract.ReasonDeadlineExceeded)
}

func TestWallClock(t *testing.T) {
	p := newPod(t, `function main(){for(;;);}`, contract.EffectReadOnly, says("1"))
	p.bundle.Limits.WallClockMs = 100
	p.pin()
	p.wantFailed(p.run(), contract.ReasonTimeout)
}

// TestUnreachableAPI loses the API server at some point of the run.
func TestUnreachableAPI(t *testing.T) {
	tests := map[string]struct {
		from     int // the first PATCH that fails
		wantCode int
		want     contract.Reason
		hits     int
	}{
		"for the intent":  {2, ExitFailed, contract.ReasonBrokerUnavailable, 0},
		"for the outcome": {3, ExitFailed, contract.ReasonBrokerUnavailable, 1},
		"for the report":  {4, ExitSucceeded, "", 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, paysOnce, contract.EffectEffectful, says("7"))
			p.api.Intercept(func(_ http.ResponseWriter, r *http.Request, n int) bool {
				if r.Method == "PATCH" && n >= tc.from {
					panic(http.ErrAbortHandler)
				}
				return false
			})
			code := p.run(func(c *Config) { c.ReportFor = 200 * time.Millisecond })
			e := p.message()
			var got contract.Reason
			if e.Error != nil {
				got = e.Error.Reason
			}
			if code != tc.wantCode || got != tc.want || len(p.toolHits) != tc.hits {
				t.Errorf("exit code %d, reason %q, %d requests of the tool", code, got, len(p.toolHits))
			}
			if !strings.Contains(p.log.String(), "status.execution") {
				t.Errorf("log %q", p.log.String())
			}
		})
	}
}

func TestStopEndsTheReport(t *testing.T) {
	p := newPod(t, `function main(){return 1}`, contract.EffectReadOnly, says("1"))
	p.api.Intercept(func(w http.ResponseWriter, r *http.Request, n int) bool {
		if r.Method == "PATCH" && n > 1 {
			if n == 2 {
				close(p.stop)
			}
			reporttest.Fail(w, 503, "ServiceUnavailable")
			return true
		}
		return false
	})
	start := time.Now()
	code := p.run(func(c *Config) { c.GraceFor, c.ReportFor = 50*time.Millisecond, time.Hour })
	if d := time.Since(start); code != ExitSucceeded || d > 20*time.Second {
		t.Errorf("exit code %d after %s", code, d)
	}
	if e := p.message(); e.Result != contract.ResultSucceeded {
		t.Errorf("termination message %+v", e)
	}
}

func TestBrokenBackendIsReported(t *testing.T) {
	p := newPod(t, paysOnce, contract.EffectReadOnly, says("1"))
	p.bundle.Tools[0].Backend = contract.Backend{}
	p.pin()
	p.wantFailed(p.run(), contract.ReasonBrokerUnavailable)
}

func TestDamagedCacheIsNoHarm(t *testing.T) {
	p := newPod(t, `function main(){return 1}`, contract.EffectReadOnly, says("1"))
	if code := p.run(func(c *Config) { c.CacheDir = p.file("absent") }); code != ExitSucceeded {
		t.Errorf("exit code %d, log %s", code, p.log.String())
	}
}
