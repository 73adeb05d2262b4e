package report_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/report"
	"github.com/codeact-dev/codeact-operator/runtime/report/reporttest"
)

// answered is a run whose spec has these resolutions.
func answered(entries ...any) reporttest.Run {
	r := launched()
	r.Spec["resolutions"] = entries
	return r
}

func entry(id, decision string, more ...any) map[string]any {
	m := map[string]any{"id": id, "decision": decision, "by": "ann"}
	for i := 0; i+1 < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	return m
}

func desk(t *testing.T, api *reporttest.API) *report.Client {
	t.Helper()
	c, err := report.New(report.Config{
		API: api.Config(), Run: contract.RunRef{Namespace: "team-a", Name: "r", UID: "u", Generation: 2},
		BundleDigest: digest, Pod: report.Pod{Name: "pod-2", UID: "pod-2-uid"}, Now: time.Now, LookEvery: 2 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnswer(t *testing.T) {
	tests := map[string]struct {
		run  reporttest.Run
		want report.Answer
	}{
		"approved": {answered(entry("2-1-aa", "Approve")), report.Answer{ID: "2-1-aa", Decision: contract.DecisionApprove, By: "ann"}},
		"denied":   {answered(entry("2-1-aa", "Deny")), report.Answer{ID: "2-1-aa", Decision: contract.DecisionDeny, By: "ann"}},
		"with a result": {
			answered(entry("2-1-aa", "Approve", "result", json.RawMessage(`{"b":1.50,"a":[null]}`))),
			report.Answer{ID: "2-1-aa", Decision: contract.DecisionApprove, By: "ann", Result: json.RawMessage(`{"b":1.50,"a":[null]}`)},
		},
		"among others": {
			answered(entry("1-1-aa", "Deny"), entry("2-1-aaa", "Deny"), entry("2-1-AA", "Deny"), entry("2-1-aa", "Approve")),
			report.Answer{ID: "2-1-aa", Decision: contract.DecisionApprove, By: "ann"},
		},
		"behind what cannot be read": {
			answered("2-1-aa", entry("2-1-aa", "Perhaps"), map[string]any{"id": 7}, entry("2-1-aa", "Deny")),
			report.Answer{ID: "2-1-aa", Decision: contract.DecisionDeny, By: "ann"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := desk(t, reporttest.New(t, tc.run)).Answer(t.Context(), "2-1-aa")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnswerComesLate answers at the fifth look; before it there is nothing, the
// answer to another call, or no API server.
func TestAnswerComesLate(t *testing.T) {
	tests := map[string]func(http.ResponseWriter) bool{
		"nothing":         func(http.ResponseWriter) bool { return false },
		"forbidden":       func(w http.ResponseWriter) bool { reporttest.Fail(w, 403, "Forbidden"); return true },
		"server error":    func(w http.ResponseWriter) bool { reporttest.Fail(w, 500, "InternalError"); return true },
		"not found":       func(w http.ResponseWriter) bool { reporttest.Fail(w, 404, "NotFound"); return true },
		"no JSON":         func(w http.ResponseWriter) bool { _, _ = w.Write([]byte("<html>")); return true },
		"connection lost": func(http.ResponseWriter) bool { panic(http.ErrAbortHandler) },
	}
	for name, before := range tests {
		t.Run(name, func(t *testing.T) {
			api := reporttest.New(t, answered(entry("2-2-aa", "Deny")))
			api.Intercept(func(w http.ResponseWriter, _ *http.Request, n int) bool {
				if n == 5 {
					api.Change(func(r *reporttest.Run) { r.Spec = answered(entry("2-1-aa", "Approve")).Spec })
				}
				return n < 5 && before(w)
			})
			got, err := desk(t, api).Answer(t.Context(), "2-1-aa")
			if err != nil || got.Decision != contract.DecisionApprove {
				t.Fatalf("answer %+v, error %v", got, err)
			}
			if n := api.Count("GET"); n != 5 {
				t.Errorf("%d looks", n)
			}
		})
	}
}

func TestAnswerEndsWithItsContext(t *testing.T) {
	tests := map[string]reporttest.Run{
		"nobody answers":           launched(),
		"another run of that name": func() reporttest.Run { r := answered(entry("2-1-aa", "Approve")); r.UID = "v"; return r }(),
	}
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			api := reporttest.New(t, run)
			ctx, cancel := context.WithCancel(t.Context())
			api.Intercept(func(_ http.ResponseWriter, _ *http.Request, n int) bool {
				if n == 3 {
					cancel()
				}
				return false
			})
			if _, err := desk(t, api).Answer(ctx, "2-1-aa"); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestAnswerIsTooLarge(t *testing.T) {
	tests := map[string]struct {
		bytes int
		want  contract.Reason
	}{
		"as large as may be": {contract.MaxResolutionResultBytes, ""},
		"a byte more":        {contract.MaxResolutionResultBytes + 1, contract.ReasonChildResultTooLarge},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			api := reporttest.New(t, answered(entry("2-1-aa", "Approve", "result", strings.Repeat("x", tc.bytes-2))))
			_, err := desk(t, api).Answer(t.Context(), "2-1-aa")
			got := contract.Reason("")
			if f, ok := contract.AsFault(err); ok {
				got = f.Reason
			} else if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("reason %q, want %q", got, tc.want)
			}
		})
	}
}

// TestResolutionsAreNoOtherExecution: a pod that is stopped after somebody
// answered is not told that the spec asks for something else.
func TestResolutionsAreNoOtherExecution(t *testing.T) {
	api := reporttest.New(t, launched())
	c := newClient(t, api, "pod-2")
	got := claim(t, c)
	api.Change(func(r *reporttest.Run) {
		r.Spec = map[string]any{"input": 1, "resolutions": []any{entry("2-1-aa", "Deny")}}
	})
	if f := c.StopReason(t.Context(), got); f.Reason != contract.ReasonInterrupted {
		t.Errorf("reason %s", f.Reason)
	}
}
