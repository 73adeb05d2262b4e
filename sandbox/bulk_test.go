package sandbox

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestBulkIsPaid: filling and copying memory costs fuel by its size, whatever
// built-in function does it; otherwise a short program could work for minutes
// between two polls.
func TestBulkIsPaid(t *testing.T) {
	const size, times = 1_000_000, 3
	forms := map[string]string{
		"fill":         `a.fill(i)`,
		"copyWithin":   `a.copyWithin(1,0)`,
		"set":          `b.set(a)`,
		"slice":        `b=a.slice()`,
		"buffer slice": `b=a.buffer.slice(0)`,
		"new":          `b=new Uint8Array(a.length)`,
		"subarray set": `a.set(a.subarray(1))`,
		"wide text":    `b=(w+i).length`,
	}
	e := testEngine(t)
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			source := fmt.Sprintf(`function main(n){let a=new Uint8Array(%d),b=new Uint8Array(a.length),w="\u1234".repeat(a.length/2);for(let i=0;i<n;i++){%s}return 1}`, size, form)
			fuel := func(n int) int64 {
				res, err := e.Execute(t.Context(), Program{Source: source, Input: json.RawMessage(fmt.Sprint(n)), Limits: contract.Limits{WallClockMs: 60_000}}, nil)
				if err != nil {
					t.Fatal(err)
				}
				return res.Usage.Fuel
			}
			if got, want := fuel(times)-fuel(0), int64(times*(size-8)>>bulkUnit); got < want {
				t.Errorf("%d times %d bytes cost %d units, want at least %d", times, size, got, want)
			}
		})
	}
}

// TestBulkFuelLimit: work that is paid in bulk ends exactly at limits.fuel, too.
func TestBulkFuelLimit(t *testing.T) {
	for _, fuel := range []int64{60_000, 100_000, 123_456} {
		res, err := testEngine(t).Execute(t.Context(), Program{Source: `function main(){const a=new Uint8Array(4e6);for(;;)a.fill(1)}`, Limits: contract.Limits{Fuel: fuel}}, nil)
		if f, ok := contract.AsFault(err); !ok || f.Reason != contract.ReasonTimeout || res.Usage.Fuel != fuel {
			t.Errorf("with %d units: used %d, error %v, want Timeout after exactly that", fuel, res.Usage.Fuel, err)
		}
	}
}

// TestBulkPieces: copies and fills of more than one piece, overlapping to either
// side, are what one instruction would make of them.
func TestBulkPieces(t *testing.T) {
	const source = `function main({piece}){
  const wrong=[], p=new Uint8Array(3*piece), a=new Uint8Array(3*piece), want=new Uint8Array(3*piece), words=x=>new Float64Array(x.buffer);
  for(let i=0;i<p.length;i++)p[i]=i>>8^i*7;
  const got=words(a), right=words(want);
  for(const size of [piece-1,piece,piece+1,2*piece+17])for(const [to,from] of [[0,1],[1,0],[0,5000],[5000,0],[piece/2+3,5]]){
    a.set(p);
    a.copyWithin(to,from,from+size);
    want.set(p);
    want.set(p.subarray(from,from+size),to); // of another buffer
    let at=got.findIndex((x,i)=>!Object.is(x,right[i]));
    if(at>=0)wrong.push([to,from,size,at]);
  }
  a.set(p);
  a.fill(9,3,2*piece+5);
  for(let i=0;i<a.length;i++)if((a[i]===9)!==(i>=3&&i<2*piece+5||p[i]===9)){wrong.push(["fill",i]);break}
  return wrong;
}`
	input := json.RawMessage(fmt.Sprintf(`{"piece":%d}`, bulkPiece))
	res, err := testEngine(t).Execute(t.Context(), Program{Source: source, Input: input, Limits: contract.Limits{WallClockMs: 60_000}}, nil)
	if err != nil || string(res.Value) != "[]" {
		t.Errorf("wrong bytes after [to, from, size, at]: %s, error %v", res.Value, err)
	}
}
