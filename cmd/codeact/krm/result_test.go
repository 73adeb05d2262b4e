package krm

import "testing"

func TestResultText(t *testing.T) {
	r := failure("openat \x1b[2Jx\n\u202e: no such file")
	r.Field = &Field{Path: "spec.dirs[0]"}
	const want = `spec.dirs[0]: openat \u001b[2Jx\u000a\u202e: no such file`
	if got := r.text(); got != want {
		t.Errorf("text %q, want %q", got, want)
	}
}
