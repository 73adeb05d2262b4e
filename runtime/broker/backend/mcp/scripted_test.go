package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// scripted is an MCP server of the protocol before 2026, written out by hand, so
// that it can do what no library lets a server do.
type scripted struct {
	*httptest.Server
	session string                                                        // its session id; "" for none
	list    func(cursor string) string                                    // result of tools/list
	call    func(w http.ResponseWriter, r *http.Request, m scriptMessage) // answers tools/call
	open    http.HandlerFunc                                              // answers initialize
	get     http.HandlerFunc                                              // answers GET; 405 without it

	end http.HandlerFunc // answers DELETE; 405 without it

	mu   sync.Mutex
	seen []string // methods of POSTs, "DELETE", "GET", ..
	auth []string // Authorization headers
	said []string // bodies of what is no request
}

type scriptMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name   string `json:"name"`
		Cursor string `json:"cursor"`
	} `json:"params"`
}

func script(t *testing.T, s *scripted) *scripted {
	t.Helper()
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	if s.list == nil {
		s.list = func(string) string { return declares(`{"name":"x","inputSchema":{"type":"object"}}`) }
	}
	return s
}

func declares(tools string) string { return `{"tools":[` + tools + `]}` }

func (s *scripted) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, x := range s.seen {
		if x == what {
			n++
		}
	}
	return n
}

func (s *scripted) note(r *http.Request, what string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, what)
	s.auth = append(s.auth, r.Header.Get("Authorization"))
	if what == "POST " {
		s.said = append(s.said, string(body))
	}
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m scriptMessage
	_ = json.Unmarshal(body, &m)
	what := r.Method
	if r.Method == http.MethodPost {
		what += " " + m.Method
	}
	s.note(r, what, body)
	switch {
	case r.Method == http.MethodGet && s.get != nil:
		s.get(w, r)
	case r.Method == http.MethodDelete && s.end != nil:
		s.end(w, r)
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.Method == "initialize" && s.open != nil:
		s.open(w, r)
	case m.Method == "initialize":
		if s.session != "" {
			w.Header().Set("Mcp-Session-Id", s.session)
		}
		respond(w, m, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}`)
	case m.Method == "tools/list":
		respond(w, m, s.list(m.Params.Cursor))
	case m.Method == methodCall:
		s.call(w, r, m)
	case len(m.ID) > 0 && m.Method != "":
		respondError(w, m, -32601, "unknown method")
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func respond(w http.ResponseWriter, m scriptMessage, result string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func respondError(w http.ResponseWriter, m scriptMessage, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	quoted, _ := json.Marshal(text)
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, m.ID, code, quoted)
}

// stream starts an event stream and returns what sends one event.
func stream(w http.ResponseWriter) (send func(data string)) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush()
	return func(data string) {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
		_ = flush()
	}
}

// results is a server whose only tool answers with this result.
func results(t *testing.T, result string) *scripted {
	t.Helper()
	return script(t, &scripted{call: func(w http.ResponseWriter, _ *http.Request, m scriptMessage) { respond(w, m, result) }})
}
