package vectors_test

import (
	"bytes"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
	"github.com/codeact-dev/codeact-operator/test/replaytest"
)

// recorded is the execution that every case is recorded as.
var recorded = contract.TranscriptOrigin{RunUID: "u", Generation: 1}

// wantReplayed holds a run that has ended to its replay.
func wantReplayed(t *testing.T, box loop.Sandbox, e *loop.Events) {
	t.Helper()
	packed, _ := e.Transcript()
	replaytest.Check(t, box, replaytest.Read(t, bytes.NewReader(packed)))
}
