package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// moment is when the wire dies during the call of a tool.
type moment string

const (
	whileConnecting moment = "while connecting"
	inTheRequest    moment = "in the request"
	beforeForward   moment = "request read, not forwarded"
	afterForward    moment = "request forwarded, no answer"
	inTheHeaders    moment = "in the answer's headers"
	inTheAnswer     moment = "in the answer's first event"
)

// wire is a TCP proxy that knows HTTP: it counts what passes, request by request,
// and kills the connection of a tools/call at its moment, as often as it is told.
type wire struct {
	net.Listener
	upstream string
	mu       sync.Mutex
	kill     moment
	times    int
	sent     []string // "POST tools/call", "GET", "GET resume", "DELETE", ..
	calls    int      // tools/call that reached the server
}

func newWire(t *testing.T, upstream string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, upstream: strings.TrimPrefix(upstream, "http://")}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.serve(c)
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return w
}

func (w *wire) url() string { return "http://" + w.Addr().String() }

func (w *wire) set(m moment, times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kill, w.times = m, times
}

func (w *wire) count(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, s := range w.sent {
		if s == what {
			n++
		}
	}
	return n
}

func (w *wire) reached() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls
}

// reset closes with RST, as a process that dies.
func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// strike reports whether this connection dies at m.
func (w *wire) strike(m moment) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kill != m || w.times == 0 {
		return false
	}
	w.times--
	return true
}

func (w *wire) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	if w.strike(whileConnecting) {
		reset(c)
		return
	}
	in := bufio.NewReader(c)
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	if r.Method == http.MethodPost && r.Header.Get(headerIdempotency) != "" && w.strike(inTheRequest) {
		w.note("POST tools/call")
		reset(c)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var m struct {
		Method string `json:"method"`
	}
	_ = json.Unmarshal(body, &m)
	what := strings.TrimSpace(r.Method + " " + m.Method)
	if r.Header.Get(headerResume) != "" {
		what += " resume"
	}
	w.note(what)
	call := m.Method == methodCall
	if call && w.strike(beforeForward) {
		reset(c)
		return
	}
	up, err := net.Dial("tcp", w.upstream)
	if err != nil {
		return
	}
	defer func() { _ = up.Close() }()
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if r.Write(up) != nil {
		return
	}
	if call {
		w.mu.Lock()
		w.calls++
		w.mu.Unlock()
	}
	w.answer(c, up, call)
}

func (w *wire) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, what)
}

func (w *wire) answer(c, up net.Conn, call bool) {
	if call && w.strike(afterForward) {
		// The server has it when it starts to answer.
		_, _ = io.ReadFull(up, make([]byte, 1))
		reset(c)
		return
	}
	out := bufio.NewReader(up)
	if call && w.strike(inTheHeaders) {
		line, _ := out.ReadString('\n')
		_, _ = io.WriteString(c, line)
		reset(c)
		return
	}
	if call && w.strike(inTheAnswer) {
		w.half(c, out)
		return
	}
	go func() { _, _ = io.Copy(io.Discard, c); _ = up.Close() }()
	_, _ = io.Copy(c, out)
}

// half passes the headers and, of an event stream, what is before the answer.
func (w *wire) half(c net.Conn, out *bufio.Reader) {
	for {
		line, err := out.ReadString('\n')
		if err != nil || strings.HasPrefix(line, "data: {") && strings.Contains(line, `"result"`) || strings.HasPrefix(line, "{") {
			break
		}
		_, _ = io.WriteString(c, line)
	}
	reset(c)
}
