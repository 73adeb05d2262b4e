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

func TestIsQuota(t *testing.T) {
	for msg, want := range map[string]bool{
		`pods "r" is forbidden: exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5`:               true,
		`pods "r" is forbidden: failed quota: q: must specify limits.cpu for: runtime`:                             true,
		`pods "r" is forbidden: status unknown for quota: q, resources: pods`:                                      true,
		`pods "r" is forbidden: maximum memory usage per Container is 16Mi, but limit is 97Mi`:                     true,
		`pods "r" is forbidden: cpu max limit to request ratio per Container is 1, but provided ratio is 2.000000`: true,
		`pods "r" is forbidden: violates PodSecurity "restricted:latest"`:                                          false,
		`pods "r" is forbidden: no PriorityClass with name none-such was found`:                                    false,
	} {
		if got := isQuota(msg); got != want {
			t.Errorf("%s: %v", msg, got)
		}
	}
}
