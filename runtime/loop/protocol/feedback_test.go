package protocol

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// journal has a call of every state, done by a tool that changes the world and by
// one that only reads.
func journal() []contract.Call {
	var calls []contract.Call
	for i, s := range []contract.CallState{
		contract.CallCompleted, contract.CallUncertain, contract.CallDispatched, contract.CallFailed, contract.CallAbandoned, contract.CallRefused,
	} {
		calls = append(calls,
			contract.Call{Seq: int64(2*i + 1), Tool: "mail_send", Effect: contract.EffectEffectful, State: s},
			contract.Call{Seq: int64(2*i + 2), Tool: "orders_list", Effect: contract.EffectReadOnly, State: s})
	}
	return calls
}

// Every text that is fed back, as the model reads it.
func TestFeedback(t *testing.T) {
	fault := contract.Faultf(contract.ReasonJavaScriptError, "TypeError: cannot read \"lines\" of null").At(3, 14)
	deep := *fault
	deep.Stack = []string{"total (main.js:3)", "main (main.js:9)"}
	uncertain := contract.Faultf(contract.ReasonEffectUncertain, "tool mail_send did not answer: its effect may have happened")
	texts := map[string]string{
		"result direct":         CodeResult(json.RawMessage("null"), contract.FinalizeDirect),
		"result model":          CodeResult(json.RawMessage(`{ "a": [1, "x<y\n"] }`), contract.FinalizeModel),
		"result of nothing":     CodeResult(nil, contract.FinalizeDirect),
		"error":                 CodeError(Failure{Fault: fault}),
		"error with effects":    CodeError(Failure{Fault: &deep, Calls: journal()}),
		"error uncertain":       CodeError(Failure{Fault: uncertain, Calls: journal()[2:4], ReadOnly: true, Callable: []string{"orders_list"}}),
		"error nothing left":    CodeError(Failure{Fault: uncertain, Calls: journal()[2:4], ReadOnly: true}),
		"finalize":              FinalizeMode(),
		"protocol empty native": ProtocolError(Message{Kind: Error, Why: WhyEmpty, Native: true}),
		"protocol no text cut":  ProtocolError(Message{Kind: Error, Why: WhyNoMessage, Cut: true}),
		"protocol unknown":      ProtocolError(Message{Kind: Error}),
		"protocol type broken":  ProtocolError(Message{Kind: Error, Why: WhyUnknownType, Broken: true}),
	}
	for _, w := range whys {
		texts["protocol "+string(w)] = ProtocolError(Message{Kind: Error, Why: w})
	}
	var all strings.Builder
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range texts {
			if !yield(name) {
				return
			}
		}
	}) {
		all.WriteString("== " + name + "\n" + texts[name] + "\n")
	}
	golden(t, "feedback.txt", all.String())
}

var whys = []Why{
	WhyEmpty, WhyNoMessage, WhyNotAnObject, WhyMalformed, WhyTruncated, WhyUnknownType, WhyAmbiguous, WhyDuplicateKey, WhyMissingOutput,
	WhyMissingCode, WhyUnsupportedLanguage, WhyTooLong, WhyNativeCall, WhyOutputTooLarge,
}

func TestSentences(t *testing.T) {
	seen := map[string]Why{}
	for _, w := range whys {
		text := Sentence(w)
		if other, there := seen[text]; there || text == Sentence("") {
			t.Errorf("%s says the same as %q: %s", w, other, text)
		}
		seen[text] = w
		if len(text) > 512 || strings.ContainsAny(text, "\r\n") {
			t.Errorf("%s: %d bytes, want one line of at most 512: %s", w, len(text), text)
		}
	}
}

