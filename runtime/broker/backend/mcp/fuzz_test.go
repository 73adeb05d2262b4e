package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"
)

// FuzzEvents: whatever a server sends on a stream, reading it ends; the SDK gets
// whole events of one line of data each, at most one answer among them, and that
// one without what the server put into it.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{
		"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n",
		"id: 7\nretry: 5\n\ndata: {\"id\":2,\"result\":{}}\n\ndata: {\"id\":1,\"error\":{\"code\":-32602,\"message\":\"no\"}}\n\n",
		"event: ping\ndata: {}\n\n: comment\r\n\r\ndata: {\"id\":1,\ndata: \"result\":[1,2]}\n\n",
		"data: {\"id\":1,\"method\":\"ping\"}\n\ndata: {\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"u:1:1\",\"progress\":1}}\n\n",
		"data: {\"id\":1,\"ID\":2,\"result\":1,\"Method\":null}", "data:", "\n\n\n", "data: {\"id\": 1 ,\"result\":{\"isError\":true}}\r\rdata: x\n\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		timer := time.AfterFunc(20*time.Second, func() { panic("the case does not end") })
		defer timer.Stop()
		x := &exchange{method: methodCall, limit: 4096, posted: true, id: "1"}
		s := &session{calls: map[string]*exchange{"u:1:1": x}}
		out, err := io.ReadAll(newEvents(io.NopCloser(bytes.NewReader(body)), s, x))
		if err != nil && x.answer != nil && !x.flood && x.tooLarge == 0 {
			t.Errorf("error %v behind an answer", err)
		}
		answers := 0
		lines := bufio.NewScanner(bytes.NewReader(out))
		lines.Buffer(nil, len(out)+1)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			m := parse([]byte(data))
			if m == nil {
				t.Fatalf("the SDK gets %q", data)
			}
			if m.Method == nil {
				answers++
				if string(m.ID) != "1" || m.Error == nil && string(m.Result) != `{"content":[]}` {
					t.Errorf("the SDK gets the answer %s", data)
				}
			}
		}
		if answers > 1 || answers == 1 && x.answer == nil {
			t.Errorf("%d answers, kept %v", answers, x.answer)
		}
		if x.answer != nil && !json.Valid(x.answer.ID) {
			t.Errorf("answer with the id %q", x.answer.ID)
		}
	})
}
