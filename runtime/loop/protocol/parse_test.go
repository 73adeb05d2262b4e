package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

const final = `{"type":"final","output":"a"}`

// The cases of test/vectors/protocol.json are run beside it; these are more of
// the same kinds.
func TestParse(t *testing.T) {
	failed := func(w Why) Message { return Message{Kind: Error, Why: w} }
	ended := func(output string, drift bool) Message {
		return Message{Kind: Final, Output: json.RawMessage(output), Drift: drift}
	}
	code := func(text string, drift bool) Message {
		return Message{Kind: Code, Language: Javascript, Code: text, Drift: drift}
	}
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	cases := map[string]struct {
		text string
		want Message
	}{
		"blanks around":                     {"\n\t " + final + "\r\n\u00a0", ended(`"a"`, false)},
		"a byte order mark before":          {"\ufeff" + final, ended(`"a"`, false)},
		"only blanks":                       {" \r\n\t\u2003\ufeff", failed(WhyEmpty)},
		"escapes in key and type":           {`{"typ\u0065":"fin\u0061l","\u006futput":1}`, ended(`1`, false)},
		"keys are case-sensitive":           {`{"Type":"final","output":1}`, failed(WhyUnknownType)},
		"output key in another case":        {`{"type":"final","Output":1}`, failed(WhyMissingOutput)},
		"code key in another case":          {`{"type":"code","Code":"x"}`, failed(WhyMissingCode)},
		"type null":                         {`{"type":null,"output":1}`, failed(WhyUnknownType)},
		"empty object":                      {`{}`, failed(WhyUnknownType)},
		"more keys are passed over":         {`{"type":"final","output":1,"why":{"a":[1]}}`, ended(`1`, false)},
		"false is an output":                {`{"type":"final","output": false }`, ended(`false`, false)},
		"a blank string is an output":       {`{"type":"final","output":""}`, ended(`""`, false)},
		"null is none":                      {`{"type":"final","output": null }`, failed(WhyMissingOutput)},
		"output as it was spelled":          {`{"type":"final","output":{ "b":1.0, "a":1E2, "b":2 }}`, ended(`{ "b":1.0, "a":1E2, "b":2 }`, false)},
		"half a character in an output":     {`{"type":"final","output":"\ud83d"}`, ended(`"\ud83d"`, false)},
		"half a character in a program":     {`{"type":"code","code":"'\ud83d'"}`, failed(WhyMalformed)},
		"a whole one":                       {`{"type":"code","code":"'\ud83d\ude00'"}`, code("'😀'", false)},
		"all escapes in a program":          {`{"type":"code","code":"\"\\\/\b\f\n\r\t\u0041"}`, code("\"\\/\b\f\n\r\tA", false)},
		"a program that is a number":        {`{"type":"code","code":1}`, failed(WhyMissingCode)},
		"a program of exotic blanks":        {`{"type":"code","code":"\u00a0\ufeff\u2028"}`, failed(WhyMissingCode)},
		"language null is none":             {`{"type":"code","code":"x","language":null}`, code("x", false)},
		"language in blanks":                {`{"type":"code","code":"x","language":"\tECMAScript \n"}`, code("x", false)},
		"language a list":                   {`{"type":"code","code":"x","language":["js"]}`, failed(WhyUnsupportedLanguage)},
		"language typescript":               {`{"type":"code","code":"x","language":"typescript"}`, failed(WhyUnsupportedLanguage)},
		"language near miss":                {`{"type":"code","code":"x","language":"java script"}`, failed(WhyUnsupportedLanguage)},
		"any key twice":                     {`{"type":"final","output":1,"x":1,"x":1}`, failed(WhyDuplicateKey)},
		"a key twice by an escape":          {`{"type":"final","output":1,"outp\u0075t":2}`, failed(WhyDuplicateKey)},
		"a type twice, one known":           {`{"type":"x","type":"code","code":"y"}`, failed(WhyDuplicateKey)},
		"a key twice in what is no message": {`{"a":1,"a":2}`, failed(WhyUnknownType)},
		"different half characters":         {`{"type":"final","output":1,"\ud800":1,"\ud801":2}`, ended(`1`, false)},
		"twice inside a value":              {`{"type":"final","output":{"a":1,"a":2}}`, ended(`{"a":1,"a":2}`, false)},
		"a duplicate beside a whole one":    {`{"type":"final","type":"final","output":1} ` + final, ended(`"a"`, true)},
		"an incomplete one after":           {final + ` {"type":"code"}`, ended(`"a"`, true)},
		"the same twice":                    {final + final, failed(WhyAmbiguous)},
		"three":                             {final + " " + final + " " + final, failed(WhyAmbiguous)},
		"the last that meant to be one":     {`{"type":"final"} {"type":"code"} {"x":1}`, failed(WhyMissingCode)},
		"a broken one around a whole one":   {`{"steps":[1,], "last": ` + final + `}`, ended(`"a"`, true)},
		"a message in an object is a value": {`{"answer":` + final + `}`, failed(WhyUnknownType)},
		"a message in a string is a value":  {`{"answer":"{\"type\":\"final\",\"output\":1}"}`, failed(WhyUnknownType)},
		"a list with a mistake":             {`[` + final + `,]`, ended(`"a"`, true)},
		"a message as a string":             {`"{\"type\":\"final\",\"output\":1}"`, failed(WhyNotAnObject)},
		"a number":                          {` -12.5e3 `, failed(WhyNotAnObject)},
		"a word":                            {`null`, failed(WhyNotAnObject)},
		"no JSON word":                      {`None`, failed(WhyNoMessage)},
		"a number with a zero before":       {`012`, failed(WhyNoMessage)},
		"a fence":                           {"```json\n" + final + "\n```", ended(`"a"`, true)},
		"a thought with a brace":            {"<think>if (x) { y }</think>" + final, ended(`"a"`, true)},
		"single quotes":                     {`{'type':'final','output':'a'}`, failed(WhyMalformed)},
		"a trailing comma":                  {`{"type":"final","output":1,}`, failed(WhyMalformed)},
		"a line comment":                    {"{\"type\":\"final\", // done\n\"output\":1}", failed(WhyMalformed)},
		"not a number":                      {`{"type":"final","output":NaN}`, failed(WhyMalformed)},
		"a zero before":                     {`{"type":"final","output":01}`, failed(WhyMalformed)},
		"a plus":                            {`{"type":"final","output":+1}`, failed(WhyMalformed)},
		"a point without digits":            {`{"type":"final","output":1.}`, failed(WhyMalformed)},
		"an escape that is none":            {`{"type":"final","output":"\x41"}`, failed(WhyMalformed)},
		"a tabulator in a string":           {"{\"type\":\"final\",\"output\":\"a\tb\"}", failed(WhyMalformed)},
		"a NUL between":                     {"{\"type\":\"final\",\x00\"output\":1}", failed(WhyMalformed)},
		"an exotic blank between":           {"{\"type\":\"final\",\u00a0\"output\":1}", failed(WhyMalformed)},
		"no UTF-8 in a string":              {"{\"type\":\"final\",\"output\":\"\xff\"}", failed(WhyMalformed)},
		"an encoded half character":         {"{\"type\":\"final\",\"output\":\"\xed\xa0\x80\"}", failed(WhyMalformed)},
		"a wrong end":                       {`{"type":"final","output":[1}}`, failed(WhyMalformed)},
		"only a brace":                      {`{`, failed(WhyTruncated)},
		"cut in an escape":                  {`{"type":"final","output":"\u00`, failed(WhyTruncated)},
		"cut in a character":                {"{\"type\":\"final\",\"output\":\"\xe2\x82", failed(WhyTruncated)},
		"cut in a word":                     {`{"type":"final","output":tr`, failed(WhyTruncated)},
		"cut in a number":                   {`{"type":"final","output":-`, failed(WhyTruncated)},
		"cut before the last brace":         {`{"type":"final","output":1 `, failed(WhyTruncated)},
		"cut after a broken one":            {`{x} {"type":"fin`, failed(WhyTruncated)},
		"cut with a string that holds one":  {`{"type":"code","code":"f({a:1},{}`, Message{Kind: Error, Why: WhyUnknownType, Cut: true}},
		"cut after an object":               {`{"n":1} {"type":"fin`, Message{Kind: Error, Why: WhyUnknownType, Cut: true}},
		"broken with a string that holds one": {
			"{\"type\":\"code\",\"code\":\"const o = {};\n\"}", Message{Kind: Error, Why: WhyUnknownType, Broken: true},
		},
		"as deep as can be": {`{"type":"final","output":` + deep(maxDepth-1) + `}`, ended(deep(maxDepth-1), false)},
		"too deep":          {`{"type":"final","output":` + deep(maxDepth) + `}`, failed(WhyMalformed)},
		"too deep around a message": {
			`{"type":"final","output":` + strings.Repeat("[", maxDepth) + final + strings.Repeat("]", maxDepth) + `}`, failed(WhyMalformed),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Parse(&tc.text, "stop")); diff != "" {
				t.Errorf("message (-want +got):\n%.500s", diff)
			}
		})
	}
}

