package broker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	toolhttp "github.com/codeact-dev/codeact-operator/runtime/broker/backend/http"
)

// wire is a tool on a bare socket, so that nothing but the test decides what is
// on the wire.
type wire struct {
	url  string
	sent atomic.Int64 // requests that were read to their end
}

// listen answers every connection with act, once its request is read.
func listen(t *testing.T, act func(net.Conn)) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	w := &wire{url: "http://" + l.Addr().String()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					return
				}
				w.sent.Add(1)
				act(c)
			}()
		}
	}()
	return w
}

func says(text string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, text) }
}

// waits holds the connection until its other end is gone.
func waits(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func httpTool(t testing.TB, url string, e contract.Effect) broker.Tool {
	t.Helper()
	p := contract.PinnedTool{
		Tool:      contract.Tool{Name: "pay", Effect: e}.Defaulted(),
		Backend:   contract.Backend{HTTP: &contract.HTTPBackend{URL: url}},
		TimeoutMs: 10_000,
	}
	backend, err := toolhttp.New(contract.Bundle{Operator: contract.OperatorPolicy{AllowLoopback: true}}, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return broker.Tool{PinnedTool: p, Backend: backend}
}

func brokerOf(t *testing.T, tool broker.Tool, j broker.Journal) *broker.Broker {
	t.Helper()
	b, err := broker.New(broker.Config{
		Run: contract.RunRef{Namespace: "n", Name: "r", UID: "u", Generation: 1}, Limits: contract.DefaultLimits(),
		Tools: []broker.Tool{tool}, Journal: j, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// file is a journal in a file, as it would be found after the process is gone.
type file string

func (f file) Record(_ context.Context, calls []contract.Call, _ int64) error {
	text, err := json.Marshal(calls)
	if err != nil {
		return err
	}
	tmp := string(f) + ".new"
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, string(f))
}

func (f file) state(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(string(f))
	if os.IsNotExist(err) {
		return "-"
	}
	var calls []contract.Call
	if err == nil {
		err = json.Unmarshal(text, &calls)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(calls[len(calls)-1].State)
}

// failed is how one call ended: the program's or the run's reason, the journal in
// the report, the journal as it was last written through, and the requests that
// reached the tool.
type failed struct {
	reason  contract.Reason
	state   contract.CallState
	written string
	sent    int64
}

// points are the places where a call may fail.
var points = []struct {
	name string
	play func(t *testing.T, e contract.Effect) failed
}{
	{"before dispatch: no intent", func(t *testing.T, e contract.Effect) failed {
		return play(t.Context(), t, e, listen(t, says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")), func(c *config) { c.journal = down{c.journal} })
	}},
	{"before dispatch: no connection", func(t *testing.T, e contract.Effect) failed {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		w := &wire{url: "http://" + l.Addr().String()}
		_ = l.Close()
		return play(t.Context(), t, e, w)
	}},
	{"request sent, connection lost", func(t *testing.T, e contract.Effect) failed {
		return play(t.Context(), t, e, listen(t, func(net.Conn) {}))
	}},
	{"answer lost midway", func(t *testing.T, e contract.Effect) failed {
		return play(t.Context(), t, e, listen(t, says("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":")))
	}},
	{"answer late (timeout)", func(t *testing.T, e contract.Effect) failed {
		return play(t.Context(), t, e, listen(t, waits), func(c *config) { c.tool.TimeoutMs = 100 })
	}},
	{"answer bad (not JSON)", func(t *testing.T, e contract.Effect) failed {
		return play(t.Context(), t, e, listen(t, says("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>")))
	}},
	{"answer bad (wrong shape)", func(t *testing.T, e contract.Effect) failed {
		return play(t.Context(), t, e, listen(t, says("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1")))
	}},
	{"answer 4xx", func(t *testing.T, e contract.Effect) failed {
		return play(t.Context(), t, e, listen(t, says("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")))
	}},
	{"answer 5xx", func(t *testing.T, e contract.Effect) failed {
		return play(t.Context(), t, e, listen(t, says("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")))
	}},
	{"outcome not written", func(t *testing.T, e contract.Effect) failed {
		return play(t.Context(), t, e, listen(t, says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")), func(c *config) { c.journal = &once{Journal: c.journal} })
	}},
	{"run cancelled meanwhile", func(t *testing.T, e contract.Effect) failed {
		ctx, cancel := context.WithCancelCause(t.Context())
		return play(ctx, t, e, listen(t, func(c net.Conn) {
			cancel(contract.Faultf(contract.ReasonCancelled, "cancelled"))
			waits(c)
		}))
	}},
	{"broker killed meanwhile", killed},
}

type config struct {
	tool    *broker.Tool
	journal broker.Journal
}

// down is a journal that cannot be written.
type down struct{ broker.Journal }

func (down) Record(context.Context, []contract.Call, int64) error { return fmt.Errorf("down") }

// once is a journal that can be written once.
type once struct {
	broker.Journal
	n int
}

func (o *once) Record(ctx context.Context, calls []contract.Call, refused int64) error {
	if o.n++; o.n > 1 {
		return fmt.Errorf("down")
	}
	return o.Journal.Record(ctx, calls, refused)
}

func play(ctx context.Context, t *testing.T, e contract.Effect, w *wire, change ...func(*config)) failed {
	t.Helper()
	f := file(filepath.Join(t.TempDir(), "journal"))
	tool := httpTool(t, w.url, e)
	tool.Tool.OutputSchema = json.RawMessage(`{"type":"object"}`)
	c := config{tool: &tool, journal: f}
	for _, x := range change {
		x(&c)
	}
	b := brokerOf(t, tool, c.journal)
	_, err := b.Call(ctx, "pay", json.RawMessage("{}"))
	fault, _ := contract.AsFault(err)
	out := failed{state: b.End().Calls[0].State, written: f.state(t), sent: w.sent.Load()}
	if fault != nil {
		out.reason = fault.Reason
	}
	return out
}

const (
	envVictimURL, envVictimJournal, envVictimEffect = "CODEACT_TEST_URL", "CODEACT_TEST_JOURNAL", "CODEACT_TEST_EFFECT"
)

// killed lets another process make the call, and kills it once the request is
// there: the journal is what was written through.
func killed(t *testing.T, e contract.Effect) failed {
	t.Helper()
	read := make(chan struct{})
	w := listen(t, func(c net.Conn) { close(read); waits(c) })
	f := file(filepath.Join(t.TempDir(), "journal"))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), envVictimURL+"="+w.url, envVictimJournal+"="+string(f), envVictimEffect+"="+string(e))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-read:
	case <-time.After(30 * time.Second):
		t.Error("the other process sent nothing")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return failed{written: f.state(t), sent: w.sent.Load()}
}

// TestVictim is the other process of killed.
func TestVictim(t *testing.T) {
	url := os.Getenv(envVictimURL)
	if url == "" {
		t.Skip("only with another test")
	}
	b := brokerOf(t, httpTool(t, url, contract.Effect(os.Getenv(envVictimEffect))), file(os.Getenv(envVictimJournal)))
	_, _ = b.Call(t.Context(), "pay", json.RawMessage("{}"))
}

// matrix is what is promised: for each point, the ends of a call that is
// ReadOnly, Idempotent and Effectful.
var matrix = map[string][3]failed{
	"before dispatch: no intent": {
		{"", "Completed", "-", 1}, // it is not written through, and succeeds
		{"BrokerUnavailable", "Abandoned", "-", 0},
		{"BrokerUnavailable", "Abandoned", "-", 0},
	},
	"before dispatch: no connection": {
		{"ToolFailed", "Failed", "-", 0}, {"ToolFailed", "Failed", "Failed", 0}, {"ToolFailed", "Failed", "Failed", 0},
	},
	"request sent, connection lost": {
		{"ToolFailed", "Failed", "-", 1}, {"EffectUncertain", "Uncertain", "Dispatched", 1}, {"EffectUncertain", "Uncertain", "Dispatched", 1},
	},
	"answer lost midway": {
		{"ToolFailed", "Failed", "-", 1}, {"EffectUncertain", "Uncertain", "Dispatched", 1}, {"EffectUncertain", "Uncertain", "Dispatched", 1},
	},
	"answer late (timeout)": {
		{"ToolFailed", "Failed", "-", 1}, {"EffectUncertain", "Uncertain", "Dispatched", 1}, {"EffectUncertain", "Uncertain", "Dispatched", 1},
	},
	"answer bad (not JSON)": {
		{"ToolFailed", "Failed", "-", 1}, {"EffectUncertain", "Uncertain", "Dispatched", 1}, {"EffectUncertain", "Uncertain", "Dispatched", 1},
	},
	"answer bad (wrong shape)": {
		{"ChildResultInvalid", "Completed", "-", 1}, {"ChildResultInvalid", "Completed", "Dispatched", 1}, {"ChildResultInvalid", "Completed", "Dispatched", 1},
	},
	"answer 4xx": {
		{"ToolFailed", "Failed", "-", 1}, {"ToolFailed", "Failed", "Failed", 1}, {"ToolFailed", "Failed", "Failed", 1},
	},
	"answer 5xx": {
		{"ToolFailed", "Failed", "-", 1}, {"EffectUncertain", "Uncertain", "Dispatched", 1}, {"EffectUncertain", "Uncertain", "Dispatched", 1},
	},
	"outcome not written": {
		{"", "Completed", "-", 1}, {"BrokerUnavailable", "Uncertain", "Dispatched", 1}, {"BrokerUnavailable", "Uncertain", "Dispatched", 1},
	},
	"run cancelled meanwhile": {
		{"Cancelled", "Failed", "-", 1}, {"Cancelled", "Uncertain", "Dispatched", 1}, {"Cancelled", "Uncertain", "Dispatched", 1},
	},
	"broker killed meanwhile": {
		{"", "", "-", 1}, {"", "", "Dispatched", 1}, {"", "", "Dispatched", 1},
	},
}

// TestEffectMatrix plays every class of effect against every point of failure,
// over a real socket, and prints the table.
func TestEffectMatrix(t *testing.T) {
	effects := []contract.Effect{contract.EffectReadOnly, contract.EffectIdempotent, contract.EffectEffectful}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "failure point\tReadOnly\tIdempotent\tEffectful")
	for _, p := range points {
		var row []string
		for i, e := range effects {
			t.Run(p.name+"/"+string(e), func(t *testing.T) {
				got := p.play(t, e)
				if diff := cmp.Diff(matrix[p.name][i], got, cmp.AllowUnexported(failed{})); diff != "" {
					t.Errorf("end (-want +got):\n%s", diff)
				}
				row = append(row, got.String())
			})
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\n", p.name, strings.Join(row, "\t"))
	}
	_ = w.Flush()
	t.Logf("reason, journal in the report / as written through, requests\n%s", table.String())
}

func (f failed) String() string {
	r, s := f.reason, f.state
	if r == "" {
		r = "-"
	}
	if s == "" {
		s = "-"
	}
	return fmt.Sprintf("%s, %s / %s, %d", r, s, f.written, f.sent)
}
