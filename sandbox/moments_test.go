package sandbox

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// What an attack does at its moment: it never ends, takes all memory, recurses,
// throws, or calls a tool that ends the execution.
var attacks = map[string]struct {
	code string
	want contract.Reason
}{
	"spins":    {`for(;;);`, contract.ReasonTimeout},
	"grows":    {`const a=[];for(;;)a.push(new Uint8Array(1<<18))`, contract.ReasonHeapExhausted},
	"recurses": {`(function f(){return f()+1})()`, contract.ReasonStackExhausted},
	"catches":  {`for(;;)try{for(;;);}catch{}finally{continue}`, contract.ReasonTimeout},
	"ends":     {`try{tools.call("term",1)}catch{}`, contract.ReasonApprovalRequired},
}

// moments are the places where guest code runs; each has a hole for the attack.
var moments = map[string]string{
	"definitions":                 `!function(){@}();function main(){}`,
	"definitions in a class":      `class A{static{@}} function main(){}`,
	"main":                        `function main(){@}`,
	"main behind a proxy":         `main=new Proxy(main,{apply(){@}});function main(){}`,
	"a parameter of main":         `function main(a,b=(()=>{@})()){}`,
	"then of the result":          `function main(){return {get then(){@}}}`,
	"next of the result":          `function main(){return {get next(){@}}}`,
	"a getter of the result":      `function main(){return [{get a(){@}}]}`,
	"toJSON of the result":        `function main(){return {a:{toJSON(){@}}}}`,
	"toJSON itself is a getter":   `function main(){return {get toJSON(){@}}}`,
	"toJSON of all objects":       `Object.prototype.toJSON=function(){@};function main(){return {}}`,
	"keys of the result":          `function main(){return new Proxy({},{ownKeys(){@}})}`,
	"length of the result":        `function main(){return new Proxy([],{get(t,k){if(k==="length"){@}return t[k]}})}`,
	"a wrapper's value":           `function main(){return Object.assign(new Number(1),{valueOf(){@}})}`,
	"name of the error":           `function main(){throw {get name(){@}}}`,
	"message of the error":        `function main(){throw {get message(){@}}}`,
	"stack of the error":          `function main(){throw {message:"m",get stack(){@}}}`,
	"name of all errors":          `Object.defineProperty(Error.prototype,"name",{get(){@}});function main(){throw new Error("e")}`,
	"a proxy as the error":        `function main(){throw new Proxy({},{get(){@}})}`,
	"toJSON of what is thrown":    `function main(){throw {toJSON(){@}}}`,
	"a getter of the arguments":   `function main(){tools.call("echo",{get a(){@}})}`,
	"toJSON of the arguments":     `function main(){tools.call("echo",{toJSON(){@}})}`,
	"message of a failed toJSON":  `function main(){tools.call("echo",{toJSON(){throw {get message(){@}}}})}`,
	"a setter on what is made":    `Object.defineProperty(Object.prototype,"q",{set(){@}});function main(){tools.call("echo",{});Object.assign({},{q:1})}`,
	"a comparison":                `function main(){[3,2,1].sort(()=>{@})}`,
	"a replacement":               `function main(){"aaa".replace(/a/g,()=>{@})}`,
	"a generator that is left":    `function main(){for(const x of function*(){try{yield 1}finally{@}}())break}`,
	"an iterator that is spread":  `function main(){return [...{[Symbol.iterator](){return {next(){@}}}}]}`,
	"a conversion to a primitive": "function main(){return `${{[Symbol.toPrimitive](){@}}}`}",
	"a species":                   `function main(){class A extends Array{static get [Symbol.species](){@}};new A(1).map(x=>x)}`,
}

func attackLimits() contract.Limits {
	l := hostileLimits()
	l.HeapBytes, l.StackBytes, l.Fuel, l.WallClockMs = 8<<20, 256<<10, 3_000_000, 120_000
	return l
}

// TestMoments: every attack ends with its own reason at every moment at which
// guest code can run, and within the heap.
func TestMoments(t *testing.T) {
	e := testEngine(t)
	for moment, source := range moments {
		for attack, a := range attacks {
			t.Run(moment+"/"+attack, func(t *testing.T) {
				want := a.want
				if attack == "ends" && strings.HasPrefix(moment, "definitions") {
					want = contract.ReasonJavaScriptError // there are no tools yet
				}
				limits := attackLimits()
				res, err := e.Execute(t.Context(), Program{Source: strings.ReplaceAll(source, "@", a.code), Limits: limits}, &hostileTools{})
				if f, ok := contract.AsFault(err); !ok || f.Reason != want {
					t.Errorf("value %.100s error %v, want %s", res.Value, err, want)
				}
				judgeOutcome(t, limits, res, err)
			})
		}
	}
}

