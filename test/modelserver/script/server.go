package script

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Config says how the server behaves.
type Config struct {
	// TokenFile holds the bearer token that every request must carry; it is read at
	// each one. Empty asks for none.
	TokenFile string
}

const (
	maxRequest = 8 << 20
	maxHold    = 2 * time.Minute
)

// Server is the handler.
type Server struct {
	config Config
	mux    *http.ServeMux
	book   *book
	mu     sync.Mutex
	gates  map[string]chan struct{}
}

// New returns a server without scripts.
func New(c Config) *Server {
	s := &Server{config: c, mux: http.NewServeMux(), book: newBook(), gates: map[string]chan struct{}{}}
	for _, root := range []string{"", "/s/{name}"} {
		s.mux.HandleFunc("POST "+root+"/v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, false) })
		s.mux.HandleFunc("POST "+root+"/v1/responses", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, true) })
	}
	s.mux.HandleFunc("POST /script", s.post)
	s.mux.HandleFunc("GET /log", func(w http.ResponseWriter, r *http.Request) {
		write(w, http.StatusOK, s.Log(r.URL.Query().Get("name")))
	})
	s.mux.HandleFunc("POST /release", func(w http.ResponseWriter, r *http.Request) {
		s.Release(r.URL.Query().Get("name"))
		w.WriteHeader(http.StatusNoContent)
	})
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Play sets the script of a name, from its beginning.
func (s *Server) Play(name string, x Script) { s.book.play(name, x) }

// Log returns what came in for a script, in order; "" is for all.
func (s *Server) Log(name string) []Received { return s.book.list(name) }

// Release lets the turns go on that wait at the gate of that name, now and later.
func (s *Server) Release(name string) {
	g := s.gate(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-g:
	default:
		close(g)
	}
}

func (s *Server) gate(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates[name] == nil {
		s.gates[name] = make(chan struct{})
	}
	return s.gates[name]
}

func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	d.DisallowUnknownFields()
	var x Script
	if err := d.Decode(&x); err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	s.Play(r.URL.Query().Get("name"), x)
	w.WriteHeader(http.StatusNoContent)
}

// answer plays one turn.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, responses bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		problem(w, http.StatusRequestEntityTooLarge, "the request is too large")
		return
	}
	a, err := read(body, responses)
	got := Received{Name: r.PathValue("name"), User: a.User, Path: r.URL.Path, Bearer: s.bearer(r), Headers: slices.Sorted(maps.Keys(r.Header)), Body: body}
	if got.Name == "" {
		got.Name = a.User
	}
	x, known := s.book.script(got.Name)
	status := http.StatusBadRequest
	switch {
	case err != nil:
		got.Problem = "the request cannot be read: " + err.Error()
		got.Body, _ = json.Marshal(string(body))
	case !known:
		status, got.Problem = http.StatusNotFound, "there is no script of the name "+strconv.Quote(got.Name)
	case s.config.TokenFile != "" && got.Bearer != "Expected":
		status, got.Problem = http.StatusUnauthorized, "the credential is not the expected one"
	case x.Stream == StreamRefused && a.Stream:
		got.Problem = "Unsupported parameter: 'stream' is not supported with this model."
	case x.Stream == StreamOptionsRefused && a.StreamOptions != nil:
		got.Problem = "Unrecognized request argument supplied: stream_options"
	default:
		got.Problem = a.check(x)
	}
	if got.Problem != "" {
		s.book.record(got)
		problem(w, status, got.Problem)
		return
	}
	t, n := s.book.next(place{got.Name, a.User}, x)
	if got.Turn = n; n == 0 {
		got.Problem = "the script has no further turn"
	} else {
		got.Problem = a.checkTurn(t, x)
	}
	s.book.record(got)
	if got.Problem != "" {
		problem(w, status, got.Problem)
		return
	}
	a.Stream = a.Stream && x.Stream != StreamIgnored
	s.play(w, r, t.called(n), a, responses)
}

// play waits as the turn says, then writes it.
func (s *Server) play(w http.ResponseWriter, r *http.Request, t Turn, a asked, responses bool) {
	if t.Hold != "" {
		timer := time.NewTimer(maxHold)
		defer timer.Stop()
		select {
		case <-s.gate(t.Hold):
		case <-timer.C:
			problem(w, http.StatusGatewayTimeout, "nobody released the gate")
			return
		case <-r.Context().Done():
			return
		}
	}
	if !wait(r, t.DelayMs) {
		return
	}
	for k, v := range t.Headers {
		w.Header().Set(k, v)
	}
	if t.RetryAfter != "" {
		w.Header().Set("Retry-After", t.RetryAfter)
	}
	switch {
	case t.Cut == CutBefore:
		panic(http.ErrAbortHandler)
	case t.Raw != "":
		w.Header().Set("Content-Type", orElse(t.ContentType, "application/json"))
		w.WriteHeader(max(t.Status, http.StatusOK))
		_, _ = io.WriteString(w, t.Raw)
	case t.Status != 0 && t.Status != http.StatusOK:
		problem(w, t.Status, orElse(t.Error, "it fails, as it was asked to"))
	case a.Stream:
		(&stream{w: w, r: r, turn: t, asked: a}).write(responses)
	case t.Error != "":
		problem(w, http.StatusOK, t.Error)
	case responses:
		document(w, t, responseDocument(t, a.Model))
	default:
		document(w, t, chatDocument(t, a.Model))
	}
}

// document writes a whole answer, or its first half.
func document(w http.ResponseWriter, t Turn, v any) {
	if t.Cut == CutNone {
		write(w, http.StatusOK, v)
		return
	}
	raw, _ := json.Marshal(v) // of maps and strings
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	_, _ = w.Write(raw[:len(raw)/2])
	_ = http.NewResponseController(w).Flush() // the client is gone if this fails
	panic(http.ErrAbortHandler)
}

// bearer says whether the request carries the expected token.
func (s *Server) bearer(r *http.Request) string {
	got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return "None"
	}
	want, err := os.ReadFile(s.config.TokenFile)
	if s.config.TokenFile != "" && err == nil && got == strings.TrimSpace(string(want)) {
		return "Expected"
	}
	return "Other"
}

func wait(r *http.Request, ms int64) bool {
	if ms <= 0 {
		return true
	}
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone if this fails
}

// problem writes an error object in OpenAI's form.
func problem(w http.ResponseWriter, status int, text string) {
	write(w, status, map[string]any{"error": errorObject(text)})
}

func errorObject(text string) map[string]any {
	return map[string]any{"message": text, "type": "scripted_error", "param": nil, "code": nil}
}
