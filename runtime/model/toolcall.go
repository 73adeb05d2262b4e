package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// maxToolCalls bounds the native tool calls of one answer. It is far above what the
// loop makes of one, so that the model can be told of too many.
const maxToolCalls = 1024

// calls are the native tool calls of one answer, whole or in parts.
type calls struct {
	list  []*call
	bytes int
}

// call is one of them. Its key is what the endpoint tells it apart by.
type call struct {
	key, id, name string
	arguments     strings.Builder
	nesting       nesting
	// again is set once the endpoint says all arguments so far with each piece.
	again bool
}

// piece is a part of a call, or a whole one. What the endpoint left out is "".
type piece struct{ key, id, name, arguments string }

// add makes a call of a piece.
func (c *calls) add(p piece) error {
	if len(c.list) == maxToolCalls {
		return refused("its answer has more than %d tool calls", maxToolCalls)
	}
	x := &call{key: p.key}
	c.list = append(c.list, x)
	return c.extend(x, p)
}

// extend puts a piece behind what there is of a call. Id and name are said whole,
// in the first piece or in each.
func (c *calls) extend(x *call, p piece) error {
	if x.id == "" {
		x.id = p.id
		c.bytes += len(p.id)
	}
	if x.name == "" {
		x.name = p.name
		c.bytes += len(p.name)
	}
	c.bytes += len(p.arguments)
	if c.bytes > contract.MaxModelAnswerBytes {
		return refused("its tool calls are longer than %d bytes", contract.MaxModelAnswerBytes)
	}
	x.arguments.WriteString(p.arguments)
	x.nesting.read(p.arguments)
	return nil
}

// known takes a call that is said again as a whole, or begins. Whatever the
// endpoint leaves empty then is as it was.
func (c *calls) known(p piece) error {
	x := c.of(p)
	if x == nil {
		return c.add(p)
	}
	if p.arguments == "" {
		return c.extend(x, p)
	}
	return c.replace(x, p)
}

// replace puts a piece in the place of what there is of a call's arguments.
func (c *calls) replace(x *call, p piece) error {
	c.bytes -= x.arguments.Len()
	x.arguments.Reset()
	x.nesting = nesting{}
	return c.extend(x, p)
}

// streamed takes a piece of a stream: of a call that is known, or of a new one.
func (c *calls) streamed(p piece) error {
	x := c.of(p)
	switch {
	case x == nil || x.over(p):
		return c.add(p)
	case x.nesting.closed() && p.arguments == x.arguments.String():
		return nil // said again as a whole, at the end
	case x.allSoFar(p.arguments):
		x.again = true
		return c.replace(x, p)
	}
	return c.extend(x, p)
}

// allSoFar reports whether a piece is everything up to now and more, which it is
// when it begins with all of an object that is cut inside a string, where the
// object's own beginning would end the string. Whoever did so once does it always.
func (x *call) allSoFar(arguments string) bool {
	so := x.arguments.String()
	cut := x.nesting.quoted && len(so) > len(`{"`) && strings.HasPrefix(so, `{"`)
	return (x.again || cut) && strings.HasPrefix(arguments, so)
}

// of is the newest call that a piece may belong to: the one of its key; or of its
// id; or, if it has neither, the newest one.
func (c *calls) of(p piece) *call {
	for _, x := range slices.Backward(c.list) {
		if p.key != "" && x.key == p.key || p.key == "" && (p.id == "" || x.id == p.id) {
			return x
		}
	}
	return nil
}

// over reports whether the piece begins another call, although the endpoint gave
// it the key of this one: Gemini and older Ollama number all calls 0.
func (x *call) over(p piece) bool {
	switch {
	case p.name == "" || x.name == "" || p.id != "" && p.id == x.id:
		return false
	case p.id != "" && x.id != "":
		return x.nesting.closed() || p.name != x.name
	}
	return x.nesting.closed() && p.arguments != "" || p.name != x.name
}

// whole returns the calls that say anything; nil when there are none.
func (c *calls) whole() []contract.ModelToolCall {
	var out []contract.ModelToolCall
	for _, x := range c.list {
		if x.id == "" && x.name == "" && x.arguments.Len() == 0 {
			continue
		}
		out = append(out, contract.ModelToolCall{ID: x.id, Name: x.name, Arguments: x.arguments.String()})
	}
	return out
}

// nesting follows a JSON text to where its outermost object ends, in time that is
// linear in its length, however many pieces it comes in.
type nesting struct {
	depth                   int
	opened, quoted, escaped bool
}

func (n *nesting) closed() bool { return n.opened && n.depth == 0 }

func (n *nesting) read(text string) {
	for _, b := range []byte(text) {
		switch {
		case n.escaped:
			n.escaped = false
		case n.quoted && b == '\\':
			n.escaped = true
		case b == '"':
			n.quoted = !n.quoted
		case n.quoted:
		case b == '{' || b == '[':
			n.depth, n.opened = n.depth+1, true
		case b == '}' || b == ']':
			n.depth--
		}
	}
}

// chatCall is a native tool call of a chat completion, or a piece of one.
type chatCall struct {
	Index    json.RawMessage `json:"index"`
	ID       json.RawMessage `json:"id"`
	Function *chatFunction   `json:"function"`
	Custom   *chatFunction   `json:"custom"`
}

type chatFunction struct {
	Name      json.RawMessage `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`
}

// piece reads what a function says, with its arguments as text: some endpoints
// give the object itself.
func (f *chatFunction) piece() piece {
	if f == nil {
		return piece{}
	}
	raw := f.Arguments
	if len(raw) == 0 {
		raw = f.Input
	}
	return piece{name: str(f.Name), arguments: argumentsOf(raw)}
}

func argumentsOf(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] == '"' || string(raw) == "null" {
		return str(raw)
	}
	var out bytes.Buffer
	_ = json.Compact(&out, raw) // it was part of a JSON text
	return out.String()
}

// chatCalls takes the tool calls of a message, or of a delta.
func (a *answer) chatCalls(m *chatMessage, streamed bool) error {
	list := []json.RawMessage{}
	_ = json.Unmarshal(m.ToolCalls, &list) // whatever else it is, it is no call
	for i, raw := range list {
		var c chatCall
		if json.Unmarshal(raw, &c) != nil {
			return broken("a tool call of its answer is in no known form")
		}
		p := c.Function.piece()
		if c.Function == nil {
			p = c.Custom.piece()
		}
		p.id = str(c.ID)
		if given(c.Index) {
			p.key = "index " + string(c.Index)
		}
		take := a.calls.add
		// Two calls in one chunk are two, unless the endpoint says otherwise.
		if streamed && (i == 0 || p.key != "" || p.id != "") {
			take = a.calls.streamed
		}
		if err := take(p); err != nil {
			return err
		}
	}
	if !given(m.FunctionCall) {
		return nil
	}
	var f chatFunction
	if json.Unmarshal(m.FunctionCall, &f) != nil {
		return broken("a tool call of its answer is in no known form")
	}
	p := f.piece()
	p.key = "function_call"
	return a.old.streamed(p)
}

// native returns the calls of the answer. The older form counts where the newer
// one is not used: who uses both says the same.
func (a *answer) native() []contract.ModelToolCall {
	if out := a.calls.whole(); out != nil {
		return out
	}
	return a.old.whole()
}