// What the model is shown as the two forms is read as such.
func TestForms(t *testing.T) {
	code := codeForm
	if m := Parse(&code, ""); m.Kind != Code || m.Drift {
		t.Errorf("%s is %+v", code, m)
	}
	end := strings.Replace(finalForm, "<any JSON but null>", "1", 1)
	if m := Parse(&end, ""); m.Kind != Final || string(m.Output) != "1" || m.Drift {
		t.Errorf("%s is %+v", end, m)
	}
	both := Sentence(WhyEmpty) // Telling it back is no answer.
	if m := Parse(&both, ""); m.Kind == Final {
		t.Errorf("%s is %+v", both, m)
	}
}

// The endpoint's word never changes what an answer is.
func TestFinishReason(t *testing.T) {
	text := final
	cases := map[string]struct {
		text   *string
		reason string
		want   Message
	}{
		"cut, but whole":     {&text, "length", Message{Kind: Final, Output: json.RawMessage(`"a"`), Cut: true}},
		"tool call and text": {&text, "tool_calls", Message{Kind: Final, Output: json.RawMessage(`"a"`), Native: true}},
		"tool call":          {nil, "tool_calls", Message{Kind: Error, Why: WhyEmpty, Native: true}},
		"cut at once":        {nil, "max_tokens", Message{Kind: Error, Why: WhyEmpty, Cut: true}},
		"nothing":            {nil, "", Message{Kind: Error, Why: WhyEmpty}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Parse(tc.text, tc.reason)); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// hostile are texts whose every brace asks for a reading to the end.
func hostile(size int) map[string]string {
	fill := func(head, part string) string {
		return head + strings.Repeat(part, max(0, size-len(head))/len(part))
	}
	return map[string]string{
		"braces":           fill("", "{"),
		"pairs":            fill("", "{}"),
		"nested":           fill("", `{"a":`),
		"nested in lists":  fill("", `{"a":[`),
		"lists":            fill(`{"a":`, `[`),
		"open string":      fill(`{"`, `{`),
		"two phases":       fill(`{"`, `,":":",":{":":":",":":",":`),
		"nested phases":    fill(`{"a":"`, `:{":{"`),
		"quotes":           fill("", `{"`),
		"escaped quotes":   fill(`{"a":"`, `{\"`),
		"backslashes":      fill(`{"a":"`, `\\`),
		"surrogates":       fill(`{"type":"code","code":"`, `\ud800`) + `"}`,
		"whole surrogates": fill(`{"type":"code","code":"`, `\ud83d\ude00`) + `"}`,
		"members":          fill(`{"type":"x"`, `,"":0`) + "}",
		"different keys":   `{"type":"final"` + manyKeys(size) + `}`,
		"objects":          fill("", `{"type":"final"}`),
		"broken late":      fill(`{"a":[0`, `,{}`) + "x",
		"messages in list": fill(`[0`, `,`+final) + "x",
		"half characters":  fill(`{"a":"`, "\xe2\x82\xac") + "\xe2",
		"no UTF-8":         fill(`{"a":"`, "{\xff"),
		"numbers":          fill(`{"a":`, "1"),
		"blanks":           fill("{", " "),
		"list as a whole":  fill("[0", `,{"a":0}`) + "]",
	}
}

func manyKeys(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size-40; i++ {
		b.WriteString(`,"` + string(rune('a'+i%26)) + strings.ToLower(string(rune(0x4e00+i%20000))) + string(rune(0x4e00+i/20000)) + `":0`)
	}
	return b.String()
}

// Work and memory are bounded by the size of the text, not by time, so that the
// test says the same on every machine.
func TestParseIsLinear(t *testing.T) {
	for _, size := range []int{16 << 10, contract.MaxModelAnswerBytes} {
		for name, text := range hostile(size) {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) { linear(t, text) })
		}
		if t.Failed() {
			return // The larger ones would take minutes.
		}
	}
}

