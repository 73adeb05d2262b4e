package tools

import (
	"strings"
	"sync"
)

// Received is one call as it came in.
type Received struct {
	Path string `json:"path"`
	// Key is the Idempotency-Key.
	Key string `json:"key"`
	// Bearer is None, Expected or Other: the token itself is never kept.
	Bearer string `json:"bearer"`
	// Run is the name of the run, when the call carried it.
	Run       string `json:"run,omitempty"`
	Arguments string `json:"arguments"`
}

// maxReceived bounds the log: the oldest entries go first.
const maxReceived = 10_000

// ledger remembers what came in. It is safe for concurrent use.
type ledger struct {
	mu     sync.Mutex
	calls  []Received
	orders map[string]*Receipt // by Idempotency-Key
}

func newLedger() *ledger { return &ledger{orders: map[string]*Receipt{}} }

func (l *ledger) record(r Received) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.calls) == maxReceived {
		l.calls = l.calls[1:]
	}
	l.calls = append(l.calls, r)
}

func (l *ledger) list(prefix string) []Received {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []Received{}
	for _, c := range l.calls {
		if strings.HasPrefix(c.Key, prefix) {
			out = append(out, c)
		}
	}
	return out
}

// order returns the receipt of the key and counts the request; the first one
// makes the order, which is told its number from 1.
func (l *ledger) order(key string, place func(n int) Receipt) Receipt {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.orders[key]
	if !ok {
		placed := place(len(l.orders) + 1)
		r = &placed
		l.orders[key] = r
	}
	r.Requests++
	return *r
}

// gates are doors that calls wait at until someone opens them; an opened gate
// stays open.
type gates struct {
	mu sync.Mutex
	by map[string]*gate
}

type gate struct {
	opened chan struct{}
	once   sync.Once
}

func newGates() *gates { return &gates{by: map[string]*gate{}} }

func (g *gates) get(name string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by[name] == nil {
		g.by[name] = &gate{opened: make(chan struct{})}
	}
	return g.by[name]
}

func (g *gates) wait(name string) <-chan struct{} { return g.get(name).opened }

func (g *gates) open(name string) {
	d := g.get(name)
	d.once.Do(func() { close(d.opened) })
}
