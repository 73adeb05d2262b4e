// Package reporttest is an API server of one AgentRun for tests of failures. It
// knows versions, UIDs and nothing of policy; what a real API server does is
// shown elsewhere.
package reporttest

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// API serves one AgentRun.
type API struct {
	server *httptest.Server

	mu      sync.Mutex
	run     Run
	version int
	writes  []contract.Execution
	maps    map[string]corev1.ConfigMap
	// intercept may answer a request itself; the number counts the requests of
	// the method from 1.
	intercept func(w http.ResponseWriter, r *http.Request, n int) (answered bool)
	counts    map[string]int
	problems  []string
}

// Run is the AgentRun as the test writes it.
type Run struct {
	Namespace, Name, UID string
	Deleting             bool
	Spec                 map[string]any
	ExecutionGeneration  int64
	ExecutionDigest      string
	PodName              string
	PinnedDigest         string
	Ended                bool
	Execution            *contract.Execution
}

// New starts an API server with the run.
func New(t *testing.T, run Run) *API {
	t.Helper()
	a := &API{run: run, version: 1, counts: map[string]int{}, maps: map[string]corev1.ConfigMap{}}
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(func() {
		a.server.CloseClientConnections()
		a.server.Close()
		for _, p := range a.problems {
			t.Error(p)
		}
	})
	return a
}

// Config is how a client reaches the server.
func (a *API) Config() *rest.Config { return &rest.Config{Host: a.server.URL} }

// Intercept sets what may answer requests instead of the server.
func (a *API) Intercept(f func(w http.ResponseWriter, r *http.Request, n int) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.intercept = f
}

// Change changes the run, as the controller or a user would.
func (a *API) Change(f func(*Run)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.run)
	a.version++
}

// Writes returns every accepted report in its order.
func (a *API) Writes() []contract.Execution {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]contract.Execution(nil), a.writes...)
}

// Count returns how many requests of a method came.
func (a *API) Count(method string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts[method]
}

// ConfigMaps returns what was created, by name.
func (a *API) ConfigMaps() map[string]corev1.ConfigMap {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.maps)
}

// Take takes a write and loses the answer.
func (a *API) Take(r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Method == http.MethodPost {
		a.create(httptest.NewRecorder(), r)
		return
	}
	a.patch(httptest.NewRecorder(), r)
}

// create takes a ConfigMap, once under each name.
func (a *API) create(w http.ResponseWriter, r *http.Request) {
	var cm corev1.ConfigMap
	if err := json.NewDecoder(r.Body).Decode(&cm); err != nil {
		a.problems = append(a.problems, "create: "+err.Error())
		Fail(w, http.StatusBadRequest, "BadRequest")
		return
	}
	if _, there := a.maps[cm.Name]; there {
		Fail(w, http.StatusConflict, "AlreadyExists")
		return
	}
	a.maps[cm.Name] = cm
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(cm)
}

func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.counts[r.Method]++
	n, intercept := a.counts[r.Method], a.intercept
	a.mu.Unlock()
	if intercept != nil && intercept(w, r, n) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	path := "/apis/codeact.dev/v1alpha1/namespaces/" + a.run.Namespace + "/agentruns/" + a.run.Name
	switch {
	case r.Method == http.MethodGet && r.URL.Path == path:
		a.answer(w)
	case r.Method == http.MethodPatch && r.URL.Path == path+"/status":
		a.patch(w, r)
	case r.Method == http.MethodPost && r.URL.Path == "/api/v1/namespaces/"+a.run.Namespace+"/configmaps":
		a.create(w, r)
	default:
		Fail(w, http.StatusNotFound, "NotFound")
	}
}

func (a *API) patch(w http.ResponseWriter, r *http.Request) {
	if got := r.Header.Get("Content-Type"); !strings.HasPrefix(got, "application/apply-patch+yaml") {
		a.problems = append(a.problems, "patch with content type "+got)
	}
	if q := r.URL.Query(); q.Get("fieldManager") != contract.RuntimeFieldManager || q.Get("force") != "true" {
		a.problems = append(a.problems, "patch with query "+r.URL.RawQuery)
	}
	var p struct {
		APIVersion, Kind string
		Metadata         struct{ Namespace, Name, UID, ResourceVersion string }
		Status           struct{ Execution contract.Execution }
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		a.problems = append(a.problems, "patch: "+err.Error())
		Fail(w, http.StatusBadRequest, "BadRequest")
		return
	}
	if p.APIVersion != "codeact.dev/v1alpha1" || p.Kind != "AgentRun" || p.Metadata.Name != a.run.Name {
		a.problems = append(a.problems, "patch of another object")
	}
	if p.Metadata.UID != a.run.UID || p.Metadata.ResourceVersion != "" && p.Metadata.ResourceVersion != strconv.Itoa(a.version) {
		Fail(w, http.StatusConflict, "Conflict")
		return
	}
	a.version++
	a.run.Execution = &p.Status.Execution
	a.writes = append(a.writes, p.Status.Execution)
	a.answer(w)
}

func (a *API) answer(w http.ResponseWriter) {
	meta := map[string]any{
		"namespace": a.run.Namespace, "name": a.run.Name, "uid": a.run.UID, "resourceVersion": strconv.Itoa(a.version),
	}
	if a.run.Deleting {
		meta["deletionTimestamp"] = "2026-01-02T03:04:05Z"
	}
	status := map[string]any{
		"executionGeneration": a.run.ExecutionGeneration, "executionDigest": a.run.ExecutionDigest, "podName": a.run.PodName,
	}
	if a.run.PinnedDigest != "" {
		status["pinned"] = map[string]any{"digest": a.run.PinnedDigest}
	}
	if a.run.Ended {
		status["completionTime"] = "2026-01-02T03:04:05Z"
	}
	if a.run.Execution != nil {
		status["execution"] = a.run.Execution
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "codeact.dev/v1alpha1", "kind": "AgentRun", "metadata": meta, "spec": a.run.Spec, "status": status,
	})
}

// Fail answers as an API server fails.
func Fail(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "test says " + reason,
	})
}
