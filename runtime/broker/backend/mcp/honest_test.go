package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// modes are the ways in which a server of the SDK speaks streamable HTTP.
func modes() map[string]*sdk.StreamableHTTPOptions {
	return map[string]*sdk.StreamableHTTPOptions{
		"stateful":           {},
		"stateful with JSON": {JSONResponse: true},
		"stateful, resuming": {EventStore: sdk.NewMemoryEventStore(nil)},
		"stateless":          {Stateless: true},
		"stateless, JSON":    {Stateless: true, JSONResponse: true},
	}
}

func TestHonestServer(t *testing.T) {
	for name, mode := range modes() {
		t.Run(name, func(t *testing.T) {
			w := newWire(t, served(t, honest(), mode).URL)
			all := sessionsOf(t, bundle(), nil)
			echo, steps := pinned(w.url(), "echo"), pinned(w.url(), "steps")
			be, bs := backendOf(t, all, echo), backendOf(t, all, steps)
			// A whole number beyond 2^53 comes back as it is spelled.
			const args = `{"n":9007199254740993,"b":"ü","a":[1.0]}`
			ans, err := be.Call(within(t, 5*time.Second), request(echo, args))
			if err != nil {
				t.Fatal(err)
			}
			if want := (broker.Answer{Body: []byte(args), Bytes: int64(len(args)), Digest: contract.Digest([]byte(args))}); !cmp.Equal(want, ans) {
				t.Errorf("answer (-want +got):\n%s", cmp.Diff(want, ans))
			}
			ans, err = bs.Call(within(t, 5*time.Second), request(steps, `{}`))
			if err != nil || string(ans.Body) != `"done"` {
				t.Errorf("answer %s, error %v", ans.Body, err)
			}
			all.Close(t.Context())
			t.Log(w.sent)
			if n := w.count("POST tools/call"); n != 2 {
				t.Errorf("%d calls on the wire, want 2", n)
			}
			if n := w.count("POST tools/list"); n != 1 {
				t.Errorf("%d lists on the wire: the tools of one server share a session", n)
			}
			if f := failureOf(t, second(be.Call(t.Context(), request(echo, `{}`)))); f.Proof != broker.NeverSent {
				t.Errorf("after the end: %+v", f)
			}
		})
	}
}

func second(_ broker.Answer, err error) error { return err }

func TestProgress(t *testing.T) {
	for name, mode := range modes() {
		t.Run(name, func(t *testing.T) {
			p := pinned(served(t, honest(), mode).URL, "steps")
			var mu sync.Mutex
			var got []string
			r := request(p, `{}`)
			r.Progress = func(done, total float64) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, fmt.Sprintf("%v/%v", done, total))
			}
			if _, err := backendOf(t, sessionsOf(t, bundle(), nil), p).Call(within(t, 5*time.Second), r); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			// A server that answers in JSON has no stream for progress.
			if want := []string{"1/3", "2/3", "3/3"}; !strings.Contains(name, "JSON") && !cmp.Equal(want, got) {
				t.Errorf("progress %v, want %v", got, want)
			}
		})
	}
}

func TestProjection(t *testing.T) {
	const secret = "s3cret-token"
	url := served(t, honest(), nil).URL
	tests := map[string]struct {
		capabilities []string
		wantMeta     map[string]any
		wantHeaders  map[string]string
	}{
		"nothing asked": {nil, map[string]any{}, map[string]string{}},
		"identity": {[]string{contract.CapabilityRunIdentity},
			map[string]any{MetaRun: map[string]any{"namespace": "team-a", "name": "r", "uid": "u"}},
			map[string]string{"Codeact-Run-Namespace": "team-a", "Codeact-Run-Name": "r", "Codeact-Run-Uid": "u"}},
		"labels": {[]string{contract.CapabilityRunLabels},
			map[string]any{MetaRunLabels: map[string]any{"tier": "a"}},
			map[string]string{"Codeact-Run-Labels": `{"tier":"a"}`}},
		"auth": {[]string{contract.CapabilityAuth}, map[string]any{}, map[string]string{"Authorization": "Bearer " + secret}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := pinned(url, "meta", capable(tc.capabilities...))
			ans, err := backendOf(t, sessionsOf(t, bundle(), fixed(secret)), p).Call(within(t, 5*time.Second), request(p, `{}`))
			if tc.wantHeaders["Authorization"] != "" && err != nil {
				return // it echoes the credential: see TestCredentialComesBack
			}
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Meta   map[string]any
				Header map[string]string
			}
			if err := json.Unmarshal(ans.Body, &got); err != nil {
				t.Fatal(err)
			}
			headers := map[string]string{}
			for k, v := range got.Header {
				if k == "Authorization" || strings.HasPrefix(k, "Codeact-") {
					headers[k] = v
				}
			}
			for k := range got.Meta {
				if strings.HasPrefix(k, "io.modelcontextprotocol/") {
					delete(got.Meta, k)
				}
			}
			tc.wantMeta[MetaIdempotencyKey] = "u:1:1"
			if diff := cmp.Diff(tc.wantMeta, got.Meta); diff != "" {
				t.Errorf("_meta (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantHeaders, headers); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			if got.Header["Idempotency-Key"] != "u:1:1" || got.Header["User-Agent"] != "codeact-runtime" {
				t.Errorf("headers %v", got.Header)
			}
		})
	}
}

type fixed string

func (f fixed) Credential(string) ([]byte, error) { return []byte(f), nil }

func TestCancelEndsTheCall(t *testing.T) {
	w := newWire(t, served(t, honest(), nil).URL)
	p := pinned(w.url(), "slow")
	b := backendOf(t, sessionsOf(t, bundle(), nil), p)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		eventually(t, "the call", func() bool { return w.count("POST tools/call") == 1 })
		cancel()
	}()
	start := time.Now()
	f := failureOf(t, second(b.Call(ctx, request(p, `{}`))))
	if f.Proof != broker.Unproven || time.Since(start) > 3*time.Second {
		t.Errorf("%+v after %s", f, time.Since(start))
	}
	eventually(t, "the notice of it", func() bool { return w.count("POST notifications/cancelled") == 1 })
}
