package report_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/report/reporttest"
)

func TestStoreTranscript(t *testing.T) {
	fails := func(code int, reason string, times int) func(*reporttest.API, http.ResponseWriter, *http.Request, int) bool {
		return func(_ *reporttest.API, w http.ResponseWriter, _ *http.Request, n int) bool {
			if n <= times {
				reporttest.Fail(w, code, reason)
			}
			return n <= times
		}
	}
	tests := map[string]struct {
		post      func(a *reporttest.API, w http.ResponseWriter, r *http.Request, n int) bool
		bytes     int
		wantErr   string
		wantTries int
	}{
		"stored":          {bytes: contract.MaxTranscriptBytes, wantTries: 1},
		"too large":       {bytes: contract.MaxTranscriptBytes + 1, wantErr: "more than 900000"},
		"a busy server":   {post: fails(http.StatusServiceUnavailable, "ServiceUnavailable", 2), bytes: 9, wantTries: 3},
		"a quota":         {post: fails(http.StatusForbidden, "Forbidden", 9), bytes: 9, wantErr: "Forbidden", wantTries: 1},
		"the name is had": {post: fails(http.StatusConflict, "AlreadyExists", 9), bytes: 9, wantErr: "pod-2-transcript is there already, and is not this pod's", wantTries: 1},
		"the answer is lost": {
			post: func(a *reporttest.API, w http.ResponseWriter, r *http.Request, n int) bool {
				if n == 1 {
					a.Take(r)
					reporttest.Fail(w, http.StatusGatewayTimeout, "Timeout")
				}
				return n == 1
			},
			bytes: 9, wantTries: 2,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			api := reporttest.New(t, launched())
			api.Intercept(func(w http.ResponseWriter, r *http.Request, n int) bool {
				return tc.post != nil && r.Method == http.MethodPost && tc.post(api, w, r, n)
			})
			packed := []byte(strings.Repeat("\x1f", tc.bytes))
			got, err := newClient(t, api, "pod-2").StoreTranscript(t.Context(), packed)
			if n := api.Count(http.MethodPost); n != tc.wantTries {
				t.Errorf("%d tries, want %d", n, tc.wantTries)
			}
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) || got != "" {
					t.Errorf("%q, error %v, want %q", got, err, tc.wantErr)
				}
				return
			}
			if err != nil || got != "pod-2-transcript" {
				t.Fatalf("%q, error %v", got, err)
			}
			cm := api.ConfigMaps()[got]
			wantData := map[string][]byte{contract.TranscriptKey: packed}
			if diff := cmp.Diff(wantData, cm.BinaryData); diff != "" || cm.Immutable == nil || !*cm.Immutable || len(cm.Data) != 0 {
				t.Errorf("ConfigMap is immutable: %v, data (-want +got):\n%s", cm.Immutable, diff)
			}
			if !ownedByRun(cm) {
				t.Errorf("the ConfigMap does not belong to the run: %+v", cm.OwnerReferences)
			}
		})
	}
}

func ownedByRun(cm corev1.ConfigMap) bool {
	o := cm.OwnerReferences
	return len(o) == 1 && o[0].Kind == contract.AgentRunKind && o[0].UID != "" && o[0].Controller != nil && *o[0].Controller
}
