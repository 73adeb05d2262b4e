package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// bounded ends the process if the case does not end: a case without an end would
// otherwise be taken for a slow one.
func bounded(t *testing.T) {
	timer := time.AfterFunc(20*time.Second, func() { panic("the case does not end: " + t.Name()) })
	t.Cleanup(func() { timer.Stop() })
}

// FuzzDecodeBundle: any text is a bundle or a bounded DigestMismatch, and what is
// a bundle keeps its meaning when it is written again.
func FuzzDecodeBundle(f *testing.F) {
	some := someBundle(f)
	raw, _, err := some.Encode()
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(raw), string(raw[:len(raw)/2]), `{}`, `null`, `[]`, `{"version":"codeact.dev/bundle.v1"}`,
		`{"version":"codeact.dev/bundle.v1","sourceDigest":"` + Digest(nil) + `","tools":[{}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		bounded(t)
		b, err := DecodeBundle(raw, Digest(raw))
		if err != nil {
			if fault, ok := AsFault(err); !ok || fault.Reason != ReasonDigestMismatch || len(fault.Message) > MaxMessageBytes {
				t.Errorf("error %v, want a bounded DigestMismatch", err)
			}
			return
		}
		first, digest, err := b.Encode()
		if err != nil {
			return // too large, or its input is no JSON
		}
		again, err := DecodeBundle(first, digest)
		if err != nil {
			t.Fatalf("written again, it is refused: %v", err)
		}
		if second, _, err := again.Encode(); err != nil || !bytes.Equal(first, second) {
			t.Errorf("written twice, it differs: %s and %s (%v)", first, second, err)
		}
	})
}

// FuzzReport: any text is a termination message or an error; a report of any
// content, its journal included, fits the message and is read back as one.
func FuzzReport(f *testing.F) {
	e := claimedExecution()
	if err := e.Succeed(json.RawMessage(`{"a":1}`)); err != nil {
		f.Fatal(err)
	}
	e.Calls = journalOf(3)
	failed := claimedExecution()
	failed.Calls = journalOf(12)
	failed.Fail(Faultf(ReasonEffectUncertain, "é\x00\u2028<&>"))
	for _, e := range []Execution{e, failed, claimedExecution(), {}} {
		raw, err := json.Marshal(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		bounded(t)
		if e, err := ParseTermination(raw); err == nil {
			_ = e.Verify(expected)
		}
		whole, err := json.Marshal(termination{Version: terminationVersion, Digest: Digest(raw), Execution: raw})
		if err != nil {
			return
		}
		e, err := ParseTermination(whole)
		if err != nil {
			return
		}
		_ = e.Verify(expected)
		out, err := e.TerminationMessage()
		if err != nil {
			if len(raw) < MaxTerminationBytes/8 {
				t.Errorf("a report of %d bytes has no message: %v", len(raw), err)
			}
			return
		}
		if len(out) > MaxTerminationBytes {
			t.Errorf("the message has %d bytes", len(out))
		}
		got, err := ParseTermination(out)
		if err != nil {
			t.Fatalf("the message cannot be read: %v", err)
		}
		if got.Result != e.Result || (got.Error == nil) != (e.Error == nil) {
			t.Errorf("result %q error %v, want %q %v", got.Result, got.Error, e.Result, e.Error)
		}
		for i, c := range Ambiguous(got.Calls) {
			if want := Ambiguous(e.Calls)[i]; c.Seq != want.Seq || c.State != want.State {
				t.Errorf("uncertain call %d is %+v, want %+v", i, c, want)
			}
		}
	})
}

// FuzzCanonical: what is JSON has one text, which is its own canonical text and
// means the same; what is none has none.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[1.50,-0,1e400]}`, `"\u0061\ud800<&>"`, `[[[]]]`, `1 2`, `{`, "\"\xff\"", `{"a":1,"a":2}`, "\"\u2028\x7f\"", `"\ud83d\ude00"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		bounded(t)
		one, err := Canonical(json.RawMessage(raw))
		if err != nil {
			if json.Valid(raw) {
				t.Errorf("no canonical text of JSON: %v", err)
			}
			return
		}
		if !utf8.Valid(one) {
			t.Errorf("the canonical text is not UTF-8: %q", one)
		}
		two, err := Canonical(json.RawMessage(one))
		if err != nil || !bytes.Equal(one, two) {
			t.Errorf("the canonical text of %q is %q (%v)", one, two, err)
		}
		x, err := DecodeJSON(raw)
		if err != nil {
			t.Fatalf("DecodeJSON refuses what Canonical takes: %v", err)
		}
		y, err := DecodeJSON(one)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(x, y); diff != "" {
			t.Errorf("the canonical text means something else (-raw +canonical):\n%s", diff)
		}
	})
}

// FuzzSchema: no schema and no value keeps the process busy or ends it; errors are
// bounded faults.
func FuzzSchema(f *testing.F) {
	for _, s := range []struct{ schema, value string }{
		{`{"type":"object","required":["q"],"properties":{"q":{"type":"string","pattern":"^[a-z]+$"}},"additionalProperties":false}`, `{"q":"a"}`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#"}}}`, `1`},
		{`{"$defs":{"n":{"type":"array","items":{"$ref":"#/$defs/n"}}},"$ref":"#/$defs/n"}`, `[[[[]]]]`},
		{`{"$dynamicRef":"#x","$defs":{"y":{"$dynamicAnchor":"x"}}}`, `{}`},
		{`{"multipleOf":0.1,"minimum":-1e3,"maximum":1E+3}`, `0.30`},
		{`{"enum":[1,"a",null,{"b":[]}],"uniqueItems":true}`, `{"b":[]}`},
		{`{"unevaluatedProperties":false,"oneOf":[{"properties":{"a":true}},{"minProperties":2}]}`, `{"a":1}`},
		{`{"$id":"x:y","$anchor":"a","$ref":"#a"}`, `null`},
		{`{"format":"date-time","contentEncoding":"base64","contentMediaType":"application/json"}`, `"eA=="`},
		{`{"propertyNames":{"maxLength":2},"patternProperties":{"^.":{"const":1}},"dependentSchemas":{"a":false}}`, `{"a":1}`},
	} {
		f.Add(s.schema, s.value)
	}
	f.Fuzz(func(t *testing.T, schema, value string) {
		bounded(t)
		s, err := CompileSchema(json.RawMessage(schema))
		if err != nil {
			if fault, ok := AsFault(err); !ok || fault.Reason != ReasonSchemaInvalid || len(fault.Message) > MaxMessageBytes {
				t.Errorf("error %v, want a bounded SchemaInvalid", err)
			}
			return
		}
		err = s.Validate(json.RawMessage(value))
		if err != nil && len(err.Error()) > MaxMessageBytes+100 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
		if again := s.Validate(json.RawMessage(value)); fmt.Sprint(err) != fmt.Sprint(again) && (err == nil) != (again == nil) {
			t.Errorf("the second time %v, the first %v", again, err)
		}
	})
}

// FuzzJournal: a journal is read or refused; what MayHaveHappened is asked for
// every call of it, of any state and effect.
func FuzzJournal(f *testing.F) {
	raw, err := json.Marshal(journalOf(12))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`[{"tool":"t","state":"Dispatched"},{"state":"None","effect":"None","seq":-1}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		bounded(t)
		var calls []Call
		if json.Unmarshal(raw, &calls) != nil {
			return
		}
		for _, c := range Ambiguous(calls) {
			if c.State != CallDispatched && c.State != CallUncertain || c.Effect == EffectReadOnly {
				t.Errorf("%+v is ambiguous", c)
			}
		}
		first, err := Canonical(calls)
		if err != nil {
			t.Fatal(err)
		}
		var again []Call
		if err := json.Unmarshal(first, &again); err != nil {
			t.Fatal(err)
		}
		if second, err := Canonical(again); err != nil || !bytes.Equal(first, second) {
			t.Errorf("written twice, it differs: %s and %s (%v)", first, second, err)
		}
	})
}
