package contract

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzToolResult: any text is a tool result or an error, and media that is
// complete keeps its bounds and its geometry when it is written down.
func FuzzToolResult(f *testing.F) {
	const gif = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
	for _, s := range []string{
		`{"value":1}`, `{"value":null,"receipt":"r"}`, `{"value":1,"media":7}`, `{"value":1,"value":2}`, `{"Value":1}`, `{}`, `[]`, `{"value":1} 2`,
		`{"value":{"a":"\ud800"},"media":{"marker":"` + MediaMarker + `","text":"t","geometry":{"width":1,"height":1},"pictures":[{"mimeType":"image/gif","data":"` + gif + `"}]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		bounded(t)
		x, err := DecodeToolResult(text)
		if err != nil {
			return
		}
		if !json.Valid(x.Value) {
			t.Fatalf("the value is not JSON: %q", x.Value)
		}
		if x.Media == nil || x.Media.Complete() != nil {
			return
		}
		raw, _, err := x.Media.Encode()
		if err != nil {
			t.Fatalf("complete media cannot be kept: %v", err)
		}
		var again Media
		if err := json.Unmarshal(raw, &again); err != nil || again.Complete() != nil || again.Geometry != x.Media.Geometry {
			t.Errorf("it is not the same behind its text: %v", err)
		}
	})
}

// FuzzEvidence: whatever a call left, its evidence is JSON in UTF-8, fits, and
// holds neither the result nor the receipt twice.
func FuzzEvidence(f *testing.F) {
	f.Add([]byte(`{"a":"<b>"}`), "r-1", "pay", int64(7), "sha256:0", 200)
	f.Add([]byte(`"\u2028\ud800"`), "\xff\x00", strings.Repeat("t", 64), int64(0), "", 128)
	f.Add([]byte(nil), "", "", int64(1)<<62, "", 4096)
	f.Fuzz(func(t *testing.T, result []byte, receipt, tool string, n int64, digest string, most int) {
		bounded(t)
		l := Left{Seq: 1, Tool: Truncate(tool, 64), Reason: ReasonEffectUncertain, Receipt: CutReceipt(receipt), ResultBytes: n, ResultDigest: Truncate(digest, 71)}
		if utf8.Valid(result) && json.Valid(result) {
			l.Result = result
		}
		most = max(most, EvidenceFloorBytes)
		got := l.Evidence(int64(most))
		if len(got) > most || !json.Valid([]byte(got)) || !utf8.ValidString(got) {
			t.Fatalf("%d bytes of at most %d: %q", len(got), most, got)
		}
		if len(l.Receipt) > MaxReceiptBytes || CutReceipt(l.Receipt) != l.Receipt {
			t.Errorf("receipt %q", l.Receipt)
		}
		var out bytes.Buffer
		if l.Result != nil && json.Compact(&out, l.Result) == nil && out.Len() > 64 && strings.Count(got, out.String()) > 1 {
			t.Errorf("the result is there twice: %s", got)
		}
	})
}