// What the model is shown of a result that is too long is JSON in one line, cut
// between two characters, with its size.
func TestLongResult(t *testing.T) {
	pad := strings.Repeat("x", 7)
	cases := map[string]struct{ value, wantBegins string }{
		"plain":            {`"` + strings.Repeat("z", 70_000) + `"`, `CODE_RESULT: {"result":"zzz`},
		"characters":       {`"` + strings.Repeat("é😀", 20_000) + `"`, `CODE_RESULT: {"result":"é😀é`},
		"escapes":          {`"` + pad + strings.Repeat(`\\`, 60_000) + `"`, `CODE_RESULT: {"result":"xxxxxxx\\`},
		"quotes":           {`"` + strings.Repeat(`\"`, 60_000) + `"`, `CODE_RESULT: {"result":"\"\"`},
		"surrogates":       {`"` + pad + strings.Repeat(`\ud83d\ude00`, 20_000) + `"`, `CODE_RESULT: {"result":"xxxxxxx\ud83d\ude00\ud83d`},
		"half characters":  {`"` + pad + strings.Repeat(`\ud83d`, 20_000) + `"`, `CODE_RESULT: {"result":"xxxxxxx\ud83d\ud83d`},
		"list":             {`[` + strings.Repeat(`"a\n",`, 20_000) + `1]`, `CODE_RESULT: {"result":"[\"a\\n\",\"a`},
		"a number":         {strings.Repeat("7", 70_000), `CODE_RESULT: {"result":"777`},
		"just not too big": {`"` + strings.Repeat("z", MaxFeedbackBytes-len(`CODE_RESULT: {"result":""}`)) + `"`, `CODE_RESULT: {"result":"zzz`},
		"as large as can":  {`"` + strings.Repeat("z", 262_142) + `"`, `CODE_RESULT: {"result":"zzz`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := CodeResult(json.RawMessage(tc.value), contract.FinalizeModel)
			if !strings.HasPrefix(text, tc.wantBegins) {
				t.Errorf("text %.80s, want it to begin with %s", text, tc.wantBegins)
			}
			if n := len(text); n > MaxFeedbackBytes || n < MaxFeedbackBytes/2 {
				t.Errorf("%d bytes, want them to use most of %d", n, MaxFeedbackBytes)
			}
			line, _, _ := strings.Cut(strings.TrimPrefix(text, "CODE_RESULT: "), "\n")
			var got struct{ Result, Cut string }
			if err := json.Unmarshal([]byte(line), &got); err != nil || !utf8.ValidString(line) {
				t.Fatalf("%v in %.80s", err, line)
			}
			if !strings.Contains(got.Cut, " bytes") || strings.Contains(got.Result, "\uFFFD") != (name == "half characters") {
				t.Errorf("mark %q, result ends with %q", got.Cut, got.Result[len(got.Result)-8:])
			}
		})
	}
}

// A result cannot look like another message, nor a failure be longer than any.
func TestFeedbackIsBounded(t *testing.T) {
	text := CodeResult(json.RawMessage("[1,\n2,\n\"CODE_ERROR: {}\"]"), contract.FinalizeDirect)
	if want := `CODE_RESULT: {"result":[1,2,"CODE_ERROR: {}"]}`; !strings.HasPrefix(text, want+"\n") {
		t.Errorf("text %s, want %s in a line", text, want)
	}
	if got := oneLine(json.RawMessage("no\nJSON\xff")); got != `"no\nJSON`+"\uFFFD"+`"` {
		t.Errorf("what is no JSON became %s", got)
	}
	bad := strings.Repeat("\x01", 100_000)
	x := Failure{Fault: &contract.Fault{Reason: contract.ReasonToolFailed, Message: bad}, ReadOnly: true}
	for range contract.MaxStackFrames + 5 {
		x.Fault.Stack = append(x.Fault.Stack, bad)
	}
	for range 1000 {
		x.Callable = append(x.Callable, strings.Repeat("n", 64))
		x.Calls = append(x.Calls, contract.Call{Seq: 1 << 60, Tool: bad, State: contract.CallUncertain})
	}
	text = CodeError(x)
	if len(text) > MaxFeedbackBytes {
		t.Errorf("%d bytes, want at most %d", len(text), MaxFeedbackBytes)
	}
	var got codeError
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "CODE_ERROR: ")), &got); err != nil {
		t.Fatal(err)
	}
	if n := len(got.Effects) + got.MoreEffects; n != 1000 || len(got.Effects) == 0 {
		t.Errorf("%d effects are listed or counted, want 1000", n)
	}
}

func TestEffects(t *testing.T) {
	want := []Effect{
		{Tool: "mail_send", Seq: 1, State: contract.CallCompleted},
		{Tool: "mail_send", Seq: 3, State: contract.CallUncertain},
		{Tool: "mail_send", Seq: 5, State: contract.CallDispatched},
	}
	if diff := cmp.Diff(want, Effects(journal())); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}
