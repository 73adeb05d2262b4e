package sandbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestStack: a failure names the functions that were running, with the lines that
// are right and without those that would be a guess, whatever the program calls
// its functions.
func TestStack(t *testing.T) {
	tests := map[string]struct {
		source  string
		line    int
		message string
		stack   []string
	}{
		"thrown in main": {"function main(){\n throw new Error('x')\n}", 2, "Error: x", nil},
		"thrown below": {"function f(){\n throw new RangeError('x')\n}\nfunction main(){\n return f()\n}", 2, "RangeError: x",
			[]string{"f (main.js:2)", "main (main.js:5)"}},
		"a place that is not recorded": {"function f(o){\n return 1 +\n o.a.b\n}\nfunction main(){\n return f({})\n}", 0,
			"TypeError: cannot read property 'b' of undefined (in f, at or after line 3)", []string{"f (main.js)", "main (main.js:6)"}},
		"through a built-in": {"function main(){\n return [1].map(x => {\n  throw new Error('x')\n })\n}", 3, "Error: x",
			[]string{"a function (main.js:3)", "main (main.js:2)"}},
		"a method": {"class A{\n m(){ throw new Error('x') }\n}\nfunction main(){\n return new A().m()\n}", 2, "Error: x",
			[]string{"m (main.js:2)", "main (main.js:5)"}},
		"while defining": {"function f(){\n throw new Error('x')\n}\nf();\nfunction main(){}", 2, "Error: x",
			[]string{"f (main.js:2)", "the top level (main.js:4)"}},
		"a name that is a command": {"const o={['\\u001b[2J'](){\n throw new Error('x')\n}};\nfunction main(){\n o['\\u001b[2J']()\n}", 2, "Error: x",
			[]string{"a function (main.js:2)", "main (main.js:5)"}},
		"a name that looks like a frame": {"const o={['f (main.js:99)'](){\n throw new Error('x')\n}};\nfunction main(){\n o['f (main.js:99)']()\n}", 2, "Error: x",
			[]string{"a function (main.js:2)", "main (main.js:5)"}},
		"very deep": {"function f(n){\n if(n)return f(n-1);\n throw new Error('x')\n}\nfunction main(){\n return f(50)\n}", 3, "Error: x",
			append([]string{"f (main.js:3)"}, strings.Split(strings.Repeat("f (main.js:2)|", contract.MaxStackFrames-1), "|")[:contract.MaxStackFrames-1]...)},
		"no error object":    {"function main(){\n throw 'x'\n}", 0, "x", nil},
		"a stack of its own": {"function main(){\n const e=new Error('x');e.stack={};throw e\n}", 0, "Error: x", nil},
	}
	e := testEngine(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := e.Execute(t.Context(), Program{Source: tt.source}, nil)
			f, ok := contract.AsFault(err)
			if !ok {
				t.Fatalf("error %v", err)
			}
			if f.Line != tt.line || f.Column != 0 || f.Message != tt.message {
				t.Errorf("%q at %d:%d, want %q at line %d", f.Message, f.Line, f.Column, tt.message, tt.line)
			}
			if diff := cmp.Diff(tt.stack, f.Stack); diff != "" {
				t.Errorf("stack (-want +got):\n%s", diff)
			}
			for _, frame := range f.Stack {
				if len(frame) > contract.MaxFrameBytes {
					t.Errorf("a frame has %d bytes", len(frame))
				}
			}
		})
	}
}
