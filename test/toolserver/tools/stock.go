package tools

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// article is what /lookup knows.
type article struct {
	SKU   string `json:"sku"`
	Name  string `json:"name"`
	Stock int64  `json:"stock"`
}

var articles = map[string]article{
	"bolt-m8":  {"bolt-m8", "Bolt M8 x 40", 12},
	"nut-m8":   {"nut-m8", "Nut M8", 480},
	"washer-8": {"washer-8", "Washer 8.4", 0},
}

// Receipt is what /order answers.
type Receipt struct {
	ID       string `json:"id"`
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
	// Requests counts how often this very order was sent.
	Requests int64 `json:"requests"`
}

func (s *server) lookup(w http.ResponseWriter, _ *http.Request, args json.RawMessage) {
	var in struct{ SKU string }
	if err := json.Unmarshal(args, &in); err != nil {
		problem(w, http.StatusBadRequest, "want an object with sku")
		return
	}
	a, ok := articles[in.SKU]
	if !ok {
		problem(w, http.StatusNotFound, "there is no such article")
		return
	}
	answer(w, http.StatusOK, a)
}

func (s *server) order(w http.ResponseWriter, r *http.Request, args json.RawMessage) {
	var in struct {
		SKU      string
		Quantity int64
	}
	if err := json.Unmarshal(args, &in); err != nil || articles[in.SKU].SKU == "" || in.Quantity < 1 {
		problem(w, http.StatusBadRequest, "want the sku of an article and a quantity from 1")
		return
	}
	key := r.Header.Get("Idempotency-Key")
	if key == "" {
		problem(w, http.StatusBadRequest, "an order needs an Idempotency-Key")
		return
	}
	answer(w, http.StatusOK, s.ledger.order(key, orderOf(in.SKU, in.Quantity)))
}

// orderOf makes the receipt of order n.
func orderOf(sku string, quantity int64) func(n int) Receipt {
	return func(n int) Receipt { return Receipt{ID: fmt.Sprintf("order-%04d", n), SKU: sku, Quantity: quantity} }
}

func (s *server) echo(w http.ResponseWriter, r *http.Request, args json.RawMessage) {
	run := map[string]string{}
	for name, header := range map[string]string{
		"namespace": "Codeact-Run-Namespace", "name": "Codeact-Run-Name", "uid": "Codeact-Run-Uid", "labels": "Codeact-Run-Labels",
	} {
		if v := r.Header.Get(header); v != "" {
			run[name] = v
		}
	}
	answer(w, http.StatusOK, map[string]any{"arguments": args, "run": run, "bearer": s.bearer(r)})
}
