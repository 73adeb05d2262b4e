package check_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/sandbox/check"
)

// verdict spells the outcome of a check as testdata/grammar.txt does.
func verdict(t *testing.T, src string) string {
	t.Helper()
	_, err := check.Source(src, 1<<20)
	if err == nil {
		return "ok"
	}
	f, ok := contract.AsFault(err)
	if !ok {
		t.Fatalf("%v is no fault", err)
	}
	words := map[contract.Reason]string{contract.ReasonSyntaxError: "syntax", contract.ReasonProhibited: "prohibited"}
	return fmt.Sprintf("%s %d:%d", words[f.Reason], f.Line, f.Column)
}

func TestGrammar(t *testing.T) {
	b, err := os.ReadFile("testdata/grammar.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		// The verdict has 17 columns, the sign for QuickJS one, a space one.
		want, src := strings.TrimRight(line[:17], " "), strings.ReplaceAll(line[19:], "⏎", "\n")
		if got := verdict(t, src); got != want {
			t.Errorf("line %d: %q is %s, want %s", i+1, src, got, want)
		}
	}
}

func TestMessages(t *testing.T) {
	tests := map[string]struct {
		source     string
		wantReason contract.Reason
		want       string
	}{
		"end":         {"function main( {", contract.ReasonSyntaxError, `unexpected end of the source, a property name is expected`},
		"token":       {"const c = = 3", contract.ReasonSyntaxError, `unexpected "="`},
		"twice":       {"let a; let a", contract.ReasonSyntaxError, "a is declared twice"},
		"name":        {"eval('1')", contract.ReasonProhibited, "eval is not available"},
		"async":       {"async function f(){}", contract.ReasonProhibited, "async functions are not available; tools.call answers directly"},
		"await":       {"const a = await f()", contract.ReasonProhibited, "await is not available; tools.call answers directly"},
		"export":      {"export default 1", contract.ReasonProhibited, "export is not available; declare function main(input)"},
		"clock":       {"new Date()", contract.ReasonProhibited, "new Date() without arguments is not available: runs are deterministic; pass the time as input"},
		"NUL":         {"a\x00", contract.ReasonSyntaxError, "the source has a NUL character"},
		"UTF-8":       {"a\xff", contract.ReasonSyntaxError, "the source is not UTF-8"},
		"too large":   {strings.Repeat(" ", 1<<20+1), contract.ReasonSourceTooLarge, "the source has 1048577 bytes, more than limits.sourceBytes, 1048576"},
		"bad pattern": {"/(/", contract.ReasonSyntaxError, "bad regular expression: a group has no end"},
		"engine":      {`/\p{Lu}/iu`, contract.ReasonSyntaxError, `bad regular expression: a property of letter case is wrong with the flag i; write it in brackets, [\p{Lu}]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := check.Source(tt.source, 1<<20)
			f, ok := contract.AsFault(err)
			if !ok || f.Reason != tt.wantReason || f.Message != tt.want {
				t.Errorf("got %v, want %s: %s", err, tt.wantReason, tt.want)
			}
		})
	}
}

// TestPositions: lines end with a line feed, columns count characters.
func TestPositions(t *testing.T) {
	tests := map[string]struct{ source, want string }{
		"first":                 {"=", "syntax 1:1"},
		"third line":            {"let a = 1;\n\n  let b = = 2;", "syntax 3:11"},
		"carriage returns":      {"let a = 1;\r\n\r\n  let b = = 2;", "syntax 3:11"},
		"after wide characters": {"let é = '😀', b = = 2;", "syntax 1:18"},
		"in a template":         {"`a\n${eval}`", "prohibited 2:3"},
		"after a tab":           {"\teval", "prohibited 1:2"},
		"end of the source":     {"function main(){\n  return (1\n", "syntax 3:1"},
		"byte order mark":       {"\uFEFFeval", "prohibited 1:2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := verdict(t, tt.source); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestInfo(t *testing.T) {
	tests := map[string]struct {
		source string
		want   check.Info
	}{
		"nothing":              {"", check.Info{}},
		"main":                 {"function main(i){return i}", check.Info{HasMain: true}},
		"main in a block":      {"{ function main(){} }", check.Info{}},
		"main in a function":   {"function f(){ function main(){} }", check.Info{}},
		"main as expression":   {"(function main(){})", check.Info{}},
		"main as variable":     {"const main = () => 1", check.Info{}},
		"main as class":        {"class main {}", check.Info{}},
		"generator main":       {"function* main(){}", check.Info{}},
		"last main counts":     {"function main(){} function* main(){}", check.Info{}},
		"last main is plain":   {"function* main(){} function main(){}", check.Info{HasMain: true}},
		"tool names":           {`function main(){tools.call("b",1);tools.call('a',2);tools.call(` + "`b`" + `,3)}`, check.Info{ToolNames: []string{"a", "b"}, HasMain: true}},
		"escaped name":         {`tools.call("\x61", {})`, check.Info{ToolNames: []string{"a"}}},
		"in brackets":          {`tools["call"]("a", {})`, check.Info{ToolNames: []string{"a"}}},
		"computed name":        {`tools.call("a"+b, {})`, check.Info{Dynamic: true}},
		"variable name":        {`tools.call("a", {}); tools.call(n, {})`, check.Info{ToolNames: []string{"a"}, Dynamic: true}},
		"template":             {"tools.call(`a${b}`, {})", check.Info{Dynamic: true}},
		"no name":              {"tools.call()", check.Info{Dynamic: true}},
		"spread":               {"tools.call(...a)", check.Info{Dynamic: true}},
		"passed on":            {"const t = tools; t.call('a', {})", check.Info{Dynamic: true}},
		"taken apart":          {"const {call} = tools; call('a', {})", check.Info{Dynamic: true}},
		"shadowed":             {"function f(tools){ return tools.call('a', {}) }", check.Info{ToolNames: []string{"a"}, Dynamic: true}},
		"another's tools":      {"a.tools.call('a', {})", check.Info{}},
		"typeof":               {"typeof tools", check.Info{Dynamic: true}},
		"only in text":         {"// tools.call(x)\n'tools.call(x)'", check.Info{}},
		"optional call":        {"tools?.call('a', {})", check.Info{Dynamic: true}},
		"arguments are judged": {"tools.call('a', tools.call('b', {}))", check.Info{ToolNames: []string{"a", "b"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := check.Source(tt.source, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNesting: no source uses up the stack of the process. Each is half a
// megabyte of one thing; people's depth passes.
func TestNesting(t *testing.T) {
	forms := map[string][3]string{
		"parentheses": {"x = ", "(", ""}, "arrays": {"x = ", "[", ""}, "objects": {"x = ", "{a:", ""}, "blocks": {"", "{", ""},
		"functions": {"x = ", "function(){return ", ""}, "arrows": {"x = ", "a=>", "1"}, "unary": {"x = ", "- ", "1"}, "typeof": {"", "typeof ", "1"},
		"new": {"", "new ", "a"}, "if": {"", "if(a)", ";"}, "else": {"", "if(a);else ", ";"}, "for": {"", "for(;;)", ";"}, "while": {"", "while(a)", ";"},
		"do": {"", "do ", ";"}, "labels": {"", "a:", ";"}, "conditional": {"x = ", "a?", "1"}, "otherwise": {"x = ", "a?1:", "1"},
		"templates": {"x = ", "`${", ""}, "calls": {"", "f(", ""}, "members": {"", "a[", ""}, "classes": {"x = ", "class extends ", ""},
		"patterns": {"var ", "[", ""}, "object patterns": {"var ", "{a:", ""}, "assignments": {"", "a=", "1"}, "powers": {"", "2**", "1"},
		"sums": {"", "a+", "1"}, "chains": {"a", ".a", ""}, "optional chains": {"a", "?.a", ""}, "commas": {"", "a,", "1"}, "try": {"", "try{", ""},
		"groups": {"x = /", "(", "/"}, "statements": {"", "a;", ""}, "comments": {"", "/*", ""}, "slashes": {"x = a", "/a", ""}, "spreads": {"x = ", "[...", ""},
		"yields": {"function* f(){ ", "yield ", "1 }"}, "switches": {"", "switch(a){case 1:", ""}, "async": {"x = ", "async a=>", "1"}, "await": {"x = ", "await ", "1"},
	}
	for name, f := range forms {
		t.Run(name, func(t *testing.T) {
			src := f[0] + strings.Repeat(f[1], 512<<10/len(f[1])) + f[2]
			if _, err := check.Source(src, 1<<20); err != nil {
				if _, ok := contract.AsFault(err); !ok {
					t.Errorf("%v is no fault", err)
				}
			}
		})
	}
	if got := verdict(t, "x = "+strings.Repeat("(", 300)+"1"+strings.Repeat(")", 300)); got != "ok" {
		t.Errorf("300 parentheses: %s", got)
	}
	if got := verdict(t, strings.Repeat("if (a) {} else ", 5000)+"{}"); got != "ok" {
		t.Errorf("5000 else ifs: %s", got)
	}
	if got := verdict(t, "x = "+strings.Repeat("(", 2000)+"1"+strings.Repeat(")", 2000)); got != "syntax 1:1003" {
		t.Errorf("2000 parentheses: %s", got)
	}
}

func BenchmarkSource(b *testing.B) {
	src := strings.Repeat("function f(a){ let x = a.map(y=>y*2).filter(z=>z>1); return {x, y:`${x}`} }\n", 800) + "function main(){}"
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if _, err := check.Source(src, 1<<20); err != nil {
			b.Fatal(err)
		}
	}
}
