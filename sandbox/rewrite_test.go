package sandbox

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestRewriteIsReproducible(t *testing.T) {
	for range 2 {
		m, err := rewrite(qjsWasm)
		if err != nil {
			t.Fatal(err)
		}
		if got := sha256Of(m); got != rewrittenSHA256 {
			t.Fatalf("sha256 of the rewritten module is %s, want %s", got, rewrittenSHA256)
		}
	}
}

// TestRewriteRefuses: another module than the examined one is an error, never a
// panic and never a guess.
func TestRewriteRefuses(t *testing.T) {
	secs, err := splitSections(qjsWasm)
	if err != nil {
		t.Fatal(err)
	}
	with := func(id byte, change func([]byte) []byte) []byte {
		out := append([]section(nil), secs...)
		for i := range out {
			if out[i].id == id {
				out[i].body = change(append([]byte(nil), out[i].body...))
			}
		}
		return joinSections(out)
	}
	tests := map[string]struct {
		module []byte
		want   string
	}{
		"empty":           {nil, "not a WebAssembly module"},
		"other header":    {[]byte("\x00asm\x02\x00\x00\x00"), "not a WebAssembly module"},
		"no sections":     {[]byte(wasmHeader), "no section"},
		"cut":             {qjsWasm[:len(qjsWasm)/2], "cut section"},
		"more memory":     {with(secMemory, func([]byte) []byte { return []byte{1, 0, imagePages + 1} }), "unexpected memory section"},
		"more globals":    {with(secGlobal, func(b []byte) []byte { return append(b, 0) }), "unexpected global section"},
		"no imports":      {with(secImport, func([]byte) []byte { return []byte{0} }), "no import"},
		"unknown opcode":  {with(secCode, func([]byte) []byte { return []byte{1, 3, 0, 0xff, opEnd} }), "unknown opcode"},
		"cut code":        {with(secCode, func(b []byte) []byte { return b[:len(b)-1000] }), "cut code section"},
		"data elsewhere":  {with(secData, func([]byte) []byte { return append(appendSleb([]byte{1, 0, opI32Const}, 1<<20), opEnd, 1, 0) }), "unexpected data segment"},
		"data below zero": {with(secData, func([]byte) []byte { return append(appendSleb([]byte{1, 0, opI32Const}, -8), opEnd, 1, 0) }), "unexpected data segment"},
		"endless locals":  {with(secCode, func([]byte) []byte { return append(appendUleb([]byte{1, 10}, 1<<62), opEnd) }), "cut"},
		"endless imports": {with(secImport, func([]byte) []byte { return appendUleb(nil, 1<<62) }), "no import"},
		"endless data":    {with(secData, func([]byte) []byte { return append(appendSleb([]byte{1, 0, opI32Const}, math.MaxInt64), opEnd, 1, 0) }), "unexpected data segment"},
		"cut data":        {with(secData, func(b []byte) []byte { return b[:len(b)-1] }), "unexpected data segment"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := rewrite(tt.module); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestRewriteKeepsMeaning: the changed module computes what JavaScript says.
func TestRewriteKeepsMeaning(t *testing.T) {
	tests := map[string]string{
		`[1.5,"é",{a:[null,true]}]`:                                          `[1.5,"é",{"a":[null,true]}]`,
		`[3,1,2].sort().join()`:                                              `"1,2,3"`,
		`"aXbX".replace(/X/g,m=>m+1)`:                                        `"aX1bX1"`,
		`(2n**70n).toString()`:                                               `"1180591620717411303424"`,
		`[..."a😀b"].length`:                                                  `3`,
		`[Math.sin(1),Math.pow(2,.5),parseFloat("1e-7")]`:                    `[0.8414709848078965,1.4142135623730951,1e-7]`,
		`(0.1+0.2).toFixed(20)`:                                              `"0.30000000000000004441"`,
		`(()=>{let s=0;for(let i=0;i<1e5;i++)s=(s*31+i)|0;return s})()`:      `-2072239280`,
		`(function f(n){return n?f(n-1)+1:0})(500)`:                          `500`,
		`(()=>{class A{#x=1;get(){return this.#x}} return new A().get()})()`: `1`,
		`[...function*(){for(let i=0;i<5;i++)yield i}()]`:                    `[0,1,2,3,4]`,
		`["ß".toUpperCase(),"é".normalize("NFD").length]`:                    `["SS",2]`,
		`/(?<a>\d+)(?<!x)/u.exec("ab12").groups.a`:                           `"12"`,
		`(()=>{const m=new Map;for(let i=0;i<1000;i++)m.set("k"+i,i);return [...m.values()].reduce((a,b)=>a+b)})()`: `499500`,
		`JSON.parse('{"a":[1,2,{"b":"\\u00e9"}]}').a[2].b`:                                                          `"é"`,
		`[...new Float32Array([1.1,2.2])].map(Math.fround).map(n=>n.toFixed(3))`:                                    `["1.100","2.200"]`,
		`encodeURIComponent("é&")`:         `"%C3%A9%26"`,
		`new Date(86400000).toISOString()`: `"1970-01-02T00:00:00.000Z"`,
	}
	e := testEngine(t)
	for expr, want := range tests {
		t.Run(expr, func(t *testing.T) {
			res, err := e.Execute(t.Context(), Program{Source: "function main(){return " + expr + "}"}, nil)
			if err != nil || !sameJSON(res.Value, json.RawMessage(want)) {
				t.Errorf("value %s error %v, want %s", res.Value, err, want)
			}
		})
	}
}
