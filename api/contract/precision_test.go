package contract_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

func TestPrecisionLoss(t *testing.T) {
	tests := map[string]bool{
		`0`: false, `-0`: false, `1`: false, `123456789012345`: false, `0e999999999999`: false, `0.000e5`: false,
		`9007199254740991`: false, `9007199254740992`: false, `9007199254740993`: true, `-9007199254740993`: true,
		`9007199254740994`: false, `9007199254740993.0`: true, `9007199254740993.00e0`: true, `900719925474099.3e1`: true,
		`90071992547409930e-1`: true, `9007199254740993e-1`: false, `900719925474099.3`: false,
		`12345678901234567890`: true, `12345678901234567890.0`: true, `12345678901234567168`: false,
		`18446744073709551615`: true, `18446744073709551616`: false, `1180591620717411303424`: false, `1180591620717411303425`: true,
		`1e22`: false, `1e23`: true, `1E+23`: true, `1e17`: false, `100000000000000000000000`: true, `10000000000000000000000`: false,
		`0.1`: false, `3.141592653589793238462643383279`: false, `1e-400`: false, `1e400`: true, `1e99999999999999999999`: true,
		`1.7976931348623157e308`: true, `0.00000000000000000000001e46`: true, `0.00000000000000000000001e45`: false,
		`"9007199254740993"`: false, `"\"9007199254740993"`: false, `"\\" `: false, `["\\",9007199254740993]`: true,
		`{"9007199254740993":1}`: false, `{"a":[1,{"b":9007199254740993}]}`: true, `[1,2.5,"x",null,true]`: false, ``: false,
		`1` + strings.Repeat("0", 308): true, strings.Repeat("9", 400): true, `0.` + strings.Repeat("1", 400): false,
	}
	for text, want := range tests {
		if got := contract.PrecisionLoss([]byte(text)); got != want {
			t.Errorf("%.60s: %v, want %v", text, got, want)
		}
	}
}

func TestPrecisionLossAllocatesNothing(t *testing.T) {
	text := precisionText(1 << 16)
	if n := testing.AllocsPerRun(10, func() { contract.PrecisionLoss(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzPrecisionLoss holds it against exact arithmetic.
func FuzzPrecisionLoss(f *testing.F) {
	for _, s := range []string{`9007199254740993`, `1e23`, `123456789012345678.90e1`, `-0.5`, `1180591620717411303424`, `1e308`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		contract.PrecisionLoss([]byte(s)) // whatever it is, it ends
		var n json.Number
		if len(s) > 400 || json.Unmarshal([]byte(s), &n) != nil || strings.ContainsAny(s, "\" n") {
			return
		}
		if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 5 {
			return
		}
		x, ok := new(big.Rat).SetString(strings.TrimSpace(s))
		if !ok {
			return
		}
		_, exact := x.Float64()
		if want := x.IsInt() && !exact; contract.PrecisionLoss([]byte(s)) != want {
			t.Errorf("%s: want %v", s, want)
		}
	})
}

func precisionText(size int) []byte {
	var b strings.Builder
	b.WriteString("[")
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `{"id":%d,"name":"something like a name","price":%d.99,"at":1772366400000},`, i, i)
	}
	return []byte(strings.TrimSuffix(b.String(), ",") + "]")
}

func BenchmarkPrecisionLoss(b *testing.B) {
	text := precisionText(100 << 10)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if contract.PrecisionLoss(text) {
			b.Fatal("lost")
		}
	}
}
