package report_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/report/reporttest"
)

func shown() *contract.Media {
	return &contract.Media{
		Marker: contract.MediaMarker, Text: "a page", Geometry: contract.Geometry{Width: 2, Height: 1},
		Pictures: []contract.Picture{{MIMEType: "image/png", Data: []byte("png")}},
	}
}

func TestStoreMedia(t *testing.T) {
	fail := func(code int, reason string, times int) func(*reporttest.API) func(http.ResponseWriter, *http.Request, int) bool {
		return func(*reporttest.API) func(http.ResponseWriter, *http.Request, int) bool {
			return func(w http.ResponseWriter, r *http.Request, n int) bool {
				if r.Method != http.MethodPost || n > times {
					return false
				}
				reporttest.Fail(w, code, reason)
				return true
			}
		}
	}
	tests := map[string]struct {
		intercept func(*reporttest.API) func(http.ResponseWriter, *http.Request, int) bool
		text      string // of the media
		wantErr   string
		wantTries int
	}{
		"stored":         {wantTries: 1},
		"a busy server":  {intercept: fail(http.StatusServiceUnavailable, "ServiceUnavailable", 2), wantTries: 3},
		"policy forbids": {intercept: fail(http.StatusForbidden, "Forbidden", 9), wantErr: "Forbidden", wantTries: 1},
		"somebody else's": {
			intercept: fail(http.StatusConflict, "AlreadyExists", 9), wantErr: "is not this pod's", wantTries: 1,
		},
		"the answer is lost": {
			intercept: func(a *reporttest.API) func(http.ResponseWriter, *http.Request, int) bool {
				return func(w http.ResponseWriter, r *http.Request, n int) bool {
					if r.Method != http.MethodPost || n > 1 {
						return false
					}
					a.Take(r)
					reporttest.Fail(w, http.StatusGatewayTimeout, "Timeout")
					return true
				}
			},
			wantTries: 2,
		},
		"too large": {text: strings.Repeat("x", contract.MaxMediaBytes), wantErr: "more than"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			api := reporttest.New(t, launched())
			if tc.intercept != nil {
				api.Intercept(tc.intercept(api))
			}
			m := shown()
			if tc.text != "" {
				m.Text = tc.text
			}
			ref, err := newClient(t, api, "pod-2").StoreMedia(t.Context(), m, 7)
			if got := api.Count(http.MethodPost); got != tc.wantTries {
				t.Errorf("%d tries, want %d", got, tc.wantTries)
			}
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) || ref != nil {
					t.Errorf("got %v, %v, want an error with %q", ref, err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantMedia(t, api.ConfigMaps()["pod-2-media"], m, ref)
		})
	}
}

func wantMedia(t *testing.T, cm corev1.ConfigMap, m *contract.Media, ref *contract.MediaRef) {
	t.Helper()
	text := []byte(cm.Data[contract.MediaKey])
	want := &contract.MediaRef{ConfigMap: "pod-2-media", Digest: contract.Digest(text), Geometry: m.Geometry, Seq: 7}
	if diff := cmp.Diff(want, ref); diff != "" {
		t.Errorf("reference (-want +got):\n%s", diff)
	}
	var got contract.Media
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, &got); diff != "" {
		t.Errorf("media (-want +got):\n%s", diff)
	}
	run := launched()
	if len(cm.OwnerReferences) != 1 || string(cm.OwnerReferences[0].UID) != run.UID || cm.OwnerReferences[0].Name != run.Name {
		t.Errorf("owned by %v", cm.OwnerReferences)
	}
	if cm.Immutable == nil || !*cm.Immutable {
		t.Error("the ConfigMap can be changed")
	}
}
