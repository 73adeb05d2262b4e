package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestMemoryOfHostileAnswers holds what one message may take, decoded: a pod has 64
// MiB beside the program's heap.
func TestMemoryOfHostileAnswers(t *testing.T) {
	const most = 48 << 20
	for name, item := range map[string]string{"objects": `{}`, "blocks": `{"type":"text"}`, "numbers": `0`, "lists": `[]`} {
		many := func(n int) string { return strings.TrimSuffix(strings.Repeat(item+",", n/(len(item)+1)), ",") }
		empty := func(w http.ResponseWriter, _ *http.Request, m scriptMessage) { respond(w, m, "{}") }
		for what, s := range map[string]*scripted{
			"tools":    {list: func(string) string { return declares(many(4<<20 - 1000)) }, call: empty},
			"a schema": {list: func(string) string { return declares(`{"name":"x","inputSchema":{"enum":[` + many(4<<20-1000) + `]}}`) }, call: empty},
			"content": {call: func(w http.ResponseWriter, _ *http.Request, m scriptMessage) {
				respond(w, m, `{"content":[`+many(2<<20)+`]}`)
			}},
			"structured": {call: func(w http.ResponseWriter, _ *http.Request, m scriptMessage) {
				respond(w, m, `{"structuredContent":[`+many(2<<20)+`]}`)
			}},
			"in a stream": {call: func(w http.ResponseWriter, _ *http.Request, m scriptMessage) {
				stream(w)(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[` + many(2<<20) + `]}}`)
			}},
			"a question": {call: func(w http.ResponseWriter, _ *http.Request, m scriptMessage) {
				send := stream(w)
				send(`{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"messages":[` + many(200<<10) + `]}}`)
				send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{}}`)
			}},
		} {
			t.Run(what+" of "+name, func(t *testing.T) {
				script(t, s)
				p := pinned(s.URL, "x")
				b := backendOf(t, sessionsOf(t, bundle(), nil), p)
				n := peak(t, func() { _, _ = b.Call(within(t, 20*time.Second), request(p, "{}")) })
				if n > most {
					t.Errorf("it took %d MiB at some time", n>>20)
				}
			})
		}
	}
}

// peak is how much the heap grew at most while f ran, as far as looks every two
// milliseconds show it.
func peak(t *testing.T, f func()) uint64 {
	t.Helper()
	look := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	base := look()
	stop, most := make(chan struct{}), make(chan uint64)
	go func() {
		n := base
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				most <- max(n, look())
				return
			case <-tick.C:
				n = max(n, look())
			}
		}
	}()
	f()
	close(stop)
	return <-most - base
}

// TestLargestValueStillPasses: the bound of values is none for what a program may get.
func TestLargestValueStillPasses(t *testing.T) {
	value := `[` + strings.Repeat("0,", contract.MaxEvidenceBytes/2-2) + `0]`
	quoted, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	s := results(t, `{"content":[{"type":"text","text":`+string(quoted)+`}],"structuredContent":`+value+`}`)
	p := pinned(s.URL, "x")
	ans, err := backendOf(t, sessionsOf(t, bundle(), nil), p).Call(within(t, 20*time.Second), request(p, "{}"))
	if err != nil || !bytes.Equal(ans.Body, []byte(value)) {
		t.Errorf("%d bytes, error %v", len(ans.Body), err)
	}
}

func TestValues(t *testing.T) {
	for text, want := range map[string]int{
		``: 1, `0`: 1, `"a,{["`: 1, `"\","`: 1, `{}`: 2, `[[]]`: 3, `{"a,":[1,2]}`: 4, `["\\",1]`: 3,
	} {
		if got := values([]byte(text)); got != want {
			t.Errorf("%s has %d values, want %d", text, got, want)
		}
	}
}
