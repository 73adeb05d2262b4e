package protocol

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

const toolHead = "TOOL_ERROR: "

// The whys of an answer that neither calls a tool nor is an end.
const (
	// WhyCutCalls is an answer with tool calls that the endpoint ended too early.
	WhyCutCalls Why = "cutCalls"
	// WhyCutAnswer is an answer without tool calls that the endpoint ended too early.
	WhyCutAnswer Why = "cutAnswer"
	// WhyNoCall is an answer that has no tool call, though its endpoint says so.
	WhyNoCall Why = "noCall"
	// WhyManyCalls is an answer with more calls than are looked at.
	WhyManyCalls Why = "manyCalls"
	// WhyTextCall is a tool call that is spelled in the text, or a text of this
	// protocol's own.
	WhyTextCall Why = "textCall"
)

// ReadTools says what an answer without tool calls, whose endpoint ended it for
// finishReason, is: "" for the end of the run, or why it is none.
func ReadTools(text *string, finishReason string) Why {
	cut := CutShort(finishReason)
	switch {
	case text == nil || blank(Spoken(*text)):
		if cut {
			return WhyCutAnswer
		}
		if slices.Contains(nativeWords, finishReason) {
			return WhyNoCall
		}
		return WhyEmpty
	case cut:
		return WhyCutAnswer
	case slices.Contains(nativeWords, finishReason):
		return WhyNoCall
	case protocolText(*text):
		return WhyTextCall
	}
	return ""
}

// Spoken is the text without what the model thinks aloud before it: endpoints that do
// not take the reasoning apart leave it between <think> and </think>, some without the
// first of them. A thought that does not end has nothing behind it.
func Spoken(text string) string {
	trimmed := strings.TrimLeftFunc(text, space)
	thought, rest, ended := strings.Cut(trimmed, "</think>")
	begins := strings.HasPrefix(thought, "<think>")
	switch {
	case begins && !ended:
		return ""
	case ended && (begins || !strings.Contains(thought, "<think>")):
		return strings.TrimLeftFunc(rest, space)
	}
	return text
}

// CutShort reports whether the endpoint ended an answer before its end.
func CutShort(finishReason string) bool {
	return finishReason == "content_filter" || slices.Contains(cutWords, finishReason)
}

// textCalls are how models spell a call that their endpoint did not recognise.
var textCalls = []string{
	"<tool_call>", "<tool_calls>", "<|tool_call", "<function=", "<function_call>", "[TOOL_CALLS]", "<|python_tag|>", "<|channel|>", "<｜tool▁call",
}

// callEnds are how such a call ends where words of the model stand before it.
var callEnds = []string{
	"</tool_call>", "</tool_calls>", "</function>", "</function_call>", "<|tool_call_end|>", "<|tool_calls_end|>", "<|tool_calls_section_end|>", "<｜tool▁calls▁end｜>",
}

// protocolText reports whether a text is one of the protocol, and no answer: from
// its beginning, behind what a model thinks aloud, or, if it is a whole call with
// which the text ends, in a line behind its first words.
func protocolText(text string) bool {
	text = strings.TrimFunc(Spoken(text), space)
	starts := func(line string) bool {
		return slices.ContainsFunc(textCalls, func(head string) bool { return strings.HasPrefix(line, head) })
	}
	if starts(text) || strings.HasPrefix(text, strings.TrimSpace(toolHead)) || strings.HasPrefix(text, strings.TrimSpace(protocolHead)) {
		return true
	}
	if !slices.ContainsFunc(callEnds, func(end string) bool { return strings.HasSuffix(text, end) }) {
		return false
	}
	for line := range strings.Lines(text) {
		if starts(strings.TrimLeftFunc(line, space)) {
			return true
		}
	}
	return false
}

// ToolsError tells the model why its answer was neither a call nor an end.
func ToolsError(w Why) string {
	const either = "Call a tool, or write the finished answer as text, which ends the run."
	text := either
	switch w {
	case WhyEmpty:
		text = "the answer has no text and calls no tool. " + either
	case WhyCutAnswer:
		text = "the answer ends too early, so it was not taken. Be shorter. " + either
	case WhyCutCalls:
		text = "the answer ends too early, so none of its calls was made. Send fewer or shorter calls. " + either
	case WhyManyCalls:
		text = fmt.Sprintf("the answer has far more than %d calls, so none of them was made. Send at most %d, or one program. ", contract.MaxTurnCalls, contract.MaxTurnCalls) + either
	case WhyNoCall:
		text = "the answer was to call a tool, but holds no call. " + either
	case WhyTextCall:
		text = "the text spells a call or a message of the protocol, and was not taken. Call tools natively. " + either
	case WhyTooLong:
		text = fmt.Sprintf("the answer has more than %d bytes and was not taken. Be shorter. ", contract.MaxModelAnswerBytes) + either
	case WhyOutputTooLarge:
		text = "the answer is longer than the output of this run may be, and was not taken. Be shorter."
	case WhyMalformed:
		text = "the answer is not well-formed text, and was not taken. " + either
	case WhyNoMessage, WhyNotAnObject, WhyTruncated, WhyUnknownType, WhyAmbiguous, WhyDuplicateKey, WhyMissingOutput,
		WhyMissingCode, WhyUnsupportedLanguage, WhyNativeCall: // of protocol Code
	}
	return protocolHead + text
}

// ToolResult is the message of a call that succeeded with a value, which is JSON
// text; of one that is too long for so many bytes, its beginning.
func ToolResult(value json.RawMessage, most int) string {
	text := cmp.Or(oneLine(value), "null")
	if whole := `{"result":` + text + "}"; len(whole) <= most {
		return whole
	}
	const room = 256 // for the mark
	return fmt.Sprintf(`{"result":%s,"cut":"result is only the beginning of the text of a result of %d bytes"}`, beginning(text, most-room), len(text))
}

// CodeFailure is the message of a call of run_code that failed.
func CodeFailure(x Failure, most int) string {
	return boundedError(x, most, func(e codeError) string { return `{"error":` + encode(e) + "}" })
}

// ToolError is the message of a call of a tool or a recipe that failed.
func ToolError(x Failure, most int) string {
	return boundedError(x, most, func(e codeError) string { return toolHead + encode(e) })
}
