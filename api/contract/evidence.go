package contract

import (
	"encoding/json"
	"strings"
	"unicode"
)

// MaxEvidenceBytes bounds the evidence of any run: the ceiling of limits.outputBytes.
const MaxEvidenceBytes = 256 << 10

// Left is what a child call left behind when it ended its run.
type Left struct {
	// Seq, Tool and Reason are the call's; Reason is the fault's.
	Seq    int64
	Tool   string
	Reason Reason
	// Result is the JSON text of the tool's answer; nil without one.
	Result json.RawMessage
	// ResultBytes and ResultDigest are of an answer that was not kept, so that
	// Result is nil.
	ResultBytes  int64
	ResultDigest string
	// Receipt is the tool's, as CutReceipt leaves it, or "".
	Receipt string
}

// evidence is the JSON of what is left. Its four forms, each with the keys in
// this order and none without a value; digests and sizes are of the tool's own
// bytes:
//
//	{"seq":1,"tool":"pay","reason":"EffectUncertain","result":{"a":1},"receipt":"r"}
//	{"seq":1,"tool":"pay","reason":"EffectUncertain","receipt":"r","omitted":{"result":{"bytes":7,"digest":"sha256:.."}}}
//	{"seq":1,"tool":"pay","reason":"EffectUncertain","omitted":{"result":{"bytes":7,"digest":"sha256:.."},"receipt":{"bytes":1,"digest":"sha256:.."}}}
//	{"seq":1,"reason":"EffectUncertain","omitted":{"all":true}}
type evidence struct {
	Seq     int64           `json:"seq"`
	Tool    string          `json:"tool,omitempty"`
	Reason  Reason          `json:"reason"`
	Result  json.RawMessage `json:"result,omitempty"`
	Receipt string          `json:"receipt,omitempty"`
	Omitted *omitted        `json:"omitted,omitempty"`
}

// omitted marks what did not fit, or was not kept.
type omitted struct {
	Result  *omission `json:"result,omitempty"`
	Receipt *omission `json:"receipt,omitempty"`
	All     bool      `json:"all,omitempty"`
}

type omission struct {
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest,omitempty"`
}

// Evidence returns the JSON text of what a call left: the first of the forms
// full, without the result, without result and receipt, and without anything
// that has at most so many bytes. The last always fits EvidenceFloorBytes.
func (l Left) Evidence(most int64) string {
	full := evidence{Seq: l.Seq, Tool: l.Tool, Reason: l.Reason, Result: l.Result, Receipt: l.Receipt}
	noResult := full
	noResult.Result = nil
	if gone := l.omission(); gone != nil {
		noResult.Omitted = &omitted{Result: gone}
	}
	bare := noResult
	if l.Receipt != "" {
		bare.Receipt, bare.Omitted = "", &omitted{Receipt: omit([]byte(l.Receipt))}
		if noResult.Omitted != nil {
			bare.Omitted.Result = noResult.Omitted.Result
		}
	}
	if l.Result == nil {
		full = noResult // which says what is not kept, if anything
	}
	for _, form := range []evidence{full, noResult, bare} {
		if text, err := form.text(); err == nil && int64(len(text)) <= most {
			return text
		}
	}
	text, _ := evidence{Seq: l.Seq, Reason: l.Reason, Omitted: &omitted{All: true}}.text()
	return text
}

// text is the JSON, with the result as the tool spelled it but for blanks.
func (e evidence) text() (string, error) { return plainJSON(e) }

func plainJSON(v any) (string, error) {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// LastResult is the last useful result of an agent's programs, which is kept when
// the run fails behind it.
type LastResult struct {
	// Step is the program's.
	Step int64
	// Result is JSON text.
	Result json.RawMessage
}

// Evidence returns the first of these JSON texts that has at most so many bytes:
//
//	{"step":1,"result":{"a":1}}
//	{"step":1,"omitted":{"result":{"bytes":7,"digest":"sha256:.."}}}
//	{"step":1,"omitted":{"all":true}}
//
// The last always fits EvidenceFloorBytes.
func (l LastResult) Evidence(most int64) string {
	type form struct {
		Step    int64           `json:"step"`
		Result  json.RawMessage `json:"result,omitempty"`
		Omitted *omitted        `json:"omitted,omitempty"`
	}
	for _, f := range []form{
		{Step: l.Step, Result: l.Result}, {Step: l.Step, Omitted: &omitted{Result: omit(l.Result)}},
	} {
		if text, err := plainJSON(f); err == nil && int64(len(text)) <= most {
			return text
		}
	}
	text, _ := plainJSON(form{Step: l.Step, Omitted: &omitted{All: true}})
	return text
}

// omission says what is missing without the result.
func (l Left) omission() *omission {
	switch {
	case l.Result != nil:
		return omit(l.Result)
	case l.ResultBytes > 0:
		return &omission{Bytes: l.ResultBytes, Digest: l.ResultDigest}
	}
	return nil
}

func omit(b []byte) *omission { return &omission{Bytes: int64(len(b)), Digest: Digest(b)} }

// CutReceipt makes a receipt of what a tool gave for one: printable text in UTF-8
// of at most MaxReceiptBytes. What is not printable becomes a blank: left out, it
// could make a credential of what was none when it was looked for.
func CutReceipt(s string) string {
	if len(s) > 4*MaxReceiptBytes {
		s = s[:4*MaxReceiptBytes]
	}
	s = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	return Truncate(strings.TrimSpace(s), MaxReceiptBytes)
}
