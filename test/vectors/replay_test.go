package vectors_test

import (
	"bytes"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/runtime/replay"
)

var replayed = contract.TranscriptOrigin{RunUID: "u", Generation: 1, BundleDigest: contract.Digest(nil)}

// recorded is the record of a run that has ended, from its transcript.
func recorded(t *testing.T, e *loop.Events) replay.Record {
	t.Helper()
	packed, ref := e.Transcript()
	var events []contract.Event
	err := contract.VerifyTranscript(bytes.NewReader(packed), replayed, *ref, func(_ []byte, x contract.Event) error {
		events = append(events, x)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := replay.Read(events)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wantReplayed replays a run that has ended. Every program in it holds, but for
// those that a clock or somebody has ended.
func wantReplayed(t *testing.T, box loop.Sandbox, e *loop.Events) {
	t.Helper()
	rec := recorded(t, e)
	got, err := replay.Replayer{Sandbox: box}.Run(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range got.Programs {
		want := replay.Holds
		if p.Reason == contract.ReasonTimeout && rec.Programs[i].Limits.Fuel == 0 || p.Reason == contract.ReasonCancelled || p.Reason == contract.ReasonDeadlineExceeded {
			want = replay.Unverified
		}
		if p.Verdict != want {
			t.Errorf("program %d is %s, want %s: %s %+v", i+1, p.Verdict, want, p.Why, p.Divergence)
		}
	}
}
