package contract

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var someOrigin = TranscriptOrigin{RunUID: "u", Generation: 2, BundleDigest: Digest([]byte("bundle"))}

// someTranscript is a transcript of five records, one a line, and where it ends.
func someTranscript(t testing.TB) ([][]byte, TranscriptRef) {
	t.Helper()
	c := NewChain(someOrigin)
	var lines [][]byte
	for _, e := range []Event{
		{Type: EventExecutionStarted, BundleDigest: someOrigin.BundleDigest, Content: &EventContent{Source: "function main(){}\n", Input: json.RawMessage(`{"a": 1}`)}},
		{Type: EventCall, Seq: 1, Tool: "pay", State: "Dispatched", Content: &EventContent{Arguments: json.RawMessage(`{"n":9007199254740993}`)}},
		{Type: EventCall, Seq: 1, Tool: "pay", State: "Completed", Content: &EventContent{Result: json.RawMessage(`"<ü\u2028>"`)}},
		{Type: EventTruncated, Omitted: &Omitted{Contents: 1, Bytes: 7}},
		{Type: EventExecutionFinished, State: "Succeeded"},
	} {
		e.Time, e.Run, e.RunUID, e.Generation = "2026-01-02T03:04:05Z", "n/r", someOrigin.RunUID, someOrigin.Generation
		r, err := c.Next(e)
		if err != nil {
			t.Fatal(err)
		}
		c.Add(r)
		lines = append(lines, r.Line)
	}
	ref := c.Ref()
	ref.Truncated = true
	return lines, ref
}

func text(lines [][]byte) []byte { return bytes.Join(lines, nil) }

func packed(text []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(text)
	_ = z.Close()
	return b.Bytes()
}

