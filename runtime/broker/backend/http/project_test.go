package http

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
)

type fixed string

func (f fixed) Credential(string) ([]byte, error) { return []byte(f), nil }

func TestProjection(t *testing.T) {
	bundle := contract.Bundle{
		Run:    contract.RunRef{Namespace: "team-a", Name: "r", UID: "u", Generation: 1},
		Labels: map[string]string{"tier": "a", "app": "b"}, Operator: local.Operator,
	}
	tests := map[string]struct {
		capabilities []string
		want         map[string]string
	}{
		"nothing asked": {nil, map[string]string{}},
		"identity": {[]string{contract.CapabilityRunIdentity}, map[string]string{
			egress.HeaderRunNamespace: "team-a", egress.HeaderRunName: "r", egress.HeaderRunUID: "u",
		}},
		"labels": {[]string{contract.CapabilityRunLabels}, map[string]string{egress.HeaderRunLabels: `{"app":"b","tier":"a"}`}},
		"auth":   {[]string{contract.CapabilityAuth}, map[string]string{"Authorization": "Bearer s3cret"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, base := map[string]string{}, map[string]string{}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				base["Body"], base["Method"] = string(body), r.Method
				for k := range r.Header {
					switch k {
					case "Authorization", egress.HeaderRunNamespace, egress.HeaderRunName, egress.HeaderRunUID, egress.HeaderRunLabels:
						got[k] = r.Header.Get(k)
					default:
						base[k] = r.Header.Get(k)
					}
				}
				_, _ = io.WriteString(w, "1")
			}))
			defer s.Close()
			if _, f := call(t, newBackend(t, bundle, tool(s.URL, tc.capabilities...), fixed("s3cret\n"))); f != nil {
				t.Fatal(f)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("projected headers (-want +got):\n%s", diff)
			}
			wantBase := map[string]string{
				"Body": `{"a":1}`, "Method": "POST", "Content-Type": "application/json", "Accept": "application/json, " + contract.ResultMediaType,
				"User-Agent": egress.UserAgent, "Idempotency-Key": "u:1:1", "Content-Length": "7", "Connection": "close",
			}
			if diff := cmp.Diff(wantBase, base); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnusableCredentialSendsNothing(t *testing.T) {
	var sent atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent.Add(1) }))
	defer s.Close()
	dir := t.TempDir()
	tests := map[string]struct {
		creds egress.Credentials
	}{
		"none at hand":      {nil},
		"no file":           {egress.Files{Path: func(string) string { return filepath.Join(dir, "absent") }}},
		"empty":             {fixed("")},
		"only a newline":    {fixed("\n")},
		"two lines":         {fixed("hunter2\nX-Evil: 1")},
		"carriage return":   {fixed("hunter2\rX-Evil: 1")},
		"NUL":               {fixed("hunter2\x00")},
		"not ASCII":         {fixed("hunter2é")},
		"too long":          {fixed(strings.Repeat("hunter2", 32<<10))},
		"a folder, no file": {egress.Files{Path: func(string) string { return dir }}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, f := call(t, newBackend(t, local, tool(s.URL, contract.CapabilityAuth), tc.creds))
			if f == nil || f.Proof != broker.NeverSent || f.Reason != contract.ReasonBrokerUnavailable {
				t.Fatalf("failure %+v, want BrokerUnavailable and NeverSent", f)
			}
			if strings.Contains(f.Message, "hunter2") || strings.Contains(f.Message, dir) {
				t.Errorf("message %q tells too much", f.Message)
			}
		})
	}
	if n := sent.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestRotatedCredentialCounts(t *testing.T) {
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, "1")
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "credential")
	b := newBackend(t, local, tool(s.URL, contract.CapabilityAuth), egress.Files{Path: func(string) string { return file }})
	for _, c := range []string{"one", "two\n"} {
		if err := os.WriteFile(file, []byte(c), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, f := call(t, b); f != nil {
			t.Fatal(f)
		}
	}
	if diff := cmp.Diff([]string{"Bearer one", "Bearer two"}, got); diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}
}