func linear(t *testing.T, text string) {
	_, scanned := read(text)
	if most := 3*len(text) + 64; scanned > most {
		t.Errorf("%d bytes were gone over for a text of %d, want at most %d", scanned, len(text), most)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	Parse(&text, "")
	runtime.ReadMemStats(&after)
	got, most := after.TotalAlloc-before.TotalAlloc, uint64(32*len(text)+4096)
	if got > most {
		t.Errorf("%d bytes were allocated for a text of %d, want at most %d", got, len(text), most)
	}
	t.Logf("%d bytes, %d gone over, %d allocated", len(text), scanned, got)
}

// FuzzParse holds the reading to a plain one that starts again at every brace.
func FuzzParse(f *testing.F) {
	for _, text := range hostile(96) {
		f.Add(text)
	}
	f.Add("plan {x} then " + final)
	f.Add(`{"type":"code","language":" JS ","code":"f(\"{\")"} {"a":[1,{"b":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		m := Parse(&text, "")
		if (m.Kind == Error) != (m.Why != "") || m.Kind != Error && m.Kind != Code && m.Kind != Final {
			t.Fatalf("%q: kind %q with why %q", text, m.Kind, m.Why)
		}
		if m.Kind == Final && !json.Valid(m.Output) || m.Kind == Code && (blank(m.Code) || !utf8.ValidString(m.Code)) {
			t.Fatalf("%q: %+v", text, m)
		}
		if m.Kind != Error && m.Output == nil && m.Code == "" {
			t.Fatalf("%q: a message without anything", text)
		}
		if blank(text) {
			return
		}
		if _, scanned := read(text); scanned > 3*len(text)+64 {
			t.Fatalf("%q: %d bytes gone over for %d", text, scanned, len(text))
		}
		if !utf8.ValidString(text) || len(text) > 4096 {
			return // encoding/json is lenient there, and slow.
		}
		plain(t, text)
	})
}

// plain compares every object that the scanner finds with what encoding/json does.
func plain(t *testing.T, text string) {
	s := newScanner(text)
	for at := 0; at < len(text); at++ {
		if text[at] != '{' {
			continue
		}
		var raw json.RawMessage
		d := json.NewDecoder(strings.NewReader(text[at:]))
		err := d.Decode(&raw)
		want, wantEnd := whole, at+int(d.InputOffset())
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			want = cut
		case err != nil:
			want = broken
		}
		known := s.ends != nil && s.ends[at] == noObject
		end, got := s.object(at)
		if got != want && (!known || want == whole) || want == whole && end != wantEnd {
			t.Fatalf("%q at %d: %v up to %d, want %v up to %d", text, at, got, end, want, wantEnd)
		}
		if want == whole {
			at = end - 1
		}
	}
}
