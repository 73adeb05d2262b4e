package run

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/runtime/report"
	"github.com/codeact-dev/codeact-operator/runtime/report/reporttest"
)

func newDesk(t *testing.T) (*writer, *reporttest.API) {
	t.Helper()
	run := contract.RunRef{Namespace: "team-a", Name: "r", UID: "u", Generation: 2}
	api := reporttest.New(t, reporttest.Run{Namespace: run.Namespace, Name: run.Name, UID: run.UID, Spec: map[string]any{}})
	c, err := report.New(report.Config{
		API: api.Config(), Run: run, Now: time.Now,
		WriteFor: time.Second, RefusedFor: 20 * time.Millisecond, FirstWait: time.Millisecond, LookEvery: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	return newWriter(c, contract.Execution{Generation: 2, RunUID: "u"}, now), api
}

func answer(api *reporttest.API, id string) {
	api.Change(func(r *reporttest.Run) {
		r.Spec = map[string]any{"resolutions": []any{map[string]any{"id": id, "decision": "Approve", "result": 7, "by": "ann"}}}
	})
}

// TestAwait shows a call that waits with the journal so far, takes the answer, and
// shows nothing any more.
func TestAwait(t *testing.T) {
	w, api := newDesk(t)
	calls := []contract.Call{{Seq: 1, Tool: "pay", State: contract.CallCompleted}}
	if err := w.Record(t.Context(), calls, 3); err != nil {
		t.Fatal(err)
	}
	w.steps([]contract.Step{{Step: 1, Kind: contract.StepTools}})
	api.Intercept(func(_ http.ResponseWriter, r *http.Request, n int) bool {
		if r.Method == http.MethodGet && n == 3 {
			answer(api, "2-2-aa")
		}
		return false
	})
	got, err := w.Await(t.Context(), contract.Pending{ID: "2-2-aa", Kind: contract.PendingApproval, Tool: "pay"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(loop.Resolution{Decision: contract.DecisionApprove, Result: []byte("7"), By: "ann"}, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if err := w.Record(t.Context(), append(calls, contract.Call{Seq: 2}), 3); err != nil {
		t.Fatal(err)
	}
	base := contract.Execution{Generation: 2, RunUID: "u", Calls: calls, RefusedCalls: 3}
	recorded, shown, cleared, after := base, base, base, base
	shown.Steps = []contract.Step{{Step: 1, Kind: contract.StepTools}}
	cleared.Steps, after.Steps = shown.Steps, shown.Steps
	shown.Pending = []contract.Pending{{ID: "2-2-aa", Kind: contract.PendingApproval, Tool: "pay", Since: "2026-03-01T12:00:00Z"}}
	after.Calls = append(calls, contract.Call{Seq: 2})
	if diff := cmp.Diff([]contract.Execution{recorded, shown, cleared, after}, api.Writes(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestAwaitWithoutAPI loses the API server before the call is shown, before it is
// answered, and when it is no longer to be shown.
func TestAwaitWithoutAPI(t *testing.T) {
	tests := map[string]func(r *http.Request, n int) bool{
		"when it begins to wait": func(r *http.Request, n int) bool { return r.Method == http.MethodPatch && n < 4 },
		"while it waits":         func(r *http.Request, n int) bool { return r.Method == http.MethodGet && n < 4 },
		"when it is answered":    func(r *http.Request, n int) bool { return r.Method == http.MethodPatch && n > 1 },
	}
	for name, away := range tests {
		t.Run(name, func(t *testing.T) {
			w, api := newDesk(t)
			answer(api, "2-1-aa")
			api.Intercept(func(_ http.ResponseWriter, r *http.Request, n int) bool {
				if away(r, n) {
					panic(http.ErrAbortHandler)
				}
				return false
			})
			got, err := w.Await(t.Context(), contract.Pending{ID: "2-1-aa"})
			if err != nil || got.Decision != contract.DecisionApprove {
				t.Errorf("answer %+v, error %v", got, err)
			}
		})
	}
}

func TestAwaitIsCancelled(t *testing.T) {
	tests := map[string]struct {
		method string
		n      int
	}{
		"before it is shown": {http.MethodPatch, 1},
		"while it waits":     {http.MethodGet, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, api := newDesk(t)
			ctx, cancel := context.WithCancel(t.Context())
			api.Intercept(func(rw http.ResponseWriter, r *http.Request, n int) bool {
				if r.Method != tc.method {
					return false
				}
				if n >= tc.n {
					cancel()
				}
				reporttest.Fail(rw, 500, "InternalError")
				return true
			})
			if _, err := w.Await(ctx, contract.Pending{ID: "2-1-aa"}); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if len(w.so.Pending) != 0 {
				t.Errorf("still waiting: %+v", w.so.Pending)
			}
		})
	}
}

// TestAwaitIsRefused: a call that nobody can be told of does not wait.
func TestAwaitIsRefused(t *testing.T) {
	w, api := newDesk(t)
	api.Intercept(func(rw http.ResponseWriter, r *http.Request, _ int) bool {
		reporttest.Fail(rw, 422, "Invalid")
		return true
	})
	_, err := w.Await(t.Context(), contract.Pending{ID: "2-1-aa"})
	if f, ok := contract.AsFault(err); !ok || f.Reason != contract.ReasonBrokerUnavailable {
		t.Errorf("error %v", err)
	}
	if n := api.Count(http.MethodGet); n != 0 {
		t.Errorf("%d looks", n)
	}
}
