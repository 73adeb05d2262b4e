package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// everything starts @modelcontextprotocol/server-everything on a free port, which
// nobody here wrote, and returns its endpoint. CODEACT_MCP_SERVERS names the
// folder that it is installed in: make test sets it, and fails when it cannot.
func everything(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("CODEACT_MCP_SERVERS")
	if dir == "" {
		t.Skip("CODEACT_MCP_SERVERS is not set: make test sets it")
	}
	main := filepath.Join(dir, "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
	if _, err := os.Stat(main); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	c := exec.Command("node", main, "streamableHttp")
	c.Env = []string{"PATH=" + os.Getenv("PATH"), fmt.Sprintf("PORT=%d", port)}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	url := fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
	end := time.Now().Add(30 * time.Second)
	for {
		res, err := http.Get(url) //nolint:noctx // a test's own look at its server
		if err == nil {
			_ = res.Body.Close()
			return url
		}
		if time.Now().After(end) {
			t.Fatalf("the server does not listen: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// declaredBy has the pinned declarations taken from the server, as an author who
// reads tools/list does.
func declaredBy(t *testing.T, url string) map[string]Declaration {
	t.Helper()
	all := sessionsOf(t, bundle(), nil)
	p := pinned(url, "echo")
	s, tools, f := backendOf(t, all, p).slot.ready(within(t, 10*time.Second))
	if f != nil {
		t.Fatal(f)
	}
	t.Logf("%d tools, protocol %s, server %s %s", len(tools), s.sdk.InitializeResult().ProtocolVersion,
		s.sdk.InitializeResult().ServerInfo.Name, s.sdk.InitializeResult().ServerInfo.Version)
	return tools
}

func TestEverything(t *testing.T) {
	url := everything(t)
	tools := declaredBy(t, url)
	of := func(url, name string, e contract.Effect) contract.PinnedTool {
		d, ok := tools[name]
		if !ok {
			t.Fatalf("the server has no tool %s", name)
		}
		p := pinned(url, name, effect(e))
		p.Tool.Description, p.Tool.InputSchema, p.Tool.OutputSchema = d.Description, d.InputSchema, d.OutputSchema
		return p
	}
	w := newWire(t, "http://"+strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp"))
	at := w.url() + "/mcp"
	all := sessionsOf(t, bundle(), nil)
	call := func(t *testing.T, name, args string, e contract.Effect) (broker.Answer, error) {
		t.Helper()
		p := of(at, name, e)
		return backendOf(t, all, p).Call(within(t, 10*time.Second), request(p, args))
	}

	t.Run("values", func(t *testing.T) {
		tests := map[string]struct{ tool, args, want string }{
			"a text":              {"echo", `{"message":"héllo"}`, `"Echo: héllo"`},
			"two texts, one pic":  {"get-tiny-image", `{}`, `["Here's the image you requested:","The image above is the MCP logo."]`},
			"structured":          {"get-structured-content", `{"location":"New York"}`, `{"temperature":33,"conditions":"Cloudy","humidity":82}`},
			"a sum":               {"get-sum", `{"a":2,"b":40}`, `"The sum of 2 and 40 is 42."`},
			"links are not shown": {"get-resource-links", `{"count":1}`, `"Here are 1 resource links to resources available in this server:"`},
		}
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				ans, err := call(t, tc.tool, tc.args, contract.EffectReadOnly)
				if err != nil || string(ans.Body) != tc.want || ans.Media != nil {
					t.Errorf("answer %s, media %v, error %v", ans.Body, ans.Media, err)
				}
			})
		}
	})
	t.Run("arguments that the server refuses", func(t *testing.T) {
		_, err := call(t, "get-sum", `{"a":"two"}`, contract.EffectEffectful)
		if f := failureOf(t, err); f.Proof != broker.Answered || !strings.Contains(f.Message, "nvalid") {
			t.Errorf("%+v", f)
		}
	})
	t.Run("drift", func(t *testing.T) {
		p := of(at, "echo", contract.EffectReadOnly)
		p.Tool.InputSchema = json.RawMessage(`{"type":"object"}`)
		if f := failureOf(t, second(backendOf(t, all, p).Call(within(t, 10*time.Second), request(p, `{"message":"x"}`)))); f.Reason != contract.ReasonDeclarationDrift {
			t.Errorf("%+v", f)
		}
	})
	t.Run("progress", func(t *testing.T) {
		p := of(at, "trigger-long-running-operation", contract.EffectReadOnly)
		var mu sync.Mutex
		var got []string
		r := request(p, `{"duration":0.3,"steps":3}`)
		r.Progress = func(done, total float64) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprintf("%v/%v", done, total))
		}
		ans, err := backendOf(t, all, p).Call(within(t, 10*time.Second), r)
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"1/3", "2/3", "3/3"}; err != nil || !cmp.Equal(want, got) {
			t.Errorf("progress %v, answer %s, error %v", got, ans.Body, err)
		}
	})
	t.Run("cancellation", func(t *testing.T) {
		p := of(at, "trigger-long-running-operation", contract.EffectReadOnly)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		f := failureOf(t, second(backendOf(t, all, p).Call(ctx, request(p, `{"duration":20,"steps":2}`))))
		if f.Proof != broker.Unproven || time.Since(start) > 2*time.Second {
			t.Errorf("%+v after %s", f, time.Since(start))
		}
		eventually(t, "the notice of it", func() bool { return w.count("POST notifications/cancelled") == 1 })
	})
	t.Run("one session", func(t *testing.T) {
		if n := w.count("POST initialize"); n != 1 {
			t.Errorf("%d sessions", n)
		}
	})
	t.Run("the wire dies", func(t *testing.T) {
		for _, e := range []contract.Effect{contract.EffectReadOnly, contract.EffectIdempotent, contract.EffectEffectful} {
			for _, m := range []moment{inTheRequest, beforeForward, afterForward, inTheHeaders, inTheAnswer} {
				t.Run(fmt.Sprintf("%s/%s", e, m), func(t *testing.T) {
					if _, err := call(t, "echo", `{"message":"before"}`, e); err != nil {
						t.Fatal(err)
					}
					was, resumed := w.count("POST tools/call"), w.count("GET resume")
					w.set(m, 1)
					ans, err := call(t, "echo", `{"message":"now"}`, e)
					if n := w.count("POST tools/call") - was; n != 1 {
						t.Errorf("%d calls on the wire", n)
					}
					resumed = w.count("GET resume") - resumed
					if err == nil && (resumed == 0 || e == contract.EffectEffectful || string(ans.Body) != `"Echo: now"`) {
						t.Errorf("answer %s after %d resumes", ans.Body, resumed)
					}
					if err != nil && failureOf(t, err).Proof != broker.Unproven {
						t.Errorf("%+v", err)
					}
					t.Logf("%d resumes, error %v", resumed, err)
				})
			}
		}
	})
	t.Run("the server forgets the session", func(t *testing.T) {
		p := of(at, "echo", contract.EffectEffectful)
		b := backendOf(t, all, p)
		if _, err := b.Call(within(t, 10*time.Second), request(p, `{"message":"x"}`)); err != nil {
			t.Fatal(err)
		}
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
		r.Header.Set("Mcp-Session-Id", b.slot.session.sdk.ID())
		res, err := http.DefaultClient.Do(r)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		_ = res.Body.Close()
		// The stream of notices ends with the session, so the tools are compared
		// again, which shows that the session is gone before a call is lost.
		eventually(t, "the loss", b.slot.session.deaf.Load)
		calls, opened := w.count("POST tools/call"), w.count("POST initialize")
		if _, err := b.Call(within(t, 10*time.Second), request(p, `{"message":"x"}`)); err != nil {
			t.Error(err)
		}
		if n := w.count("POST tools/call") - calls; n != 1 {
			t.Errorf("%d calls on the wire", n)
		}
		if n := w.count("POST initialize") - opened; n != 1 {
			t.Errorf("%d new sessions", n)
		}
	})
	all.Close(t.Context())
	if n := w.count("DELETE"); n == 0 {
		t.Error("the server was not told of the end")
	}
	if !slices.Contains(w.sent, "GET") {
		t.Error("there was no stream of notices")
	}
}
