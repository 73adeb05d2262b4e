package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/codeact-dev/codeact-operator/runtime/broker"
)

// exchange is one request of ours to the server and what the wire shows of it.
// The transport fills it while the SDK waits: what a call did is read from here,
// not from the SDK's error, which has forgotten most of it.
type exchange struct {
	method string      // the JSON-RPC method that it is about; "" while a session opens
	tool   string      // whose credential is sent
	header http.Header // what its POST carries beside what every request does
	limit  int64       // of one response, in bytes
	values int         // the same, in JSON values; 0 is maxValues
	resume bool        // a lost answer may be asked for again
	// giveUp ends the request: its answer can no longer come.
	giveUp context.CancelCauseFunc

	mu       sync.Mutex
	posted   bool        // the call was handed to the network
	sent     func() bool // whether a byte of it can have left; nil before it was posted
	id       string      // JSON text of the request's id
	status   int         // of the response to the POST; 0 without one
	retry    time.Duration
	answer   *message // the first answer to the request
	tooLarge int64    // bytes of an answer that was too large to read
	flood    bool     // the server sent more than it may beside the answer
	resumed  int
	failure  *broker.Failure // the transport's own
	progress func(done, total float64)
	told     int
}

// maxResumes bounds how often one lost answer is asked for; maxProgress bounds
// how often one call is told how far the tool is.
const (
	maxResumes  = 16
	maxProgress = 1000
)

type exchangeKey struct{}

func (x *exchange) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// post reports whether the request may go out now: once, and never again.
func (x *exchange) post(id string, sent func() bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.posted {
		return false
	}
	x.posted, x.id, x.sent = true, id, sent
	return true
}

// mayResume reports whether the answer may be asked for once more. If it may not,
// nobody waits for it any longer.
func (x *exchange) mayResume() bool {
	x.mu.Lock()
	x.resumed++
	ok := x.resume && x.resumed <= maxResumes
	x.mu.Unlock()
	if !ok {
		x.lost()
	}
	return ok
}

// ended is told that a stream which was to bring the answer is over.
func (x *exchange) ended() {
	x.mu.Lock()
	lost := x.answer == nil && !x.resume
	x.mu.Unlock()
	if lost {
		x.lost() // the SDK would wait a second before it asks whether it may resume
	}
}

func (x *exchange) lost() {
	if x.giveUp != nil {
		x.giveUp(errLost)
	}
}

func (x *exchange) note(f func(*exchange)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f(x)
}

// fail keeps the first failure of the transport's own.
func (x *exchange) fail(f *broker.Failure) {
	x.note(func(x *exchange) {
		if x.failure == nil {
			x.failure = f
		}
	})
}

// take keeps the first answer with the request's id, and reports whether m is
// one. A request that never was posted has no id, and no answer.
func (x *exchange) take(m *message) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.id == "" || string(m.ID) != x.id {
		return false
	}
	if x.answer == nil {
		x.answer = m
	}
	return true
}

// tell passes progress on, until the call is over or has heard enough.
func (x *exchange) tell(done, total float64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.told++; x.progress != nil && x.told <= maxProgress {
		x.progress(done, total)
	}
}

// over closes the exchange: what comes later changes nothing.
func (x *exchange) over() {
	x.note(func(x *exchange) { x.progress, x.id = nil, "" })
}

// left reports whether a byte of the request can have left.
func (x *exchange) left() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sent != nil && x.sent()
}

// message is one JSON-RPC message of the server, in the server's own bytes.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

type rpcError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

// asks reports whether m is a request, which has an answer.
func (m *message) asks() bool { return m != nil && m.Method != nil && len(m.ID) > 0 }

// parse reads one message, or returns nil.
func parse(text []byte) *message {
	m := &message{}
	if json.Unmarshal(text, m) != nil {
		return nil
	}
	m.ID = bytes.TrimSpace(m.ID)
	if string(m.ID) == "null" {
		m.ID = nil
	}
	return m
}

// startsAnswer reports whether text, which is cut, is the start of an answer: a
// message whose result is what made it long.
func startsAnswer(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return false
	}
	for {
		key, err := d.Token()
		if err != nil {
			return false
		}
		if key == "result" {
			return true
		}
		var skipped json.RawMessage
		if key == "method" || d.Decode(&skipped) != nil {
			return false
		}
	}
}
