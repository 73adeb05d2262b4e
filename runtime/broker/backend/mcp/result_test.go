package mcp

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

const image = `{"type":"image","mimeType":"image/png","data":"aGVsbG8="}`

func TestResults(t *testing.T) {
	marked := func(rest string) string {
		return `{"_meta":{"codeact.dev/media":{"marker":"` + contract.MediaMarker + `","geometry":{"width":3,"height":2}},"codeact.dev/receipt":"r-1"},` + rest + `}`
	}
	picture := contract.Picture{MIMEType: "image/png", Data: []byte("hello")}
	tests := map[string]struct {
		result      string
		output      string // schema
		want        string
		wantMedia   *contract.Media
		wantReceipt string
	}{
		"structured":               {result: `{"content":[{"type":"text","text":"{}"}],"structuredContent":{"b":1,"a":12345678901234567890}}`, want: `{"b":1,"a":12345678901234567890}`},
		"one text":                 {result: `{"content":[{"type":"text","text":"a \"b\" <c>"}]}`, want: `"a \"b\" <c>"`},
		"text that is JSON":        {result: `{"content":[{"type":"text","text":"{\"a\":1}"}]}`, want: `"{\"a\":1}"`},
		"its JSON by schema":       {result: `{"content":[{"type":"text","text":" {\"a\":1}\n"}]}`, output: `{"type":"object"}`, want: `{"a":1}`},
		"a schema for strings":     {result: `{"content":[{"type":"text","text":"{\"a\":1}"}]}`, output: `{"type":"string"}`, want: `"{\"a\":1}"`},
		"schema, but no JSON":      {result: `{"content":[{"type":"text","text":"oops"}]}`, output: `{"type":"object"}`, want: `"oops"`},
		"nothing":                  {result: `{"content":[]}`, want: `null`},
		"not even content":         {result: `{}`, want: `null`},
		"structured null":          {result: `{"content":[{"type":"text","text":"t"}],"structuredContent":null}`, want: `"t"`},
		"several texts":            {result: `{"content":[{"type":"text","text":"a"},` + image + `,{"type":"text","text":"b"}]}`, want: `["a","b"]`},
		"pictures only":            {result: `{"content":[` + image + `,{"type":"audio","data":"aGVsbG8=","mimeType":"audio/wav"}]}`, want: `null`},
		"resources":                {result: `{"content":[{"type":"resource","resource":{"uri":"a:b","text":"secret"}},{"type":"resource_link","uri":"a:b","name":"n"},{"type":"text","text":"t"}]}`, want: `"t"`},
		"a kind nobody knows":      {result: `{"content":[{"type":"hologram","text":"h"},{"type":"text","text":"t"}]}`, want: `"t"`},
		"media beside a value":     {result: marked(`"content":[{"type":"text","text":"one"},` + image + `,{"type":"text","text":"two"}],"structuredContent":{"ok":true}`), want: `{"ok":true}`, wantReceipt: "r-1", wantMedia: &contract.Media{Marker: contract.MediaMarker, Text: "one\ntwo", Geometry: contract.Geometry{Width: 3, Height: 2}, Pictures: []contract.Picture{picture}}},
		"media beside a text":      {result: marked(`"content":[{"type":"text","text":"one"},` + image + `]`), want: `"one"`, wantReceipt: "r-1", wantMedia: &contract.Media{Marker: contract.MediaMarker, Geometry: contract.Geometry{Width: 3, Height: 2}, Pictures: []contract.Picture{picture}}},
		"media without pictures":   {result: marked(`"content":[]`), want: `null`, wantReceipt: "r-1", wantMedia: &contract.Media{Marker: contract.MediaMarker, Geometry: contract.Geometry{Width: 3, Height: 2}}},
		"media with a bad picture": {result: marked(`"content":[{"type":"image","mimeType":"image/png","data":"%%"}]`), want: `null`, wantReceipt: "r-1", wantMedia: &contract.Media{Marker: contract.MediaMarker, Geometry: contract.Geometry{Width: 3, Height: 2}, Pictures: []contract.Picture{{MIMEType: "image/png"}}}},
		"another marker":           {result: `{"_meta":{"codeact.dev/media":{"marker":"x"},"codeact.dev/receipt":7},"content":[` + image + `]}`, want: `null`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := results(t, tc.result)
			p := pinned(s.URL, "x", func(p *contract.PinnedTool) { p.Tool.OutputSchema = json.RawMessage(tc.output) })
			s.list = func(string) string {
				d := `{"name":"x","inputSchema":{"type":"object"}`
				if tc.output != "" {
					d += `,"outputSchema":` + tc.output
				}
				return declares(d + `}`)
			}
			got, err := backendOf(t, sessionsOf(t, bundle(), nil), p).Call(within(t, 5*time.Second), request(p, `{}`))
			if err != nil {
				t.Fatal(err)
			}
			want := broker.Answer{Body: []byte(tc.want), Bytes: int64(len(tc.want)), Digest: contract.Digest([]byte(tc.want)), Media: tc.wantMedia, Receipt: tc.wantReceipt}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	status := func(code int, header ...string) func(http.ResponseWriter, *http.Request, scriptMessage) {
		return func(w http.ResponseWriter, _ *http.Request, _ scriptMessage) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
		}
	}
	rpc := func(code int) func(http.ResponseWriter, *http.Request, scriptMessage) {
		return func(w http.ResponseWriter, _ *http.Request, m scriptMessage) {
			respondError(w, m, code, "no\x00 such\n thing")
		}
	}
	result := func(text string) func(http.ResponseWriter, *http.Request, scriptMessage) {
		return func(w http.ResponseWriter, _ *http.Request, m scriptMessage) { respond(w, m, text) }
	}
	raw := func(kind, text string) func(http.ResponseWriter, *http.Request, scriptMessage) {
		return func(w http.ResponseWriter, _ *http.Request, _ scriptMessage) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(text))
		}
	}
	answered, unproven := broker.Answered, broker.Unproven
	tests := map[string]struct {
		call func(http.ResponseWriter, *http.Request, scriptMessage)
		want broker.Failure
	}{
		"it says so":          {result(`{"isError":true,"content":[{"type":"text","text":"disk\u0000 full\n\u001b[31m"},{"type":"text","text":"really"}],"structuredContent":{"free":0},"_meta":{"codeact.dev/receipt":"r"}}`), broker.Failure{Proof: answered, Message: "tool x: disk  full  [31m really", Result: json.RawMessage(`{"free":0}`), Receipt: "r"}},
		"it says no more":     {result(`{"isError":true,"content":[]}`), broker.Failure{Proof: answered, Message: "tool x: it failed"}},
		"invalid params":      {rpc(-32602), broker.Failure{Proof: answered, Message: "tool x: its server refused the call (code -32602): no  such  thing"}},
		"unknown method":      {rpc(-32601), broker.Failure{Proof: answered, Message: "tool x: its server refused the call (code -32601): no  such  thing"}},
		"internal error":      {rpc(-32603), broker.Failure{Proof: unproven, Message: "tool x: its server answered with error -32603"}},
		"code of its own":     {rpc(-32042), broker.Failure{Proof: unproven, Message: "tool x: its server answered with error -32042"}},
		"401":                 {status(401), broker.Failure{Proof: answered, Message: "tool x: it refused the call with status 401"}},
		"403":                 {status(403), broker.Failure{Proof: answered, Message: "tool x: it refused the call with status 403"}},
		"404":                 {status(404), broker.Failure{Proof: answered, Message: "tool x: it refused the call with status 404"}},
		"408":                 {status(408), broker.Failure{Proof: unproven, Message: "tool x: it answered with status 408"}},
		"429":                 {status(429, "Retry-After", "7"), broker.Failure{Proof: unproven, Message: "tool x: it answered with status 429", RetryAfter: 7 * time.Second}},
		"500":                 {status(500), broker.Failure{Proof: unproven, Message: "tool x: it answered with status 500"}},
		"503":                 {status(503, "Retry-After", "soon"), broker.Failure{Proof: unproven, Message: "tool x: it answered with status 503"}},
		"202":                 {status(202), broker.Failure{Proof: unproven, Reason: contract.ReasonCallDeferred, Message: "tool x: it will answer later (202 Accepted), and a run never waits for that"}},
		"302":                 {status(302, "Location", "/"), broker.Failure{Proof: unproven, Message: "tool x: it answered with a redirect (302), and redirects are not followed"}},
		"307":                 {status(307, "Location", "/"), broker.Failure{Proof: answered, Message: "tool x: it answered with a redirect (307), and redirects are not followed"}},
		"encoded":             {status(200, "Content-Encoding", "gzip"), broker.Failure{Proof: unproven, Message: "tool x: it answered with a content encoding that nobody asked for"}},
		"no JSON":             {raw("application/json", "<html>"), broker.Failure{Proof: unproven, Message: "tool x: its answer was lost"}},
		"no MCP":              {raw("text/html", "<html>"), broker.Failure{Proof: unproven, Message: "tool x: its answer was lost"}},
		"somebody's answer":   {raw("application/json", `{"jsonrpc":"2.0","id":99,"result":{}}`), broker.Failure{Proof: unproven, Message: "tool x: its answer was lost"}},
		"a request":           {raw("application/json", `{"jsonrpc":"2.0","id":1,"method":"ping"}`), broker.Failure{Proof: unproven, Message: "tool x: its answer was lost"}},
		"a result of numbers": {result(`{"content":7}`), broker.Failure{Proof: unproven, Message: "tool x: its answer is no result of a tool"}},
		"it asks back":        {result(`{"resultType":"input_required","inputRequests":{},"content":[]}`), broker.Failure{Proof: unproven, Message: "tool x: it wants to be given something before it goes on, and a run gives nothing"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, e := range []contract.Effect{contract.EffectReadOnly, contract.EffectEffectful} {
				s := script(t, &scripted{call: tc.call, session: "s-1"})
				p := pinned(s.URL, "x", effect(e))
				got := failureOf(t, second(backendOf(t, sessionsOf(t, bundle(), nil), p).Call(within(t, 5*time.Second), request(p, `{}`))))
				if diff := cmp.Diff(&tc.want, got); diff != "" {
					t.Errorf("failure (-want +got):\n%s", diff)
				}
				if n := s.count("POST tools/call"); n != 1 {
					t.Errorf("%d calls on the wire", n)
				}
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	big := func(n int) string { return `"` + strings.Repeat("y", n-2) + `"` }
	structured := func(v string) string { return `{"content":[],"structuredContent":` + v + `}` }
	send := map[string]func(http.ResponseWriter, scriptMessage, string){
		"JSON": func(w http.ResponseWriter, m scriptMessage, text string) { respond(w, m, text) },
		"events": func(w http.ResponseWriter, m scriptMessage, text string) {
			stream(w)(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + text + `}`)
		},
	}
	for how, f := range send {
		tests := map[string]struct {
			value      string
			wantBytes  int64
			wantBody   int
			wantDigest bool
		}{
			"exactly the limit":        {big(1000), 1000, 1000, true},
			"one byte more":            {big(1001), 1001, 1001, true},
			"far more":                 {big(2000), 2000, 1001, true},
			"more than is ever read":   {big(4 << 20), 4 << 20, 0, false},
			"more, and no end of that": {big(32 << 20), 1 << 20, 0, false},
		}
		for name, tc := range tests {
			t.Run(how+"/"+name, func(t *testing.T) {
				s := script(t, &scripted{call: func(w http.ResponseWriter, _ *http.Request, m scriptMessage) { f(w, m, structured(tc.value)) }})
				p := pinned(s.URL, "x")
				r := request(p, `{}`)
				r.MaxBytes = 1000
				got, err := backendOf(t, sessionsOf(t, bundle(), nil), p).Call(within(t, 10*time.Second), r)
				if err != nil {
					t.Fatal(err)
				}
				if tc.wantDigest && (got.Bytes != tc.wantBytes || len(got.Body) != tc.wantBody || got.Digest != contract.Digest([]byte(tc.value))) {
					t.Errorf("%d bytes, kept %d, digest %s", got.Bytes, len(got.Body), got.Digest)
				}
				if !tc.wantDigest && (got.Bytes < 1<<20 || got.Digest != "" || len(got.Body) != 0) {
					t.Errorf("%d bytes, kept %d, digest %s", got.Bytes, len(got.Body), got.Digest)
				}
			})
		}
	}
}

func TestCredentialComesBack(t *testing.T) {
	const secret = "s3cret-t0ken"
	tests := map[string]struct {
		result    string
		wantProof broker.Proof
	}{
		"in its failure":   {`{"isError":true,"content":[{"type":"text","text":"bad token ` + secret + `"}],"structuredContent":{"t":"` + secret + `"},"_meta":{"codeact.dev/receipt":"` + secret + `"}}`, broker.Answered},
		"in its receipt":   {`{"content":[],"_meta":{"codeact.dev/receipt":"` + secret + `"}}`, broker.Done},
		"in its result":    {`{"content":[],"structuredContent":{"t":"` + secret + `"}}`, broker.Done},
		"in its text":      {`{"content":[{"type":"text","text":"` + secret + `"}]}`, broker.Done},
		"in base64":        {`{"content":[],"structuredContent":{"t":"` + base64.StdEncoding.EncodeToString([]byte(secret)) + `"}}`, broker.Done},
		"in a refusal":     {"error", broker.Answered},
		"in escapes":       {`{"content":[],"structuredContent":{"t":"\u0073\u0033cret-t0ken"}}`, broker.Done},
		"in media's text":  {`{"content":[{"type":"text","text":"` + secret + `"}],"structuredContent":{},"_meta":{"codeact.dev/media":{"marker":"` + contract.MediaMarker + `"}}}`, broker.Done},
		"in an empty word": {`{"isError":true,"content":[{"type":"text","text":"Bearer ` + secret + `"}]}`, broker.Answered},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := script(t, &scripted{call: func(w http.ResponseWriter, _ *http.Request, m scriptMessage) {
				if tc.result == "error" {
					respondError(w, m, -32602, "no "+secret)
					return
				}
				respond(w, m, tc.result)
			}})
			p := pinned(s.URL, "x", capable(contract.CapabilityAuth))
			ans, err := backendOf(t, sessionsOf(t, bundle(), fixed(secret)), p).Call(within(t, 5*time.Second), request(p, `{}`))
			f := failureOf(t, err)
			if text, _ := json.Marshal(f); strings.Contains(string(text)+string(ans.Body)+string(f.Result), secret) || f.Proof != tc.wantProof {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestRotation: the credential is read for every request of the session.
func TestRotation(t *testing.T) {
	s := script(t, &scripted{session: "s", call: fine})
	p := pinned(s.URL, "x", capable(contract.CapabilityAuth))
	c := &rotating{now: "first-token"}
	all := sessionsOf(t, bundle(), c)
	b := backendOf(t, all, p)
	for _, token := range []string{"first-token", "second-token"} {
		c.set(token)
		if _, err := b.Call(within(t, 5*time.Second), request(p, `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	c.set("")
	f := failureOf(t, second(b.Call(within(t, 5*time.Second), request(p, `{}`))))
	if f.Proof != broker.NeverSent || f.Reason != contract.ReasonBrokerUnavailable {
		t.Errorf("%+v", f)
	}
	if n := s.count("POST tools/call"); n != 2 || s.count("POST initialize") != 1 {
		t.Errorf("%d calls: %v", n, s.seen)
	}
	for i, a := range s.auth {
		want := "Bearer first-token"
		if s.seen[i] == "POST tools/call" && i == len(s.auth)-1 {
			want = "Bearer second-token"
		}
		if a != want {
			t.Errorf("%s carried %q, want %q", s.seen[i], a, want)
		}
	}
}

type rotating struct {
	mu  sync.Mutex
	now string
}

func (r *rotating) set(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = s
}

func (r *rotating) Credential(string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return []byte(r.now), nil
}

// TestSharing: tools share a session if they have the server, the credential and
// the CA bundle in common, and never otherwise.
func TestSharing(t *testing.T) {
	of := func(change ...func(*contract.PinnedTool)) contract.PinnedTool {
		return pinned("http://a/mcp", "x", change...)
	}
	secret := func(name string) func(*contract.PinnedTool) {
		return func(p *contract.PinnedTool) {
			capable(contract.CapabilityAuth)(p)
			p.Auth = contract.Auth{Type: contract.AuthSecretRef, SecretName: name, SecretKey: "k"}
		}
	}
	ca := func(p *contract.PinnedTool) { p.Backend.CA = &contract.CABundle{ConfigMap: "c", Key: "k"} }
	from := func(ns string) func(*contract.PinnedTool) {
		return func(p *contract.PinnedTool) { p.Grant.Namespace = ns }
	}
	unused := func(p *contract.PinnedTool) { secret("s")(p); p.Tool.Capabilities = nil }
	tests := map[string]struct {
		a, b contract.PinnedTool
		want bool
	}{
		"the same":                  {of(), pinned("http://a/mcp", "y"), true},
		"another path":              {of(), pinned("http://a/mcp2", "x"), false},
		"one credential":            {of(secret("s")), of(secret("s")), true},
		"two credentials":           {of(secret("s")), of(secret("t")), false},
		"with and without":          {of(secret("s")), of(), false},
		"one that is not projected": {of(unused), of(), true},
		"a CA":                      {of(ca), of(), false},
		"the same CA":               {of(ca), of(ca), true},
		"that of another namespace": {of(ca, from("n")), of(ca), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			all := sessionsOf(t, bundle(), nil)
			if got := backendOf(t, all, tc.a).slot == backendOf(t, all, tc.b).slot; got != tc.want {
				t.Errorf("shared %v, want %v", got, tc.want)
			}
		})
	}
}

func TestRefusedBeforeAnything(t *testing.T) {
	tests := map[string]string{
		"no address": "nowhere", "another scheme": "ftp://a/", "no host": "http:///x", "a password": "http://a:b@c/", "a fragment": "http://a/#b",
	}
	for name, url := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := NewSessions(bundle(), nil).Backend(pinned(url, "x")); err == nil {
				t.Error("no error")
			}
		})
	}
	s := results(t, `{}`)
	p := pinned(s.URL, "x")
	closed := bundle()
	closed.Operator = contract.OperatorPolicy{}
	f := failureOf(t, second(backendOf(t, sessionsOf(t, closed, nil), p).Call(within(t, 5*time.Second), request(p, `{}`))))
	if f.Proof != broker.NeverSent || !strings.Contains(f.Message, "loopback") || !f.Final {
		t.Errorf("%+v", f)
	}
	if f := failureOf(t, second(backendOf(t, sessionsOf(t, bundle(), nil), p).Call(within(t, 5*time.Second), request(p, `[1]`)))); f.Proof != broker.NeverSent {
		t.Errorf("%+v", f)
	}
	if len(s.seen) != 0 {
		t.Errorf("the server saw %v", s.seen)
	}
}
