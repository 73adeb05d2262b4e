package loop

import (
	"encoding/json"
	"fmt"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker"
	"github.com/codeact-dev/codeact-operator/runtime/loop/protocol"
)

func (a *agent) system(c contract.Catalogue) string {
	return a.pinned.Instructions + "\n\n" + string(c.Text)
}

func (a *agent) prompt() string { return a.pinned.Prompt }

func codeResult(value json.RawMessage) string { return `CODE_RESULT: {"result":` + string(value) + `}` }

func codeError(f *contract.Fault, ended broker.Ended) string {
	text, _ := json.Marshal(map[string]any{"reason": f.Reason, "message": f.Message, "line": f.Line, "calls": ended.Calls, "readOnly": ended.ReadOnly})
	return "CODE_ERROR: " + string(text)
}

func finalizeMode() string { return "FINALIZE_MODE: answer with the final message now." }

func protocolError(m protocol.Message) string { return "PROTOCOL_ERROR: " + protocol.Sentence(m.Why) }

func tooLongAnswer() string { return "PROTOCOL_ERROR: the answer is too long." }

func nativeToolCall() string { return "PROTOCOL_ERROR: native tool calls are not offered." }

func tooLongOutput(n int, most int64) string {
	return fmt.Sprintf("PROTOCOL_ERROR: the output has %d bytes, more than %d.", n, most)
}

func notUTF8() string { return "PROTOCOL_ERROR: the answer is not UTF-8." }
