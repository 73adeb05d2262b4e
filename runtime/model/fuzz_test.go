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

// FuzzToolCalls cuts a call's arguments: the pieces of a stream, with what endpoints
// say with each piece, give what the whole document does, in both APIs.
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
		if how&again != 0 && id == "" {
			return // without an id, that is another call like the first one
		}
		c := cut{id: quoted(id), name: quoted(name), arguments: strings.TrimSpace(strings.ToValidUTF8(arguments, "?")), how: how}
		c.pieces = cutInto(c.arguments, 1+int(size)%64)
		same(t, contract.ModelAPIChat, message(`"tool_calls":[`+c.call(c.arguments)+`]`), deltas(c.chat()...))
		same(t, contract.ModelAPIResponses, `{"status":"completed","output":[`+c.item(c.arguments)+`]}`, frames(c.responses()...))
	})
}

func same(t *testing.T, api contract.ModelAPI, document, stream string) {
	t.Helper()
	whole, err := readAnswer(api, document)
	if err != nil {
		t.Fatal(err)
	}
	pieces, err := readAnswer(api, stream)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(whole.native(), pieces.native()); d != "" {
		t.Errorf("the document's calls and those of the stream %q (-document +stream):\n%s", stream, d)
	}
}

// What endpoints do differently in streams.
const (
	nameAlone uint8 = 1 << iota // id and name before the first piece
	nameEach                    // id and name with each piece
	again                       // and all of it once more at the end
)

// cut is a call in pieces. Its id and its name are JSON.
type cut struct {
	id, name, arguments string
	pieces              []string
	how                 uint8
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // of a string
	return string(b)
}

func cutInto(s string, n int) (out []string) {
	for r := []rune(s); len(r) > 0; r = r[min(n, len(r)):] {
		out = append(out, string(r[:min(n, len(r))]))
	}
	return out
}

func (c cut) call(arguments string) string {
	return `{"index":0,"id":` + c.id + `,"function":{"name":` + c.name + `,"arguments":` + quoted(arguments) + `}}`
}

// chat are the lists of tool calls in the deltas of chat completions.
func (c cut) chat() (out []string) {
	if c.how&nameAlone != 0 {
		out = append(out, c.call(""))
	}
	for i, p := range c.pieces {
		if c.how&nameEach != 0 || i == 0 && c.how&nameAlone == 0 {
			out = append(out, c.call(p))
			continue
		}
		out = append(out, `{"index":0,"function":{"arguments":`+quoted(p)+`}}`)
	}
	if c.how&again != 0 {
		out = append(out, c.call(c.arguments))
	}
	return out
}

func (c cut) item(arguments string) string {
	return `{"type":"function_call","call_id":` + c.id + `,"name":` + c.name + `,"arguments":` + quoted(arguments) + `}`
}

// responses are the events of the Responses API.
func (c cut) responses() []string {
	index := `"output_index":1,`
	if c.how&nameAlone != 0 {
		index = ""
	}
	out := []string{`{"type":"response.output_item.added",` + index + `"item":` + c.item("") + `}`}
	for _, p := range c.pieces {
		out = append(out, `{"type":"response.function_call_arguments.delta",`+index+`"delta":`+quoted(p)+`}`)
	}
	if c.how&again != 0 {
		out = append(out, `{"type":"response.function_call_arguments.done","output_index":1,"arguments":`+quoted(c.arguments)+`}`)
	}
	if c.how&nameEach != 0 {
		out = append(out, `{"type":"response.output_item.done",`+index+`"item":`+c.item(c.arguments)+`}`)
	}
	return append(out, `{"type":"response.completed","response":{"status":"completed","output":[]}}`)
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
