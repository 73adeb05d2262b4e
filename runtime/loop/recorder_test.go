package loop

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

var recordedBundle = contract.Bundle{Run: contract.RunRef{Namespace: "n", Name: "r", UID: "u", Generation: 2}}

var recordedOrigin = contract.TranscriptOrigin{RunUID: "u", Generation: 2, BundleDigest: contract.Digest([]byte("bundle"))}

// recording is a recorder of events that nobody reads.
func recording() *Events {
	e := NewEvents(&bytes.Buffer{}, clock())
	e.Record(recordedOrigin)
	return e
}

// noise is JSON text of n bytes that cannot be packed well.
func noise(r *rand.ChaCha8, n int) json.RawMessage {
	raw := make([]byte, n/4*3)
	_, _ = r.Read(raw)
	return json.RawMessage(`"` + base64.StdEncoding.EncodeToString(raw) + `"`)
}

func result(v json.RawMessage) contract.Event {
	return contract.Event{Type: contract.EventCall, Tool: "pay", State: "Completed", Content: &contract.EventContent{Result: v}}
}

// kept are the records of a run that has ended, each of which holds.
func kept(t *testing.T, e *Events) ([]contract.Event, contract.TranscriptRef) {
	t.Helper()
	packed, ref := e.Transcript()
	if ref == nil {
		t.Fatal("no transcript")
	}
	if len(packed) > contract.MaxTranscriptBytes {
		t.Errorf("the transcript has %d bytes", len(packed))
	}
	var events []contract.Event
	err := contract.VerifyTranscript(bytes.NewReader(packed), recordedOrigin, *ref, func(_ []byte, x contract.Event) error {
		events = append(events, x)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return events, *ref
}

// TestBoundsOfATranscript fills transcripts until nothing more fits. The end of the
// run is in each of them.
func TestBoundsOfATranscript(t *testing.T) {
	chaos := rand.NewChaCha8([32]byte{1})
	large := json.RawMessage(`"` + strings.Repeat("x", contract.MaxContentBytes-2) + `"`)
	tests := map[string]struct {
		next  func() contract.Event
		times int
		// leastPacked and leastText are what must be used of the room.
		leastPacked, leastText  int
		wantContents, wantOther bool // left out
	}{
		"small contents that do not pack": {func() contract.Event { return result(noise(chaos, 2000)) }, 1000, forContents.packed - 4000, 0, true, false},
		"large contents that do not pack": {func() contract.Event { return result(noise(chaos, 200_000)) }, 12, forContents.packed - 200_000, 0, true, false},
		"contents that pack well":         {func() contract.Event { return result(large) }, 80, 0, forContents.text - 2*contract.MaxContentBytes, true, false},
		"nothing but events": {func() contract.Event {
			return contract.Event{Type: contract.EventCall, Tool: strings.Repeat("t", 2000), State: "Completed"}
		}, 9000, 0, forEvents.text - 4000, false, true},
		"events that do not pack": {func() contract.Event {
			return contract.Event{Type: contract.EventCall, Tool: string(noise(chaos, 4000)), State: "Completed"}
		}, 400, forEvents.packed - 8000, 0, false, true},
		"little": {func() contract.Event { return result(json.RawMessage("1")) }, 3, 0, 0, false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := recording()
			e.started(recordedBundle)
			for range tc.times {
				e.step(recordedBundle, tc.next())
			}
			fault := contract.Faultf(contract.ReasonToolFailed, "%s", noise(chaos, 200_000))
			e.finished(recordedBundle, Outcome{Fault: fault, Evidence: string(noise(chaos, 200_000))})
			events, ref := kept(t, e)
			if n, text := e.recorder.out.Len(), e.recorder.text; n < tc.leastPacked || text < tc.leastText || text > contract.MaxTranscriptText {
				t.Errorf("%d bytes are packed, of %d bytes of text", n, text)
			}
			omitted := e.recorder.omitted
			if (omitted.Contents > 1) != tc.wantContents || (omitted.Records > 0) != tc.wantOther {
				t.Errorf("left out: %+v", omitted)
			}
			wantEnd := []contract.EventType{contract.EventError, contract.EventExecutionFinished}
			if truncated := tc.wantContents || tc.wantOther; truncated != ref.Truncated {
				t.Errorf("truncated: %t", ref.Truncated)
			} else if truncated {
				last := events[len(events)-1]
				wantEnd = append(wantEnd, contract.EventTruncated)
				if diff := cmp.Diff(&omitted, last.Omitted); diff != "" {
					t.Errorf("the last record (-want +got):\n%s", diff)
				}
			}
			var end []contract.EventType
			for _, x := range events[max(0, len(events)-len(wantEnd)):] {
				end = append(end, x.Type)
			}
			if diff := cmp.Diff(wantEnd, end); diff != "" {
				t.Errorf("end (-want +got):\n%s", diff)
			}
		})
	}
}

// TestContentsEndOnce: once contents are left out, no later contents are taken, so
// that there is one gap, and what is left out is named.
func TestContentsEndOnce(t *testing.T) {
	chaos := rand.NewChaCha8([32]byte{2})
	e := recording()
	e.recorder.contents = space{packed: 20_000, text: 1 << 20}
	whole := noise(chaos, 100_000)
	e.step(recordedBundle, result(noise(chaos, 4000)))
	e.step(recordedBundle, result(whole))
	e.step(recordedBundle, result(json.RawMessage("1")))
	e.finished(recordedBundle, Outcome{Value: json.RawMessage("2")})
	events, _ := kept(t, e)
	gone := func(field string, whole json.RawMessage) []contract.Omission {
		return []contract.Omission{{Field: field, Bytes: int64(len(whole)), Digest: contract.Digest(whole)}}
	}
	var got [][]contract.Omission
	for _, x := range events {
		if x.Content != nil {
			got = append(got, x.Content.Omitted)
		}
	}
	want := [][]contract.Omission{nil, gone("result", whole), gone("result", json.RawMessage("1")), gone("output", json.RawMessage("2"))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is left out (-want +got):\n%s", diff)
	}
	if x := events[1]; x.Type != contract.EventTruncated || x.Omitted.Contents != 1 || x.Omitted.Bytes != int64(len(whole)) {
		t.Errorf("the gap begins with %+v", x)
	}
}