// TestTexts: what crosses the boundary in any direction is carried right or
// refused at the door: nesting, sizes, NUL, what is not UTF-8, half pairs.
func TestTexts(t *testing.T) {
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	const calls = `function main(){try{return tools.call("t",{})}catch(e){return [e.name,e.code,e.message]}}`
	tests := map[string]struct {
		source, input, answer string
		err                   error
		limits                contract.Limits
		want                  string // a value, or a reason
	}{
		"source: an escaped NUL":         {source: `function main(){return "a\0b\x00\u0000"}`, want: `"a\u0000b\u0000\u0000"`},
		"source: half a pair":            {source: `function main(){return ["\ud800","\udc00\ud800"]}`, want: `["\ud800","\udc00\ud800"]`},
		"source: a pair in two escapes":  {source: `function main(){return "\ud83d\ude00"}`, want: `"😀"`},
		"source: not UTF-8 in a comment": {source: "function main(){return 1} // \xc3", want: "SyntaxError"},
		"source: a coded half pair":      {source: "function main(){return '\xed\xa0\x80'}", want: "SyntaxError"},
		"source: NUL in a template":      {source: "function main(){return `\x00`}", want: "SyntaxError"},
		"source: separators in strings":  {source: "function main(){return '\u2028\u2029'}", want: "\"\u2028\u2029\""},
		"source: too deep for the stack": {source: "function main(){return " + nest(900) + ".length}", limits: contract.Limits{StackBytes: 64 << 10}, want: "StackExhausted"},
		"source: too deep for the check": {source: "function main(){return " + nest(1100) + "}", want: "SyntaxError"},
		"source: too large for the heap": {source: "function main(){return [" + strings.Repeat("'x',", 60_000) + "]}", limits: contract.Limits{HeapBytes: 1 << 20, SourceBytes: 1 << 20}, want: "HeapExhausted"},
		"source: too large for the fuel": {source: "function main(){" + strings.Repeat("a();", 15_000) + "}", limits: contract.Limits{Fuel: 50_000}, want: "Timeout"},
		"source: a pattern that is dear": {source: "function main(){return /" + strings.Repeat("(?:", 200) + "a" + strings.Repeat("{2})", 200) + "/.source.length}", limits: contract.Limits{Fuel: 3_000_000, HeapBytes: 2 << 20}, want: "1401"},
		"input: as deep as is allowed":   {source: `function main(i){let n=0;for(;Array.isArray(i);i=i[0])n++;return n}`, input: nest(10_000), limits: contract.Limits{StackBytes: 1 << 20}, want: "10000"},
		"input: too deep for the stack":  {source: `function main(i){return 1}`, input: nest(10_000), limits: contract.Limits{StackBytes: 64 << 10}, want: "StackExhausted"},
		"input: a thousand deep":         {source: `function main(i){let n=0;for(;Array.isArray(i);i=i[0])n++;return n}`, input: nest(1000), want: "1000"},
		"input: deeper":                  {source: `function main(i){return 1}`, input: nest(10_001), want: "InvalidInput"},
		"input: a byte order mark":       {source: `function main(i){return 1}`, input: "\uFEFF1", want: "InvalidInput"},
		"input: a coded half pair":       {source: `function main(i){return 1}`, input: "\"\xed\xa0\x80\"", want: "InvalidInput"},
		"input: NUL behind it":           {source: `function main(i){return 1}`, input: "1\x00", want: "InvalidInput"},
		"input: a key __proto__":         {source: `function main(i){return [Object.keys(i),i.x===undefined]}`, input: `{"__proto__":{"x":1}}`, want: `[["__proto__"],true]`},
		"input: too large for the heap":  {source: `function main(i){return i.length}`, input: "[" + strings.Repeat("{},", 30_000) + "1]", limits: contract.Limits{HeapBytes: 1 << 20, InputBytes: 1 << 20}, want: "HeapExhausted"},
		"answer: NUL":                    {source: calls, answer: "\"a\x00\"", want: "ChildResultInvalid"},
		"answer: an escaped NUL":         {source: calls, answer: `"a\u0000b"`, want: `"a\u0000b"`},
		"answer: not UTF-8":              {source: calls, answer: "\"\xff\"", want: "ChildResultInvalid"},
		"answer: half a pair":            {source: calls, answer: `"\ud800"`, want: `"\ud800"`},
		"answer: nothing":                {source: calls, answer: ``, want: "ChildResultInvalid"},
		"answer: two values":             {source: calls, answer: `1 2`, want: "ChildResultInvalid"},
		"answer: closes the frame":       {source: calls, answer: `1],[2`, want: "ChildResultInvalid"},
		"answer: deeper than allowed":    {source: calls, answer: nest(10_001), want: "ChildResultInvalid"},
		"answer: too deep for the stack": {source: calls, answer: nest(9000), limits: contract.Limits{StackBytes: 64 << 10}, want: "StackExhausted"},
		"answer: too large for the heap": {source: calls, answer: "[" + strings.Repeat("{},", 30_000) + "1]", limits: contract.Limits{HeapBytes: 1 << 20}, want: "HeapExhausted"},
		"failure: odd text":              {source: calls, err: contract.Faultf(contract.ReasonToolFailed, "a\x00\xff\u2028\"b"), want: `["Error","ToolFailed","a\u0000�\u2028\"b"]`},
		"failure: an odd code":           {source: calls, err: codedFailure{contract.Faultf(contract.ReasonToolFailed, "m"), "\xff\x00"}, want: `["Error","�\u0000","m"]`},
		"arguments: larger than any":     {source: `function main(){try{tools.call("t","x".repeat(1<<20))}catch(e){return [e.name,e.code]}}`, answer: `1`, want: `["Error","InvalidArguments"]`},
		"arguments: as large as allowed": {source: `function main(){return tools.call("t","x".repeat((1<<20)-2))}`, answer: `1`, want: `1`},
		"arguments: wide and large":      {source: `function main(){try{tools.call("t",Array(2000).fill("\u1234".repeat(1000)))}catch(e){return e.code}}`, answer: `1`, limits: contract.Limits{HeapBytes: 64 << 20, WallClockMs: 60_000}, want: `"InvalidArguments"`},
		"arguments: nested deeply":       {source: `function main(){let a=[];for(let i=0;i<2000;i++)a=[a];try{return tools.call("t",a)}catch(e){return e.code}}`, answer: `1`, want: `1`},
		"name: NUL":                      {source: `function main(){return tools.call("a\0b",{})}`, answer: `1`, want: `1`},
		"result: as deep as is allowed":  {source: `function main(){let a=[];for(let i=0;i<2000;i++)a=[a];return a}`, want: nest(2001)},
		"result: NUL as a key":           {source: `function main(){return {"\0":"\0"}}`, want: `{"\u0000":"\u0000"}`},
		"result: wide and too large":     {source: `function main(){return "\u1234".repeat(100000)}`, want: "OutputTooLarge"},
		"result: escapes make it so":     {source: `function main(){return "\0".repeat(50000)}`, want: "OutputTooLarge"},
		"result: BigInt with toJSON":     {source: `BigInt.prototype.toJSON=function(){return String(this)};function main(){return [1n]}`, want: `["1"]`},
		"error: NUL in its message":      {source: `function main(){throw new Error("a\0b")}`, want: "JavaScriptError"},
		"error: half a pair":             {source: `function main(){throw new Error("\ud800")}`, want: "JavaScriptError"},
		"error: a message of 16 MB":      {source: `function main(){throw new Error("é".repeat(8e6))}`, want: "JavaScriptError"},
		"error: a frame of its own":      {source: "function main(){throw {message:'m',stack:'    at x (main.js:999999999999:1)'}}", want: "JavaScriptError"},
	}
	e := testEngine(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := Program{Source: tt.source, Input: json.RawMessage(tt.input), Limits: tt.limits}
			c := answers(tt.answer)
			if tt.err != nil {
				c = failsWith(tt.err)
			}
			res, err := e.Execute(t.Context(), p, c)
			judgeOutcome(t, withDefaults(withFuel(tt.limits)), res, err)
			if f, ok := contract.AsFault(err); ok && string(f.Reason) == tt.want || err == nil && sameJSON(res.Value, json.RawMessage(tt.want)) {
				return
			}
			t.Errorf("value %.200s error %v, want %.200s", res.Value, err, fmt.Sprint(tt.want))
		})
	}
}

// withFuel is l with a bound of work that is no bound, where it has none.
func withFuel(l contract.Limits) contract.Limits {
	if l.Fuel == 0 {
		l.Fuel = 1 << 60
	}
	return l
}
