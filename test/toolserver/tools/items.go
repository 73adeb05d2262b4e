package tools

import (
	"encoding/json"
	"net/http"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Item is what /items answers: the request as it came.
type Item struct {
	ID    string              `json:"id"`
	Path  string              `json:"path"`
	Query map[string][]string `json:"query"`
	Shop  string              `json:"shop"`
}

func (s *server) item(w http.ResponseWriter, r *http.Request) {
	s.ledger.record(Received{
		Path: r.URL.EscapedPath(), Key: r.Header.Get("Idempotency-Key"), Bearer: s.bearer(r), Run: r.Header.Get("Codeact-Run-Name"),
	})
	answer(w, http.StatusOK, Item{ID: r.PathValue("id"), Path: r.URL.EscapedPath(), Query: r.URL.Query(), Shop: r.Header.Get("X-Shop")})
}

// flaky answers 503 to the first requests of each Idempotency-Key.
func (s *server) flaky(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
	n := len(s.ledger.list(r.Header.Get("Idempotency-Key")))
	if n <= number(r, "fails", 1, 100) {
		problem(w, http.StatusServiceUnavailable, "not yet")
		return
	}
	answer(w, http.StatusOK, map[string]int{"attempt": n})
}

// show answers with a picture beside the value, and a receipt.
func (s *server) show(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
	body, err := json.Marshal(map[string]any{
		"value": map[string]bool{"shown": true}, "receipt": "receipt-of-" + r.Header.Get("Idempotency-Key"),
		"media": contract.Media{
			Marker: contract.MediaMarker, Text: "the shelf", Geometry: contract.Geometry{Width: 1, Height: 1},
			Pictures: []contract.Picture{{MIMEType: "image/gif", Data: pixel}},
		},
	})
	if err != nil {
		problem(w, http.StatusInternalServerError, "no picture")
		return
	}
	w.Header().Set("Content-Type", contract.ResultMediaType)
	_, _ = w.Write(body) // the client is gone if this fails
}

// leak answers with the credential that it got: a tool that must not be trusted.
func (s *server) leak(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
	answer(w, max(number(r, "status", 200, 599), 200), map[string]string{"title": "got " + token(r), "value": token(r)})
}
