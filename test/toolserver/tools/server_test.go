package tools

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const secret = "s3cret-token"

func start(t *testing.T) *httptest.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(New(Config{TokenFile: file}))
	t.Cleanup(s.Close)
	return s
}

func post(t *testing.T, url, body string, headers map[string]string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return res.StatusCode, "broken off"
	}
	return res.StatusCode, strings.TrimSpace(string(text))
}

func TestTools(t *testing.T) {
	for name, tc := range map[string]struct {
		path, body, bearer string
		wantStatus         int
		wantBody           string
	}{
		"lookup":           {path: "/lookup", body: `{"sku":"nut-m8"}`, wantStatus: 200, wantBody: `{"sku":"nut-m8","name":"Nut M8","stock":480}`},
		"lookup unknown":   {path: "/lookup", body: `{"sku":"x"}`, wantStatus: 404, wantBody: `{"error":"there is no such article"}`},
		"lookup not JSON":  {path: "/lookup", body: `{`, wantStatus: 400, wantBody: `{"error":"the arguments are not JSON"}`},
		"order bad":        {path: "/order", body: `{"sku":"nut-m8"}`, wantStatus: 400, wantBody: `{"error":"want the sku of an article and a quantity from 1"}`},
		"order no key":     {path: "/order", body: `{"sku":"nut-m8","quantity":1}`, wantStatus: 400, wantBody: `{"error":"an order needs an Idempotency-Key"}`},
		"fail":             {path: "/fail?status=503", body: `{}`, wantStatus: 503, wantBody: `{"error":"it fails, as it was asked to"}`},
		"slow":             {path: "/slow?ms=1", body: `{}`, wantStatus: 200, wantBody: `{"slow":true}`},
		"huge":             {path: "/huge?bytes=3", body: `{}`, wantStatus: 200, wantBody: `"xxx"`},
		"not JSON":         {path: "/notjson", body: `{}`, wantStatus: 200, wantBody: "It went well."},
		"redirect":         {path: "/redirect", body: `{}`, wantStatus: 307},
		"break":            {path: "/break", body: `{}`, wantStatus: 200, wantBody: "broken off"},
		"auth":             {path: "/auth", body: `{}`, bearer: secret, wantStatus: 200, wantBody: `{"authenticated":true}`},
		"auth other":       {path: "/auth", body: `{}`, bearer: "x", wantStatus: 401, wantBody: `{"error":"another credential was expected"}`},
		"auth none":        {path: "/auth", body: `{}`, wantStatus: 401, wantBody: `{"error":"another credential was expected"}`},
		"review elsewhere": {path: "/review?audience=x", body: `{}`, bearer: "x", wantStatus: 401, wantBody: `{"error":"nobody can review tokens here"}`},
	} {
		t.Run(name, func(t *testing.T) {
			h := map[string]string{}
			if tc.bearer != "" {
				h["Authorization"] = "Bearer " + tc.bearer
			}
			status, body := post(t, start(t).URL+tc.path, tc.body, h)
			if status != tc.wantStatus || body != tc.wantBody {
				t.Errorf("got %d %q, want %d %q", status, body, tc.wantStatus, tc.wantBody)
			}
		})
	}
}

func TestOneOrderForEachKey(t *testing.T) {
	s := start(t)
	for i, want := range []string{
		`{"id":"order-0001","sku":"nut-m8","quantity":2,"requests":1}`,
		`{"id":"order-0001","sku":"nut-m8","quantity":2,"requests":2}`,
	} {
		if _, got := post(t, s.URL+"/order", `{"sku":"nut-m8","quantity":2}`, map[string]string{"Idempotency-Key": "u:1:1"}); got != want {
			t.Errorf("request %d: got %s, want %s", i, got, want)
		}
	}
	if _, got := post(t, s.URL+"/order", `{"sku":"nut-m8","quantity":2}`, map[string]string{"Idempotency-Key": "u:1:2"}); !strings.Contains(got, "order-0002") {
		t.Errorf("another key: got %s, want another order", got)
	}
}

func TestLogHoldsNoCredential(t *testing.T) {
	s := start(t)
	post(t, s.URL+"/echo", `{"a":1}`, map[string]string{"Idempotency-Key": "k1", "Authorization": "Bearer " + secret, "Codeact-Run-Name": "r"})
	post(t, s.URL+"/echo", `{"a":2}`, map[string]string{"Idempotency-Key": "other"})
	res, err := http.Get(s.URL + "/log?prefix=k")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), secret) {
		t.Error("the log holds the credential")
	}
	var got []Received
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := []Received{{Path: "/echo", Key: "k1", Bearer: "Expected", Run: "r", Arguments: `{"a":1}`}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("log (-want +got):\n%s", d)
	}
}

func TestHoldWaitsForRelease(t *testing.T) {
	s := start(t)
	done := make(chan string)
	go func() {
		_, body := post(t, s.URL+"/hold?name=a", `{}`, nil)
		done <- body
	}()
	post(t, s.URL+"/release?name=b", ``, nil)
	select {
	case body := <-done:
		t.Fatalf("answered %s before the release", body)
	default:
	}
	post(t, s.URL+"/release?name=a", ``, nil)
	if got := <-done; got != `{"released":true}` {
		t.Errorf("got %s", got)
	}
}
