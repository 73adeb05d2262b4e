package protocol

import (
	"fmt"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// forms are the two messages, as the model is shown them everywhere.
const (
	codeForm  = `{"type":"code","language":"javascript","code":"function main(input) { … }"}`
	finalForm = `{"type":"final","output":<any JSON but null>}`
)

const eitherForm = "Answer with exactly one JSON object and nothing else: " + codeForm + " or " + finalForm + "."

const jsonText = `Keys and strings stand in double quotes; in a string write \" for a quote, \\ for a backslash and \n for a line end; no comments, no trailing commas.`

const nativeText = "a program calls the tools, with tools.call."

// Sentence tells the model what was wrong with its answer and what to do about it,
// in one line of at most 512 bytes. Of a why that is not known it says the form.
func Sentence(w Why) string {
	switch w {
	case WhyEmpty:
		return "the answer has no text. " + eitherForm
	case WhyNoMessage:
		return "the answer has no JSON object. " + eitherForm
	case WhyNotAnObject:
		return "the answer is JSON, but no object. " + eitherForm
	case WhyMalformed:
		return "the JSON of the answer is broken. " + jsonText + " A program alone is no message: it belongs into the code of " + codeForm + "."
	case WhyTruncated:
		return "the answer ends before its JSON object does. Send the whole object again, and make it shorter: a smaller program, or a smaller output."
	case WhyUnknownType:
		return `the JSON object has no known type: type is exactly "code" or "final", in lower case. ` + eitherForm
	case WhyAmbiguous:
		return "the answer has more than one message, and none of them was taken. Send one only: the program first, and the final message after its result."
	case WhyDuplicateKey:
		return "a key occurs twice in the JSON object. Send it again with every key once."
	case WhyMissingOutput:
		return "the final message has no output, or null. Send " + finalForm + "; when there is nothing to give, say so in a string."
	case WhyMissingCode:
		return "the code message has no code. Put the whole program as a string into code: " + codeForm + "."
	case WhyUnsupportedLanguage:
		return "the language of the program is not supported: only javascript is. Write the same program in JavaScript and send " + codeForm + "."
	case WhyTooLong:
		return fmt.Sprintf("the answer has more than %d bytes and was not read. Send a shorter one. ", contract.MaxModelAnswerBytes) + eitherForm
	case WhyNativeCall:
		return "the answer calls a function, and none was offered: " + nativeText + " " + eitherForm
	case WhyOutputTooLarge:
		return "the output has more bytes than its limit, which stands under Limits. Send " + finalForm + " with a smaller one."
	case WhyCutCalls, WhyCutAnswer, WhyNoCall, WhyManyCalls, WhyTextCall: // of protocol Tools
	}
	return "the answer is no message. " + eitherForm
}

// sentence is Sentence with what the endpoint's own word adds to it.
func (m Message) sentence() string {
	text := Sentence(m.Why)
	if m.Native && m.Why != WhyNativeCall {
		text += " Do not call functions: " + nativeText
	}
	if m.Broken {
		text += " Another object of the answer breaks JSON, and was not read. " + jsonText
	}
	if m.Cut && m.Why != WhyTruncated {
		text += " The answer ends too early: be shorter."
	}
	return text
}
