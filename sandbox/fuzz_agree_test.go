package sandbox

import (
	"context"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// forbiddenNames are the variables that the check refuses.
const forbiddenNames = `["eval","Promise","WebAssembly","console","globalThis"]`

// tripwires puts each forbidden name back as a variable that notes its use. What
// was noted is said by the second script, after the program.
const tripwires = `(function(g, names, note, join){
  for (const k of names) {
    const noted = () => { note[k] = true; return undefined };
    Object.defineProperty(g, k, {__proto__: null, get: noted, set: noted, configurable: false});
  }
  Object.defineProperty(g, "\u0000noted", {__proto__: null, value: () => join(note)});
})(this, ` + forbiddenNames + `, {__proto__: null}, (o => { let s = ""; for (const k in o) s += k + " "; return s }));`

const whatTripped = `this["\u0000noted"]()`

// Where a compiled function has its kind, and the constants with the functions in
// it: facts about the examined build, which TestForbiddenIsSeen verifies.
const (
	codeKind      = 16 // byte whose bits 5 and 6 are the kind: 2 is async
	codeAsync     = 2 << 5
	codeConstants = 52 // JSValue*
	codeCount     = 56
	tagBytecode   = 0xFFFFFFFE
)

// compiledAsync reports whether a compiled script has an async function in it.
func compiledAsync(in *instance, code uint64, depth int) bool {
	if code>>32 != tagBytecode || depth > 2000 {
		return false
	}
	at := uint32(code)
	kind, _ := in.mem.ReadByte(at + codeKind)
	if kind&codeAsync != 0 {
		return true
	}
	constants, _ := in.mem.ReadUint32Le(at + codeConstants)
	n, _ := in.mem.ReadUint32Le(at + codeCount)
	for i := range n {
		if v, ok := in.mem.ReadUint64Le(constants + i*8); ok && compiledAsync(in, v, depth+1) {
			return true
		}
	}
	return false
}

// observed is what QuickJS does with a source, with no check before it.
type observed struct {
	compiled bool
	async    bool   // it has an async function
	tripped  string // forbidden names that were used as variables
	fault    *contract.Fault
}

// observe compiles and runs a source among tripwires.
func observe(t *testing.T, e *Engine, source string) (o observed) {
	t.Helper()
	ctx := t.Context()
	limits := fuzzLimits()
	in, err := e.fresh(ctx, limits.HeapBytes, limits.StackBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	x := &execution{engine: e, in: in, limits: limits, caller: &obedient{}, parent: ctx, ctx: ctx}
	if _, err := in.eval(ctx, in.file, tripwires, 0); err != nil {
		t.Fatalf("the tripwires: %v", err)
	}
	if err := in.set(exportFuel, x.refuel()); err != nil {
		t.Fatal(err)
	}
	ctx = context.WithValue(ctx, hostKey{}, guestCaller(x))
	code, err := in.eval(ctx, in.file, source, evalStrict|evalCompileOnly)
	if thrown, ok := asThrown(err); ok {
		_, err = x.answer(ctx, opDescribe, thrown.value, 0, contract.ReasonSyntaxError)
	}
	if err != nil {
		o.fault = x.faultOf(err)
		return o
	}
	o.compiled, o.async = true, compiledAsync(in, code, 0)
	if _, err = x.answer(ctx, opDefine, code, 0, contract.ReasonJavaScriptError); err == nil {
		var input uint64
		if input, err = in.newString(ctx, []byte("null")); err == nil {
			x.live = true
			_, err = x.answer(ctx, opMain, input, uint64(limits.OutputBytes), contract.ReasonJavaScriptError)
		}
	}
	if err != nil {
		o.fault = x.faultOf(err)
		if o.fault.Reason != contract.ReasonJavaScriptError {
			return o // the VM was left in the middle of something
		}
	}
	x.limits.Fuel, x.live = 0, false
	v, err := in.eval(ctx, in.file, whatTripped, 0)
	if err != nil {
		return o
	}
	if s, err := in.text(ctx, v, 1000); err == nil {
		o.tripped = string(s)
	}
	return o
}

func asThrown(err error) (*errThrown, bool) {
	thrown, ok := err.(*errThrown) //nolint:errorlint // eval wraps nothing
	return thrown, ok
}

// TestForbiddenIsSeen: the observation sees every form that the check refuses; a
// fuzz target that looks with it is worth something.
func TestForbiddenIsSeen(t *testing.T) {
	tests := map[string]struct {
		source, tripped string
		async           bool
	}{
		"nothing":           {source: `function main(){return "eval" in {eval:1}}`},
		"eval":              {source: `function main(){eval("1")}`, tripped: "eval "},
		"typeof":            {source: `typeof Promise;function main(){}`, tripped: "Promise "},
		"assigned":          {source: `function main(){console=1}`, tripped: "console "},
		"escaped":           {source: `function main(){gl\u006fbalThis}`, tripped: "globalThis "},
		"shorthand":         {source: `function main(){return {WebAssembly}}`, tripped: "WebAssembly "},
		"async function":    {source: `async function f(){} function main(){}`, async: true},
		"async arrow":       {source: `function main(){return ()=>[async()=>1]}`, async: true},
		"async method":      {source: `class A{static async m(){}} function main(){}`, async: true},
		"async generator":   {source: `function main(){({async *m(){}})}`, async: true},
		"generator":         {source: `function *g(){yield 1} function main(){return [...g()]}`},
		"nested and plain":  {source: `function main(){return (()=>()=>function(){})()()()}`},
		"a local of a name": {source: `function main(){const console=1;return console}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := observe(t, testEngine(t), tt.source)
			if !o.compiled || o.tripped != tt.tripped || o.async != tt.async {
				t.Errorf("observed %+v, want tripped %q, async %t", o, tt.tripped, tt.async)
			}
		})
	}
}

// FuzzAgreement: what the check accepts, QuickJS compiles or refuses with a clean
// SyntaxError, and nothing in it is what the check refuses: no async function is
// compiled, and no forbidden name is used as a variable when it runs.
func FuzzAgreement(f *testing.F) {
	for source := range grammar(f) {
		f.Add(source)
	}
	for _, p := range vectorPrograms(f) {
		f.Add(p.Source)
	}
	e := testEngine(f)
	f.Fuzz(func(t *testing.T, source string) {
		ends(t)
		if len(source) > 8<<10 {
			return
		}
		verdict, _ := checkVerdict(source)
		if verdict != "" {
			return
		}
		o := observe(t, e, source)
		switch {
		case !o.compiled:
			if r := o.fault.Reason; r != contract.ReasonSyntaxError && r != contract.ReasonStackExhausted && r != contract.ReasonTimeout && r != contract.ReasonHeapExhausted {
				t.Errorf("%q is accepted, and compiling it gives %v", source, o.fault)
			}
		case o.async:
			t.Errorf("%q is accepted, and has an async function", source)
		case o.tripped != "" && !strings.Contains(source, "this"): // by way of this the names are properties
			t.Errorf("%q is accepted, and uses %s", source, o.tripped)
		case o.fault != nil && o.fault.Reason == contract.ReasonWorkerLost:
			t.Errorf("%q: %v", source, o.fault)
		}
	})
}
