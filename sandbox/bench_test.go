package sandbox

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// BenchmarkFresh is a whole execution of the smallest program.
func BenchmarkFresh(b *testing.B) {
	e := testEngine(b)
	for b.Loop() {
		if _, err := e.Execute(b.Context(), Program{Source: `function main(i){return {ok:true}}`}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCall is one tools.call with arguments and answer of that size.
func BenchmarkCall(b *testing.B) {
	for _, size := range []int{100, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			e := testEngine(b)
			in, err := json.Marshal(map[string]any{"n": b.N, "v": strings.Repeat("a", size)})
			if err != nil {
				b.Fatal(err)
			}
			limits := contract.Limits{InputBytes: 1 << 20, OutputBytes: 1 << 20, WallClockMs: 600_000}
			b.ResetTimer()
			_, err = e.Execute(b.Context(), Program{Source: `function main(i){for(let k=0;k<i.n;k++)tools.call("t",i.v);return 1}`, Input: in, Limits: limits}, answers(`"`+strings.Repeat("a", size)+`"`))
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkFib is computing.
func BenchmarkFib(b *testing.B) {
	e := testEngine(b)
	for b.Loop() {
		if _, err := e.Execute(b.Context(), Program{Source: `function fib(n){return n<2?n:fib(n-1)+fib(n-2)} function main(){return fib(22)}`}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNewCached is the start of a process with a baked cache.
func BenchmarkNewCached(b *testing.B) {
	dir := b.TempDir()
	if err := Precompile(b.Context(), dir); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		e, err := New(b.Context(), Options{CacheDir: dir})
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
