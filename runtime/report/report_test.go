package report_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/report"
	"github.com/codeact-dev/codeact-operator/runtime/report/reporttest"
)

const digest = "sha256:aaaa"

// launched is a run whose second execution generation belongs to pod-2.
func launched() reporttest.Run {
	return reporttest.Run{
		Namespace: "team-a", Name: "r", UID: "u", Spec: map[string]any{"input": 1},
		ExecutionGeneration: 2, ExecutionDigest: "sha256:spec", PodName: "pod-2", PinnedDigest: digest,
		Execution: &contract.Execution{Generation: 1, RunUID: "u", Claim: contract.Claim{PodName: "pod-1", PodUID: "p1"}},
	}
}

func newClient(t *testing.T, api *reporttest.API, pod string) *report.Client {
	t.Helper()
	c, err := report.New(report.Config{
		API: api.Config(), Run: contract.RunRef{Namespace: "team-a", Name: "r", UID: "u", Generation: 2},
		BundleDigest: digest, Pod: report.Pod{Name: pod, UID: pod + "-uid"}, Now: time.Now,
		ClaimFor: 3 * time.Second, WriteFor: 2 * time.Second, RefusedFor: 100 * time.Millisecond, FirstWait: 2 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func claim(t *testing.T, c *report.Client) *report.Claimed {
	t.Helper()
	got, err := c.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestClaim(t *testing.T) {
	api := reporttest.New(t, launched())
	got := claim(t, newClient(t, api, "pod-2"))
	want := contract.Execution{
		Generation: 2, RunUID: "u", BundleDigest: digest,
		Claim: contract.Claim{PodName: "pod-2", PodUID: "pod-2-uid", Time: got.Time.UTC().Format(time.RFC3339Nano)},
	}
	if diff := cmp.Diff(want, got.Execution); diff != "" {
		t.Errorf("execution (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]contract.Execution{want}, api.Writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if g, p := api.Count("GET"), api.Count("PATCH"); g != 1 || p != 1 {
		t.Errorf("the claim cost %d reads and %d writes", g, p)
	}
}

func TestClaimIsRefused(t *testing.T) {
	mine := func(pod string, generation int64) *contract.Execution {
		return &contract.Execution{Generation: generation, RunUID: "u", Claim: contract.Claim{PodName: pod, PodUID: pod + "-uid", Time: "t"}}
	}
	tests := map[string]struct {
		change func(*reporttest.Run)
		want   string
	}{
		"another run of that name":        {func(r *reporttest.Run) { r.UID = "v" }, "UID"},
		"no run of that name":             {func(r *reporttest.Run) { r.Name = "s" }, "no AgentRun"},
		"being deleted":                   {func(r *reporttest.Run) { r.Deleting = true }, "deleted"},
		"next generation":                 {func(r *reporttest.Run) { r.ExecutionGeneration = 3 }, "generation 3"},
		"another pod's":                   {func(r *reporttest.Run) { r.Execution = mine("pod-2b", 2) }, "pod-2b has the claim"},
		"another pod's of the next":       {func(r *reporttest.Run) { r.Execution = mine("pod-3", 3) }, "pod-3 has the claim"},
		"an earlier container's":          {func(r *reporttest.Run) { r.Execution = mine("pod-2", 2) }, "earlier container"},
		"ended":                           {func(r *reporttest.Run) { r.Ended = true }, "ended"},
		"cancelled":                       {func(r *reporttest.Run) { r.Spec["cancel"] = true }, "cancelled"},
		"pinned otherwise":                {func(r *reporttest.Run) { r.PinnedDigest = "sha256:bbbb" }, "another bundle"},
		"another pod's, and not launched": {func(r *reporttest.Run) { r.Execution, r.PodName = mine("pod-2b", 2), "" }, "pod-2b has the claim"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run := launched()
			tc.change(&run)
			api := reporttest.New(t, run)
			_, err := newClient(t, api, "pod-2").Claim(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if n := api.Count("GET"); n != 1 || api.Count("PATCH") != 0 {
				t.Errorf("%d reads, %d writes", n, api.Count("PATCH"))
			}
		})
	}
}

// TestClaimWaits shows what passes with time: the pod may be faster than the
// controller's own status write, or than what gives it its rights.
func TestClaimWaits(t *testing.T) {
	tests := map[string]struct {
		change func(*reporttest.Run)
		// refuse answers the first two requests of the method.
		method string
		refuse func(http.ResponseWriter)
	}{
		"no launch yet":       {change: func(r *reporttest.Run) { r.ExecutionGeneration, r.PodName = 1, "pod-1" }},
		"no pod name yet":     {change: func(r *reporttest.Run) { r.PodName = "" }},
		"no pin yet":          {change: func(r *reporttest.Run) { r.PinnedDigest = "" }},
		"the lost pod's name": {change: func(r *reporttest.Run) { r.PodName = "pod-2-lost" }},
		"read is forbidden":   {method: "GET", refuse: func(w http.ResponseWriter) { reporttest.Fail(w, 403, "Forbidden") }},
		"write is forbidden":  {method: "PATCH", refuse: func(w http.ResponseWriter) { reporttest.Fail(w, 403, "Forbidden") }},
		"policy says invalid": {method: "PATCH", refuse: func(w http.ResponseWriter) { reporttest.Fail(w, 422, "Invalid") }},
		"conflict":            {method: "PATCH", refuse: func(w http.ResponseWriter) { reporttest.Fail(w, 409, "Conflict") }},
		"server error":        {method: "GET", refuse: func(w http.ResponseWriter) { reporttest.Fail(w, 500, "InternalError") }},
		"no JSON":             {method: "GET", refuse: func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) }},
		"connection dropped":  {method: "GET", refuse: func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run := launched()
			if tc.change != nil {
				tc.change(&run)
			}
			api := reporttest.New(t, run)
			api.Intercept(func(w http.ResponseWriter, r *http.Request, n int) bool {
				if r.Method == tc.method && n <= 2 {
					tc.refuse(w)
					return true
				}
				if tc.method == "" && r.Method == "GET" && n == 3 {
					api.Change(func(r *reporttest.Run) { *r = launched() })
				}
				return false
			})
			claim(t, newClient(t, api, "pod-2"))
			if n := len(api.Writes()); n != 1 {
				t.Errorf("%d claims were written", n)
			}
		})
	}
}

func TestClaimGivesUp(t *testing.T) {
	run := launched()
	run.PodName = ""
	api := reporttest.New(t, run)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	api.Intercept(func(_ http.ResponseWriter, _ *http.Request, n int) bool {
		if n == 3 { // two answers were not what it waits for
			cancel()
		}
		return false
	})
	if _, err := newClient(t, api, "pod-2").Claim(ctx); err == nil || !strings.Contains(err.Error(), "does not name this pod yet") {
		t.Errorf("error %v", err)
	}
	if len(api.Writes()) != 0 {
		t.Error("a claim was written")
	}
}

// TestLostAnswerToTheClaim: the claim went through, its answer did not.
func TestLostAnswerToTheClaim(t *testing.T) {
	api := reporttest.New(t, launched())
	api.Intercept(func(_ http.ResponseWriter, r *http.Request, n int) bool {
		if r.Method == "PATCH" && n == 1 {
			api.Take(r)
			panic(http.ErrAbortHandler)
		}
		return false
	})
	claim(t, newClient(t, api, "pod-2"))
	if n := len(api.Writes()); n != 1 {
		t.Errorf("%d claims were written", n)
	}
}

// TestTwoPods lets two pods claim at once: whatever the order, one wins.
func TestTwoPods(t *testing.T) {
	for range 20 {
		api := reporttest.New(t, launched())
		// Both have the same name, since names are derived; the UIDs differ.
		a, b := newClient(t, api, "pod-2"), twin(t, api)
		results := make(chan error, 2)
		for _, c := range []*report.Client{a, b} {
			go func() {
				_, err := c.Claim(t.Context())
				results <- err
			}()
		}
		won := 0
		for range 2 {
			if err := <-results; err == nil {
				won++
			} else if !strings.Contains(err.Error(), "has the claim") {
				t.Errorf("error %v", err)
			}
		}
		if won != 1 || len(api.Writes()) != 1 {
			t.Fatalf("%d pods won, %d claims were written", won, len(api.Writes()))
		}
	}
}

func twin(t *testing.T, api *reporttest.API) *report.Client {
	t.Helper()
	c, err := report.New(report.Config{
		API: api.Config(), Run: contract.RunRef{Namespace: "team-a", Name: "r", UID: "u", Generation: 2},
		BundleDigest: digest, Pod: report.Pod{Name: "pod-2", UID: "twin"}, Now: time.Now, FirstWait: 2 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWrites(t *testing.T) {
	tests := map[string]struct {
		refuse    func(http.ResponseWriter)
		times     int // -1: always
		wantErr   bool
		wantQuick bool // one attempt
	}{
		"at once":                  {},
		"server error, then taken": {refuse: func(w http.ResponseWriter) { reporttest.Fail(w, 503, "ServiceUnavailable") }, times: 3},
		"dropped, then taken":      {refuse: func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, times: 3},
		"forbidden for a moment":   {refuse: func(w http.ResponseWriter) { reporttest.Fail(w, 403, "Forbidden") }, times: 3},
		"conflict for a moment":    {refuse: func(w http.ResponseWriter) { reporttest.Fail(w, 409, "Conflict") }, times: 3},
		"forbidden for good":       {refuse: func(w http.ResponseWriter) { reporttest.Fail(w, 403, "Forbidden") }, times: -1, wantErr: true},
		"gone":                     {refuse: func(w http.ResponseWriter) { reporttest.Fail(w, 404, "NotFound") }, times: -1, wantErr: true, wantQuick: true},
		"invalid":                  {refuse: func(w http.ResponseWriter) { reporttest.Fail(w, 422, "Invalid") }, times: -1, wantErr: true, wantQuick: true},
		"too large":                {refuse: func(w http.ResponseWriter) { reporttest.Fail(w, 413, "RequestEntityTooLarge") }, times: -1, wantErr: true, wantQuick: true},
		"down for good":            {refuse: func(w http.ResponseWriter) { reporttest.Fail(w, 500, "InternalError") }, times: -1, wantErr: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			api := reporttest.New(t, launched())
			c := newClient(t, api, "pod-2")
			e := claim(t, c).Execution
			e.Fail(contract.Faultf(contract.ReasonTimeout, "t"))
			api.Intercept(func(w http.ResponseWriter, _ *http.Request, n int) bool {
				if tc.refuse == nil || tc.times >= 0 && n-1 > tc.times {
					return false
				}
				tc.refuse(w)
				return true
			})
			err := c.WriteThrough(t.Context(), e)
			if (err != nil) != tc.wantErr {
				t.Fatalf("error %v, want one: %v", err, tc.wantErr)
			}
			if n := api.Count("PATCH"); tc.wantQuick && n != 2 {
				t.Errorf("it was tried %d times", n-1)
			}
			if err == nil {
				if diff := cmp.Diff(e, api.Writes()[1]); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestWriteEndsWithItsContext(t *testing.T) {
	api := reporttest.New(t, launched())
	c := newClient(t, api, "pod-2")
	e := claim(t, c).Execution
	api.Intercept(func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		_, _ = io.Copy(io.Discard, r.Body) // only then a lost client is seen
		<-r.Context().Done()
		return true
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := c.WriteThrough(ctx, e); err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("it took %s", d)
	}
}

func TestStopReason(t *testing.T) {
	tests := map[string]struct {
		change func(*reporttest.Run)
		want   contract.Reason
	}{
		"nothing changed":      {func(*reporttest.Run) {}, contract.ReasonInterrupted},
		"ttl changed":          {func(r *reporttest.Run) { r.Spec["ttlAfterFinished"] = "1h" }, contract.ReasonInterrupted},
		"cancelled":            {func(r *reporttest.Run) { r.Spec["cancel"] = true }, contract.ReasonCancelled},
		"deleted":              {func(r *reporttest.Run) { r.Deleting = true }, contract.ReasonCancelled},
		"gone":                 {func(r *reporttest.Run) { r.Name = "s" }, contract.ReasonCancelled},
		"made anew":            {func(r *reporttest.Run) { r.UID = "v" }, contract.ReasonCancelled},
		"spec changed":         {func(r *reporttest.Run) { r.Spec["input"] = 2 }, contract.ReasonSuperseded},
		"digest moved on":      {func(r *reporttest.Run) { r.ExecutionDigest = "sha256:other" }, contract.ReasonSuperseded},
		"generation moved on":  {func(r *reporttest.Run) { r.ExecutionGeneration = 3 }, contract.ReasonSuperseded},
		"cancelled and edited": {func(r *reporttest.Run) { r.Spec["cancel"], r.Spec["input"] = true, 2 }, contract.ReasonCancelled},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			api := reporttest.New(t, launched())
			c := newClient(t, api, "pod-2")
			claimed := claim(t, c)
			api.Change(tc.change)
			if f := c.StopReason(t.Context(), claimed); f.Reason != tc.want {
				t.Errorf("fault %v, want %s", f, tc.want)
			}
		})
	}
}
