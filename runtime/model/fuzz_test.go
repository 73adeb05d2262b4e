package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// readAnswer reads a body as the answer of one attempt.
func readAnswer(api contract.ModelAPI, body string) (*answer, error) {
	t := &attempt{client: &Client{form: fullForm}}
	t.client.pin.API = api
	b := &answer{}
	if strings.HasPrefix(body, "{") {
		return b, t.document(strings.NewReader(body), b)
	}
	return b, t.stream(bufio.NewReader(strings.NewReader(body)), b)
}

// FuzzToolCalls cuts a call's arguments in two ways: the pieces of a stream, with
// what endpoints say with each piece, give what the whole document does.
func FuzzToolCalls(f *testing.F) {
	f.Add("a", "f", `{"x":"{\"y\":1}","z":[{},2]}`, uint16(3), uint8(0))
	f.Add("", "f", `{"x":{"x":1}}`, uint16(5), uint8(1))
	f.Add("a", "run_code", `{"source":"function main(){return {}}"}`, uint16(1), uint8(2))
	f.Add("a", "f", `{}`, uint16(1), uint8(7))
	f.Fuzz(func(t *testing.T, id, name, arguments string, size uint16, how uint8) {
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(arguments), &object) != nil || object == nil || name == "" || len(id)+len(name)+len(arguments) > 4096 {
			return
		}
		q := func(s string) string { b, _ := json.Marshal(s); return string(b) } // of a string
		call := func(id, name, arguments string) string {
			return `{"index":0,"id":` + q(id) + `,"function":{"name":` + q(name) + `,"arguments":` + q(arguments) + `}}`
		}
		// The escapes of JSON are the document's own; what is no UTF-8 is the same in both.
		arguments = strings.TrimSpace(strings.ToValidUTF8(arguments, "?"))
		lists, runes := []string{}, []rune(arguments)
		for at, n := 0, 1+int(size)%64; at < len(runes); at += n {
			piece := string(runes[at:min(at+n, len(runes))])
			switch {
			case at == 0 && how&1 == 0:
				lists = append(lists, call(id, name, piece))
			case at == 0: // name first, arguments behind
				lists = append(lists, call(id, name, ""), `{"index":0,"function":{"arguments":`+q(piece)+`}}`)
			case how&2 != 0: // id and name with each
				lists = append(lists, call(id, name, piece))
			default:
				lists = append(lists, `{"index":0,"function":{"arguments":`+q(piece)+`}}`)
			}
		}
		if how&4 != 0 { // and all of it again
			lists = append(lists, call(id, name, arguments))
		}
		if how&4 != 0 && id == "" {
			return // without an id, that is another call like the first one
		}
		whole, err := readAnswer(contract.ModelAPIChat, message(`"tool_calls":[`+call(id, name, arguments)+`]`))
		if err != nil {
			t.Fatal(err)
		}
		pieces, err := readAnswer(contract.ModelAPIChat, deltas(lists...))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(whole.native(), pieces.native()); d != "" {
			t.Errorf("the document's calls and the stream's of %q (-document +stream):\n%s", lists, d)
		}
	})
}

// FuzzStream reads anything as an answer of either API: no panic, and what is kept
// is bounded.
func FuzzStream(f *testing.F) {
	for _, table := range []map[string]wild{callStreams, callDocuments} {
		for _, w := range table {
			if len(w.body) < 4096 {
				f.Add([]byte(w.body))
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 1<<16 {
			return
		}
		for _, api := range []contract.ModelAPI{contract.ModelAPIChat, contract.ModelAPIResponses} {
			a, err := readAnswer(api, string(bytes.TrimLeft(body, " \t\r\n")))
			n := 0
			for _, c := range a.native() {
				n += len(c.ID) + len(c.Name) + len(c.Arguments)
			}
			// Arguments that come as an object may be no longer than their bytes; each
			// byte that is no UTF-8 becomes three.
			if len(a.native()) > maxToolCalls || n > 3*len(body) || a.text.Len() > 3*len(body) || n > contract.MaxModelAnswerBytes {
				t.Errorf("%d calls of %d bytes and %d bytes of text out of %d, error %v", len(a.native()), n, a.text.Len(), len(body), err)
			}
		}
	})
}
