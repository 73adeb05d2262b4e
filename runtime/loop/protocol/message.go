package protocol

import (
	"encoding/json"
	"strings"
	"unicode"
)

// Kind says what an answer of a model is.
type Kind string

// The kinds of answer.
const (
	// Code is a program to execute.
	Code Kind = "code"
	// Final is the end of the run, with its output.
	Final Kind = "final"
	// Error is an answer that is no message.
	Error Kind = "protocolError"
)

// Javascript is the one language of programs.
const Javascript = "javascript"

// Why says why an answer is no message.
type Why string

// The whys. Sentence says of each what the model can do about it.
const (
	// WhyEmpty is no text, or a blank one.
	WhyEmpty Why = "empty"
	// WhyNoMessage is a text without any brace.
	WhyNoMessage Why = "noMessage"
	// WhyNotAnObject is a text that is another JSON value.
	WhyNotAnObject Why = "notAnObject"
	// WhyMalformed is a text in which every object breaks JSON somewhere.
	WhyMalformed Why = "malformed"
	// WhyTruncated is a text that ends inside of an object.
	WhyTruncated Why = "truncated"
	// WhyUnknownType is a text with objects that are no messages.
	WhyUnknownType Why = "unknownType"
	// WhyAmbiguous is a text with more than one complete message.
	WhyAmbiguous Why = "ambiguous"
	// WhyDuplicateKey is a message that has a key twice.
	WhyDuplicateKey Why = "duplicateKey"
	// WhyMissingOutput is a final message without an output.
	WhyMissingOutput Why = "missingOutput"
	// WhyMissingCode is a code message without code.
	WhyMissingCode Why = "missingCode"
	// WhyUnsupportedLanguage is a program in another language.
	WhyUnsupportedLanguage Why = "unsupportedLanguage"
)

// The whys that Parse never gives, because they are not in the text or depend on
// the run: whoever reads an answer finds them.
const (
	// WhyTooLong is an answer of more than contract.MaxModelAnswerBytes.
	WhyTooLong Why = "tooLong"
	// WhyNativeCall is an answer with a native tool call, which nobody offered.
	WhyNativeCall Why = "nativeCall"
	// WhyOutputTooLarge is a final message whose output is over the run's limit.
	WhyOutputTooLarge Why = "outputTooLarge"
)

// Message is what one answer of a model means.
type Message struct {
	Kind Kind
	// Language is Javascript, and Code the text of the program, for Code.
	Language, Code string
	// Output is the JSON text as the model spelled it, never null, for Final.
	Output json.RawMessage
	// Drift says that there was text around the message.
	Drift bool
	// Why is set for Error only.
	Why Why
	// What follows decides nothing: it makes the text of an error clearer. Cut says
	// that the endpoint ended the answer at a bound of tokens, or that the text ends
	// inside of an object; Native, that the model made a native tool call, which
	// nobody offered; Broken, that beside the objects of WhyUnknownType there is one
	// that breaks JSON.
	Cut, Native, Broken bool
}

// maxDepth is how deeply the arrays and objects of a message may nest, as in
// encoding/json, which reads them later.
const maxDepth = 10_000

// messageOf says what an object is, whose text the scanner found whole.
func messageOf(object string) Message {
	var kind, output, code, language string // the last of each, as it was spelled
	seen := map[string]struct{}{}
	known, twice := false, false
	depth := members(object, func(key, raw string) {
		_, there := seen[key]
		twice = twice || there
		seen[key] = struct{}{}
		switch key {
		case "type":
			kind = raw
			known = known || typeOf(raw) != ""
		case "output":
			output = raw
		case "code":
			code = raw
		case "language":
			language = raw
		}
	})
	switch {
	case !known:
		return Message{Kind: Error, Why: WhyUnknownType}
	case twice:
		return Message{Kind: Error, Why: WhyDuplicateKey}
	case depth > maxDepth:
		return Message{Kind: Error, Why: WhyMalformed}
	case typeOf(kind) == Final:
		return finalOf(output)
	}
	return codeOf(code, language)
}

func typeOf(raw string) Kind {
	if text, ok := stringOf(raw); ok && (text == string(Code) || text == string(Final)) {
		return Kind(text)
	}
	return ""
}

func finalOf(output string) Message {
	if output == "" || output == "null" {
		return Message{Kind: Error, Why: WhyMissingOutput}
	}
	return Message{Kind: Final, Output: json.RawMessage(output)}
}

func codeOf(code, language string) Message {
	text, ok := stringOf(code)
	if !ok || blank(text) {
		return Message{Kind: Error, Why: WhyMissingCode}
	}
	if _, lone := unquote(code); lone {
		// Half a character: the text of the program cannot be had as it was meant.
		return Message{Kind: Error, Why: WhyMalformed}
	}
	if !isJavascript(language) {
		return Message{Kind: Error, Why: WhyUnsupportedLanguage}
	}
	return Message{Kind: Code, Language: Javascript, Code: text}
}

// isJavascript judges the language of a message; "" is none.
func isJavascript(raw string) bool {
	if raw == "" || raw == "null" {
		return true
	}
	text, ok := stringOf(raw)
	if !ok {
		return false
	}
	switch strings.ToLower(strings.TrimFunc(text, space)) {
	case "", "js", Javascript, "ecmascript":
		return true
	}
	return false
}

// stringOf returns the string that raw is, if it is one.
func stringOf(raw string) (string, bool) {
	if raw == "" || raw[0] != '"' {
		return "", false
	}
	text, _ := unquote(raw)
	return text, true
}

func blank(s string) bool { return strings.TrimFunc(s, space) == "" }

// space is what is blank in a text and in a program: white space, and the mark
// that some put before a text.
func space(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' }

// members tells each of every member of an object that the scanner found whole, in
// the order of the text, and says how deeply it nests, itself included.
func members(object string, each func(key, raw string)) (depth int) {
	s := newScanner(object)
	s.pos++
	for {
		s.space()
		if s.at('}') {
			return max(depth, 1)
		}
		if s.at(',') {
			s.pos++
			s.space()
		}
		from := s.pos
		_ = s.str()
		key, _ := unquote(s.text[from:s.pos])
		s.space()
		s.pos++ // the colon
		s.space()
		from = s.pos
		depth = max(depth, 1+s.skip())
		each(key, s.text[from:s.pos])
	}
}

// skip moves past one value that is known to be whole and says how deeply it nests.
func (s *scanner) skip() (depth int) {
	for level := 0; ; {
		switch s.text[s.pos] {
		case '{', '[':
			level++
			depth = max(depth, level)
			s.pos++
		case '}', ']':
			level--
			s.pos++
		case '"':
			_ = s.str()
		case ',', ':', ' ', '\n', '\t', '\r':
			s.pos++
		default:
			s.scalar()
		}
		if level == 0 {
			return depth
		}
	}
}

// scalar moves past a number or a word.
func (s *scanner) scalar() {
	for s.pos < len(s.text) && strings.IndexByte(",]} \n\t\r", s.text[s.pos]) < 0 {
		s.pos++
	}
}
