package agentrun

import (
	"testing"

	"github.com/codeact-dev/codeact-operator/test/builders"
)

func TestReplaced(t *testing.T) {
	var r replaced
	run := builders.MakeRun("r").Obj()
	run.ResourceVersion = "1"
	if r.old(run) {
		t.Error("a version that nothing replaced is old")
	}
	r.by(run)
	for range 2 {
		if !r.old(run) {
			t.Error("the replaced version is not old")
		}
	}
	other := builders.MakeRun("other").Obj()
	other.ResourceVersion = "1"
	if r.old(other) {
		t.Error("another run's version is old")
	}
	run.ResourceVersion = "2"
	if r.old(run) {
		t.Error("a newer version is old")
	}
	if _, kept := r.versions.Load(run.UID); kept {
		t.Error("the entry is kept for ever")
	}
}
