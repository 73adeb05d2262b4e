// Package tools is the handler of the tool server: a few honest tools, and every
// kind of misbehaviour that a broker must stand. What came in can be read from
// /log; a credential is never kept or printed, only whether it was the expected
// one.
//
//	POST /lookup           {"sku"} -> the article; unknown: 404
//	POST /order            {"sku","quantity"} -> a receipt; one order for each Idempotency-Key
//	POST /echo             the arguments, and which run called
//	POST /auth             200 with the expected bearer token, else 401
//	POST /review?audience= 200 with a ServiceAccount token for that audience, else 401
//	POST /fail?status=500  that status
//	POST /slow?ms=5000     an answer after that time
//	POST /hold?name=x      an answer after POST /release?name=x
//	POST /huge?bytes=N     a JSON string of N bytes
//	POST /notjson          text
//	POST /redirect         307 to /lookup
//	POST /break            a connection that ends in the middle of the answer
//	     /mcp              an MCP server over streamable HTTP with the tools of MCPTools
//	     /mcp-stateless    the same without sessions
//	POST /flaky?fails=N    503 to the first N requests of an Idempotency-Key, then the number of the attempt
//	POST /show             a picture beside the value, and a receipt
//	POST /leak?status=200  the credential that came: a tool that must not be trusted
//	GET  /items/{id}       the request as it came; DELETE, too
//	POST /v1/traces        spans, by OTLP over HTTP
//	GET  /traces           what spans came
//	GET  /ca               the authority that the TLS certificate is known by
//	GET  /log?prefix=K     what came in, with Idempotency-Keys that begin with K
//	GET  /healthz
package tools

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Config says how the server behaves.
type Config struct {
	// TokenFile holds the bearer token that /auth expects; it is read at each call.
	TokenFile string
	// Reviewer checks ServiceAccount tokens for /review; nil refuses them all.
	Reviewer Reviewer
	// CA is the PEM text that /ca answers with.
	CA []byte
}

const (
	maxArguments = 1 << 20
	maxHold      = 2 * time.Minute
)

type server struct {
	Config
	ledger *ledger
	gates  *gates
}

// New returns the handler.
func New(c Config) http.Handler {
	s := &server{Config: c, ledger: newLedger(), gates: newGates()}
	mux := http.NewServeMux()
	for path, tool := range map[string]func(http.ResponseWriter, *http.Request, json.RawMessage){
		"/lookup": s.lookup, "/order": s.order, "/echo": s.echo, "/auth": s.auth, "/review": s.review,
		"/fail": s.fail, "/slow": s.slow, "/hold": s.hold, "/huge": s.huge,
		"/flaky": s.flaky, "/show": s.show, "/leak": s.leak, "/notjson": s.notJSON, "/redirect": s.redirect, "/break": s.breakOff,
	} {
		mux.HandleFunc("POST "+path, s.recorded(tool))
	}
	mux.Handle("/mcp", s.mcp(false))
	mux.Handle("/mcp-stateless", s.mcp(true))
	mux.HandleFunc("GET /log", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, s.ledger.list(r.URL.Query().Get("prefix")))
	})
	mux.HandleFunc("POST /release", func(w http.ResponseWriter, r *http.Request) {
		s.gates.open(r.URL.Query().Get("name"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /items/{id}", s.item)
	mux.HandleFunc("DELETE /items/{id}", s.item)
	spans := &traces{}
	mux.HandleFunc("POST /v1/traces", spans.take)
	mux.HandleFunc("GET /traces", spans.list)
	mux.HandleFunc("GET /ca", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(c.CA) })
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return mux
}

// recorded reads the arguments and writes the call down before the tool runs.
func (s *server) recorded(tool func(http.ResponseWriter, *http.Request, json.RawMessage)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxArguments+1))
		if err != nil || len(body) > maxArguments {
			problem(w, http.StatusRequestEntityTooLarge, "the arguments are too large")
			return
		}
		s.ledger.record(Received{
			Path: r.URL.Path, Key: r.Header.Get("Idempotency-Key"), Bearer: s.bearer(r),
			Run: r.Header.Get("Codeact-Run-Name"), Arguments: string(body),
		})
		if !json.Valid(body) {
			problem(w, http.StatusBadRequest, "the arguments are not JSON")
			return
		}
		tool(w, r, body)
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone if this fails
}

func problem(w http.ResponseWriter, status int, text string) {
	answer(w, status, map[string]string{"error": text})
}

// number reads a number of the query within [0, most], or def.
func number(r *http.Request, name string, def, most int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil || n < 0 || n > most {
		return def
	}
	return n
}

func (s *server) fail(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
	problem(w, max(number(r, "status", 500, 599), 200), "it fails, as it was asked to")
}

func (s *server) slow(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
	t := time.NewTimer(time.Duration(number(r, "ms", 5000, 120_000)) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		answer(w, http.StatusOK, map[string]bool{"slow": true})
	case <-r.Context().Done():
	}
}

func (s *server) hold(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
	t := time.NewTimer(maxHold)
	defer t.Stop()
	select {
	case <-s.gates.wait(r.URL.Query().Get("name")):
		answer(w, http.StatusOK, map[string]bool{"released": true})
	case <-t.C:
		problem(w, http.StatusGatewayTimeout, "nobody released the gate")
	case <-r.Context().Done():
	}
}

func (s *server) huge(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
	n := number(r, "bytes", 1<<20, 64<<20)
	w.Header().Set("Content-Type", "application/json")
	line := strings.Repeat("x", 64<<10)
	_, _ = io.WriteString(w, `"`)
	for ; n > len(line); n -= len(line) {
		if _, err := io.WriteString(w, line); err != nil {
			return
		}
	}
	_, _ = io.WriteString(w, line[:n]+`"`)
}

func (s *server) notJSON(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
	_, _ = io.WriteString(w, "It went well.\n")
}

func (s *server) redirect(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
	http.Redirect(w, r, "/lookup", http.StatusTemporaryRedirect)
}

// breakOff ends the connection before the answer does.
func (s *server) breakOff(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, `{"half":`)
	_ = http.NewResponseController(w).Flush() // the client is gone if this fails
	panic(http.ErrAbortHandler)
}