func TestTranscript(t *testing.T) {
	lines, want := someTranscript(t)
	// Members may follow one another.
	members := append(packed(text(lines[:2])), packed(text(lines[2:]))...)
	for name, raw := range map[string][]byte{"plain": text(lines), "packed": packed(text(lines)), "in members": members} {
		t.Run(name, func(t *testing.T) {
			var got [][]byte
			ref, err := ReadTranscript(bytes.NewReader(raw), nil, func(line []byte, e Event) error {
				if e.N != int64(len(got)+1) {
					t.Errorf("record %d has the number %d", len(got)+1, e.N)
				}
				got = append(got, append(bytes.Clone(line), '\n'))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, ref); diff != "" {
				t.Errorf("end (-want +got):\n%s", diff)
			}
			if !bytes.Equal(text(got), text(lines)) {
				t.Error("the lines are not those that were written")
			}
			if err := VerifyTranscript(bytes.NewReader(raw), someOrigin, want, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBrokenTranscript: whatever is done to a transcript, the first record that
// does not hold is named.
func TestBrokenTranscript(t *testing.T) {
	lines, end := someTranscript(t)
	forged := func() [][]byte {
		c, out := NewChain(someOrigin), [][]byte(nil)
		for i, line := range lines {
			var e Event
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatal(err)
			}
			if i == 2 {
				e.Content.Result = json.RawMessage("0")
			}
			r, err := c.Next(e)
			if err != nil {
				t.Fatal(err)
			}
			c.Add(r)
			out = append(out, r.Line)
		}
		return out
	}
	of := func(change func(*TranscriptOrigin)) *TranscriptOrigin { o := someOrigin; change(&o); return &o }
	tests := map[string]struct {
		lines  [][]byte
		origin *TranscriptOrigin
		record int64
		why    string
	}{
		"edited":                {lines: append([][]byte{lines[0], bytes.Replace(lines[1], []byte("pay"), []byte("buy"), 1)}, lines[2:]...), record: 2, why: "not what was written"},
		"spelled anew":          {lines: append([][]byte{bytes.Replace(lines[0], []byte(`"n":1`), []byte(`"n": 1`), 1)}, lines[1:]...), record: 1, why: "not what was written"},
		"removed":               {lines: slices.Concat(lines[:2], lines[3:]), record: 3, why: "record 4 is in its place"},
		"the first removed":     {lines: lines[1:], record: 1, why: "record 2 is in its place"},
		"twice":                 {lines: slices.Concat(lines[:2], lines[1:]), record: 3, why: "record 2 is in its place"},
		"in another order":      {lines: [][]byte{lines[0], lines[2], lines[1], lines[3], lines[4]}, record: 2, why: "record 3 is in its place"},
		"inserted, not sealed":  {lines: slices.Concat(lines[:2], [][]byte{[]byte(`{"type":"call.progress","run":"` + strings.Repeat("x", 100) + `"}` + "\n")}, lines[2:]), record: 3, why: "not sealed"},
		"inserted, blank":       {lines: slices.Concat(lines[:2], [][]byte{[]byte("\n")}, lines[2:]), record: 3, why: "no record"},
		"cut at the end":        {lines: lines[:3], record: 4, why: "had 5 records"},
		"cut in a line":         {lines: append(slices.Clone(lines[:4]), lines[4][:50]), record: 5, why: "cut off"},
		"without the line feed": {lines: append(slices.Clone(lines[:4]), lines[4][:len(lines[4])-1]), record: 5, why: "cut off"},
		"empty":                 {record: 1, why: "there is none"},
		"forged as a whole":     {lines: forged(), record: 5, why: "not the one that the pod reported"},
		"of another run":        {lines: lines, origin: of(func(o *TranscriptOrigin) { o.RunUID = "v" }), record: 1, why: "not what was written"},
		"of another generation": {lines: lines, origin: of(func(o *TranscriptOrigin) { o.Generation = 3 }), record: 1, why: "not what was written"},
		"of another bundle":     {lines: lines, origin: of(func(o *TranscriptOrigin) { o.BundleDigest = Digest(nil) }), record: 1, why: "not what was written"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.origin == nil {
				tc.origin = &someOrigin
			}
			err := VerifyTranscript(bytes.NewReader(text(tc.lines)), *tc.origin, end, nil)
			var broken *BrokenTranscript
			if !errors.As(err, &broken) || broken.Record != tc.record || !strings.Contains(broken.Why, tc.why) {
				t.Errorf("error %v, want record %d and %q", err, tc.record, tc.why)
			}
		})
	}
}

// TestEveryByteCounts changes each byte of a transcript, one after another.
func TestEveryByteCounts(t *testing.T) {
	lines, end := someTranscript(t)
	raw, at := text(lines), 0
	for record, line := range lines {
		for range line {
			for _, flip := range []byte{1, 0x20} {
				other := bytes.Clone(raw)
				other[at] ^= flip
				err := VerifyTranscript(bytes.NewReader(other), someOrigin, end, nil)
				var broken *BrokenTranscript
				if !errors.As(err, &broken) || broken.Record != int64(record+1) {
					t.Fatalf("byte %d of record %d is %q: %v", at, record+1, other[at], err)
				}
			}
			at++
		}
	}
}

func TestTranscriptBomb(t *testing.T) {
	bomb := packed(bytes.Repeat([]byte(" "), MaxTranscriptText+1))
	var broken *BrokenTranscript
	if _, err := ReadTranscript(bytes.NewReader(bomb), nil, nil); !errors.As(err, &broken) || !strings.Contains(broken.Why, "more than") {
		t.Errorf("error %v", err)
	}
}

func TestVisitEndsTheReading(t *testing.T) {
	lines, _ := someTranscript(t)
	if _, err := ReadTranscript(bytes.NewReader(text(lines)), nil, func([]byte, Event) error { return io.ErrShortWrite }); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("error %v", err)
	}
}

// FuzzTranscript: any text is a transcript or breaks somewhere, and one that holds
// against the reference is the one that was written.
func FuzzTranscript(f *testing.F) {
	lines, end := someTranscript(f)
	for _, s := range [][]byte{text(lines), packed(text(lines)), text(lines[:2]), text(lines[1:]), []byte("{}\n"), nil} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var got [][]byte
		err := VerifyTranscript(bytes.NewReader(raw), someOrigin, end, func(line []byte, _ Event) error {
			got = append(got, append(bytes.Clone(line), '\n'))
			return nil
		})
		var broken *BrokenTranscript
		if err != nil && !errors.As(err, &broken) {
			t.Errorf("error %v", err)
		}
		if err == nil && !bytes.Equal(text(got), text(lines)) {
			t.Errorf("another text holds: %q", text(got))
		}
		_, _ = ReadTranscript(bytes.NewReader(raw), nil, nil)
	})
}

func TestContents(t *testing.T) {
	large := json.RawMessage(`"` + strings.Repeat("x", MaxContentBytes) + `"`)
	long := strings.Repeat("ü", MaxContentBytes/2) + "!"
	longest := strings.Repeat("n", maxPlainName)
	gone := func(field string, whole string, kept int64) Omission {
		return Omission{Field: field, Bytes: int64(len(whole)), Digest: Digest([]byte(whole)), Kept: kept}
	}
	tests := map[string]struct {
		content, bounded, bare *EventContent
	}{
		"none": {},
		"small": {
			&EventContent{Text: "t", Result: json.RawMessage("1"), FinishReason: "stop"},
			&EventContent{Text: "t", Result: json.RawMessage("1"), FinishReason: "stop"},
			&EventContent{FinishReason: "stop", Omitted: []Omission{gone("text", "t", 0), gone("result", "1", 0)}},
		},
		"a large value is left out": {
			&EventContent{Result: large}, &EventContent{Omitted: []Omission{gone("result", string(large), 0)}},
			&EventContent{Omitted: []Omission{gone("result", string(large), 0)}},
		},
		"a long text is cut": {
			&EventContent{Text: long},
			&EventContent{Text: strings.TrimSuffix(long, "!"), Omitted: []Omission{gone("text", long, MaxContentBytes)}},
			&EventContent{Omitted: []Omission{gone("text", long, 0)}},
		},
		"no JSON": {
			&EventContent{Result: json.RawMessage("{"), Output: json.RawMessage("\"\xff\"")},
			&EventContent{Omitted: []Omission{gone("result", "{", 0), gone("output", "\"\xff\"", 0)}},
			&EventContent{Omitted: []Omission{gone("result", "{", 0), gone("output", "\"\xff\"", 0)}},
		},
		"messages and calls": {
			&EventContent{Messages: []EventMessage{{Role: "user", Text: "a"}, {Role: "user", Text: "b"}}, ToolCalls: []ModelToolCall{{Name: "x", Arguments: "{}"}}},
			&EventContent{Messages: []EventMessage{{Role: "user", Text: "a"}, {Role: "user", Text: "b"}}, ToolCalls: []ModelToolCall{{Name: "x", Arguments: "{}"}}},
			&EventContent{
				Messages: []EventMessage{{Role: "user"}, {Role: "user"}}, ToolCalls: []ModelToolCall{{Name: "x"}},
				Omitted: []Omission{gone("messages[0].text", "a", 0), gone("messages[1].text", "b", 0), gone("toolCalls[0].arguments", "{}", 0)},
			},
		},
		"a name that is a text": {
			&EventContent{ToolCalls: []ModelToolCall{{ID: "i", Name: long}, {ID: longest, Name: longest}, {ID: longest + "x"}}},
			&EventContent{
				ToolCalls: []ModelToolCall{{ID: "i", Name: strings.TrimSuffix(long, "!")}, {ID: longest, Name: longest}, {ID: longest + "x"}},
				Omitted:   []Omission{gone("toolCalls[0].name", long, MaxContentBytes)},
			},
			&EventContent{
				ToolCalls: []ModelToolCall{{ID: "i"}, {ID: longest, Name: longest}, {}},
				Omitted:   []Omission{gone("toolCalls[0].name", long, 0), gone("toolCalls[2].id", longest+"x", 0)},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bounded := tc.content.Bounded()
			if diff := cmp.Diff(tc.bounded, bounded); diff != "" {
				t.Errorf("bounded (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.bare, bounded.Bare()); diff != "" {
				t.Errorf("bare (-want +got):\n%s", diff)
			}
		})
	}
	many := &EventContent{}
	for i := range 10 {
		many.Messages = append(many.Messages, EventMessage{Text: strings.Repeat(fmt.Sprint(i), MaxContentBytes)})
	}
	if n := many.Bounded().OmittedBytes(); n != 6*MaxContentBytes {
		t.Errorf("%d bytes of many messages are left out", n)
	}
}
