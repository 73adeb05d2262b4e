package sandbox

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// heard is a Caller that keeps what crossed the boundary.
type heard struct {
	name string
	args json.RawMessage
}

func (h *heard) Call(_ context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	h.name, h.args = name, args
	return args, nil
}

// TestTextCrosses: every form in which QuickJS keeps a string crosses in both
// directions: narrow, wide, a part of another, in pieces, short and long.
func TestTextCrosses(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 1000)
	tests := map[string]struct{ expr, want string }{
		"empty":                  {`""`, ``},
		"plain":                  {`"plain"`, `plain`},
		"of eight":               {`"12345678"`, `12345678`},
		"latin":                  {`"naïve é"`, `naïve é`},
		"wide":                   {`"Ω≈ç√"`, `Ω≈ç√`},
		"astral":                 {`"a😀b"`, `a😀b`},
		"NUL and control":        {`"a\0b\x01\x1f\x7f"`, "a\x00b\x01\x1f\x7f"},
		"to be escaped":          {`"\"\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		"escapes between":        {`"12345678\n12345678\"12345678\\1234567"`, "12345678\n12345678\"12345678\\1234567"},
		"line separators":        {`"\u2028\u2029"`, "\u2028\u2029"},
		"long":                   {`i`, long},
		"part of a long one":     {`i.slice(100,12000)`, long[100:12000]},
		"part of a part":         {`i.slice(100,12000).substring(7,9000)`, long[107:9100]},
		"part of a wide one":     {`(i+"Ω").slice(3,16001)`, long[3:] + "Ω"},
		"in pieces":              {`(()=>{let s="";for(let k=0;k<300;k++)s+=i.slice(k*10,k*10+40);return s})()`, pieces(long)},
		"long with latin":        {`i+"é"+i`, long + "é" + long},
		"long with wide":         {`i+"Ω"+i`, long + "Ω" + long},
		"a quote at every place": {`Array.from({length:40},(_,k)=>"x".repeat(k)+'"'+"y".repeat(40-k)).join("")`, quotes()},
	}
	e := testEngine(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			input, err := json.Marshal(long)
			if err != nil {
				t.Fatal(err)
			}
			h := &heard{}
			source := `function main(i){const s=` + tt.expr + `;const back=tools.call(s||"none",s);if(back!==s)throw new Error("changed");return {back,k:{[s]:[s]}}}`
			res, err := e.Execute(t.Context(), Program{Source: source, Input: input}, h)
			if err != nil {
				if len(tt.want) > maxToolNameBytes { // it cannot be a name
					source = strings.Replace(source, `s||"none"`, `"none"`, 1)
					res, err = e.Execute(t.Context(), Program{Source: source, Input: input}, h)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if tt.want != "" && len(tt.want) <= maxToolNameBytes && h.name != tt.want {
				t.Errorf("name %q, want %q", h.name, tt.want)
			}
			var args string
			if err := json.Unmarshal(h.args, &args); err != nil || args != tt.want {
				t.Errorf("arguments %.80q error %v, want %.80q", args, err, tt.want)
			}
			var value struct {
				Back string
				K    map[string][]string
			}
			if err := json.Unmarshal(res.Value, &value); err != nil || value.Back != tt.want {
				t.Errorf("result %.80q error %v, want %.80q", value.Back, err, tt.want)
			}
			if diff := cmp.Diff(map[string][]string{tt.want: {tt.want}}, value.K); diff != "" {
				t.Errorf("member (-want +got):\n%.500s", diff)
			}
		})
	}
}

func pieces(long string) string {
	var b strings.Builder
	for k := range 300 {
		b.WriteString(long[k*10 : k*10+40])
	}
	return b.String()
}

func quotes() string {
	var b strings.Builder
	for k := range 40 {
		b.WriteString(strings.Repeat("x", k) + `"` + strings.Repeat("y", 40-k))
	}
	return b.String()
}

// TestHalfPair: half of a surrogate pair has no UTF-8. In JSON it is an escape; a
// tool's name with it names no tool.
func TestHalfPair(t *testing.T) {
	h := &heard{}
	res, err := testEngine(t).Execute(t.Context(), Program{Source: `function main(){tools.call("a\ud800b",["\ud800"]);return "\udc00"}`}, h)
	if err != nil {
		t.Fatal(err)
	}
	if h.name != "a\uFFFDb" || string(h.args) != `["\ud800"]` || string(res.Value) != `"\udc00"` {
		t.Errorf("name %q, arguments %s, value %s", h.name, h.args, res.Value)
	}
}

// TestCrosses holds crosses to encoding/json.
func TestCrosses(t *testing.T) {
	for _, s := range crossing() {
		if got, want := crosses([]byte(s)), utf8.ValidString(s) && json.Valid([]byte(s)); got != want {
			t.Errorf("crosses(%.60q) = %v, want %v", s, got, want)
		}
	}
}

// crossing lists text that is JSON, nearly JSON, and what comes of cutting it and
// changing bytes of it.
func crossing() []string {
	whole := []string{
		``, ` `, `null`, ` true `, `false`, `nul`, `nulll`, `0`, `-0`, `01`, `-`, `1.`, `.5`, `1.5e10`, `1e`, `1e+`, `1E-7`, `+1`, `0x1`, `NaN`, `Infinity`,
		`"a"`, `"\u00e9"`, `"\u00e"`, `"\x"`, `"\`, `"`, "\"\t\"", "\"\x00\"", "\"\x7f\"", `"é😀"`, "\"\xff\"", "\"\xed\xa0\x80\"", `'a'`,
		`[]`, `[ ]`, `[1,2]`, `[1,]`, `[,1]`, `[1 2]`, `[[[]]]`, `[`, `]`, `{}`, `{ }`, `{"a":1}`, `{"a":1,"b":[{}]}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{1:1}`, `{"a":1}}`, `[1]]`, `[}`, `{]`, `{"a":1]`, `[1}`,
		`{"a":{"b":{"c":[1,2,{"d":"12345678901234567890"}]}}, "e" : -1.5E+3 }`, `"12345678"`, `"1234567\""`, `"12345678\n"`, "\"12345678\n\"",
		strings.Repeat("[", maxJSONDepth) + strings.Repeat("]", maxJSONDepth), strings.Repeat("[", maxJSONDepth+1) + strings.Repeat("]", maxJSONDepth+1),
		strings.Repeat(`{"a":`, maxJSONDepth) + "1" + strings.Repeat("}", maxJSONDepth), strings.Repeat(`{"a":`, maxJSONDepth+1) + "1" + strings.Repeat("}", maxJSONDepth+1),
		"\ufeff1", "1\x00", "\x001",
	}
	out := whole
	for _, s := range whole {
		if len(s) > 100 {
			continue
		}
		for i := range s {
			out = append(out, s[:i], s[i:])
			for _, c := range []string{`"`, `\`, `,`, `:`, `[`, `}`, `0`, ` `, "\x00", "\x80", "e"} {
				out = append(out, s[:i]+c+s[i+1:], s[:i]+c+s[i:])
			}
		}
	}
	return out
}
