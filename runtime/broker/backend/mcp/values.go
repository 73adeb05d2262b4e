package mcp

import "fmt"

// A decoded JSON value takes hundreds of bytes where its text takes two, and a pod
// has little memory beside the program's: an answer of 4 MiB can take 600 MiB. So
// values are counted before anything is decoded.
const (
	// maxValues bounds the JSON values of what the SDK decodes: all pages of the list
	// of tools, or the opening of a session.
	maxValues = 64 << 10
	// maxResultValues bounds those of a result. A value of 256 KiB, the most that a
	// program may get, cannot have more than 128 Ki.
	maxResultValues = 128<<10 + 4<<10
	// maxNoticeValues bounds those of what is no answer.
	maxNoticeValues = 4 << 10
)

// values counts the JSON values of a text, or a few more, without decoding it.
func values(text []byte) int {
	n, quoted := 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '{' || c == '['):
			n++
		}
	}
	return n
}

func (x *exchange) mostValues() int {
	switch {
	case x.method == methodCall:
		return maxResultValues
	case x.values > 0:
		return x.values
	}
	return maxValues
}

// bounded reports whether m, of so many values, is a message that may be looked at.
func (m *message) bounded(n int) bool {
	return m != nil && (m.Method == nil || n <= maxNoticeValues)
}

// shown is what the SDK gets to see of m, whose text is given. It learns that the
// call was answered; the answer itself is kept here, and need not be decoded there.
func (x *exchange) shown(m *message, text []byte) []byte {
	if x == nil || x.method != methodCall || m.Method != nil || m.Error != nil {
		return text
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, m.ID)
}
