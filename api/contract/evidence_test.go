package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestEvidence(t *testing.T) {
	result := json.RawMessage(`{"a":"<b>"}`)
	of := func(b string) string { return fmt.Sprintf(`{"bytes":%d,"digest":%q}`, len(b), Digest([]byte(b))) }
	base := Left{Seq: 1, Tool: "pay", Reason: ReasonEffectUncertain}
	with := func(f func(*Left)) Left { l := base; f(&l); return l }
	both := with(func(l *Left) { l.Result, l.Receipt = result, "r-1" })
	const head = `{"seq":1,"tool":"pay","reason":"EffectUncertain"`
	full := head + `,"result":{"a":"<b>"},"receipt":"r-1"}`
	noResult := head + `,"receipt":"r-1","omitted":{"result":` + of(string(result)) + `}}`
	const nothing = `{"seq":1,"reason":"EffectUncertain","omitted":{"all":true}}`
	big := with(func(l *Left) { l.Result, l.Receipt = json.RawMessage(`"`+strings.Repeat("x", 1000)+`"`), "r-1" })
	tests := map[string]struct {
		left Left
		most int
		want string
	}{
		"only the call":            {base, 128, head + `}`},
		"all of it":                {both, len(full), full},
		"a byte too few":           {big, 1000, head + `,"receipt":"r-1","omitted":{"result":` + of(string(big.Result)) + `}}`},
		"without the result":       {big, len(strings.Replace(noResult, `"bytes":11`, `"bytes":1002`, 1)), head + `,"receipt":"r-1","omitted":{"result":` + of(string(big.Result)) + `}}`},
		"without both":             {with(func(l *Left) { l.Result, l.Receipt = result, strings.Repeat("r", 900) }), 400, head + `,"omitted":{"result":` + of(string(result)) + `,"receipt":` + of(strings.Repeat("r", 900)) + `}}`},
		"without anything":         {with(func(l *Left) { l.Result, l.Receipt = big.Result, strings.Repeat("r", 900) }), 128, nothing},
		"too large to be kept":     {with(func(l *Left) { l.ResultBytes, l.ResultDigest, l.Receipt = 9, Digest(nil), "r" }), 4096, head + `,"receipt":"r","omitted":{"result":{"bytes":9,"digest":"` + Digest(nil) + `"}}}`},
		"too large for its digest": {with(func(l *Left) { l.ResultBytes = 9 }), 4096, head + `,"omitted":{"result":{"bytes":9}}}`},
		"blanks go":                {with(func(l *Left) { l.Result = json.RawMessage("[ 1,\n1.0 ]") }), 4096, head + `,"result":[1,1.0]}`},
		"a result that is no JSON": {with(func(l *Left) { l.Result = json.RawMessage("{") }), 4096, head + `,"omitted":{"result":` + of("{") + `}}`},
		"nothing fits at all":      {both, 0, nothing},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := tc.left.Evidence(int64(tc.most))
			if got != tc.want {
				t.Errorf("evidence %s\nwant     %s", got, tc.want)
			}
			if !json.Valid([]byte(got)) {
				t.Error("it is not JSON")
			}
		})
	}
}

// TestSmallestEvidenceFits holds the last form to the floor below which no call
// is admitted, whatever the reason.
func TestSmallestEvidenceFits(t *testing.T) {
	for r := range classes {
		l := Left{Seq: 1 << 62, Tool: strings.Repeat("t", 64), Reason: r, Result: json.RawMessage(`"x"`), Receipt: strings.Repeat("r", MaxReceiptBytes)}
		if got := l.Evidence(EvidenceFloorBytes); len(got) > EvidenceFloorBytes {
			t.Errorf("%d bytes: %s", len(got), got)
		}
	}
}

func TestCutReceipt(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"as it is":           {"r-1 é", "r-1 é"},
		"300 bytes":          {strings.Repeat("r", 300), strings.Repeat("r", 300)},
		"too long":           {strings.Repeat("r", 5000), strings.Repeat("r", MaxReceiptBytes)},
		"cut at a rune":      {strings.Repeat("é", 600), strings.Repeat("é", 512)},
		"control":            {" a\x00\x1b[1m\nb\t", "a  [1m b"},
		"not UTF-8":          {"a\xff\xfeb", "a  b"},
		"never put together": {"sec\u00a0r\ufffde\ue000t", "sec r e t"},
		"nothing is left":    {"\n", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := CutReceipt(tc.in); got != tc.want {
				t.Errorf("receipt %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLastResult(t *testing.T) {
	l := LastResult{Step: 3, Result: json.RawMessage(`{"a": "<b>"}`)}
	long := LastResult{Step: 3, Result: json.RawMessage(`"` + strings.Repeat("x", 200) + `"`)}
	tests := map[string]struct {
		result LastResult
		most   int64
		want   string
	}{
		"whole":      {l, 1000, `{"step":3,"result":{"a":"<b>"}}`},
		"just whole": {l, 31, `{"step":3,"result":{"a":"<b>"}}`},
		"nothing":    {l, 30, `{"step":3,"omitted":{"all":true}}`},
		"too long":   {long, 130, `{"step":3,"omitted":{"result":{"bytes":202,"digest":"` + Digest(long.Result) + `"}}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.result.Evidence(tc.most); got != tc.want {
				t.Errorf("evidence %s, want %s", got, tc.want)
			}
		})
	}
	largest := LastResult{Step: MaxMaxSteps, Result: json.RawMessage(`"` + strings.Repeat("x", MaxEvidenceBytes) + `"`)}
	if n := len(largest.Evidence(EvidenceFloorBytes)); n > EvidenceFloorBytes {
		t.Errorf("the smallest form has %d bytes", n)
	}
}
