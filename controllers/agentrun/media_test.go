package agentrun_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

// TestMediaOfTheResult: the run's status names the media of its verified report,
// however the run ended and whichever way the report came.
func TestMediaOfTheResult(t *testing.T) {
	ref := &contract.MediaRef{ConfigMap: "x-media", Digest: contract.Digest([]byte("m")), Geometry: contract.Geometry{Width: 2, Height: 1}, Seq: 3}
	showing := func(e *contract.Execution) { e.Media = ref }
	tests := map[string]struct {
		make func(*flight)
		want *contract.MediaRef
	}{
		"success":                    {func(f *flight) { f.claim(both(succeed, showing)) }, ref},
		"failure":                    {func(f *flight) { f.claim(both(fail(contract.ReasonJavaScriptError, "x"), showing)) }, ref},
		"none":                       {func(f *flight) { f.claim(succeed) }, nil},
		"by the termination message": {func(f *flight) { f.claim(nil).says("Completed", 0, both(succeed, showing)) }, ref},
		"a report that is not about it": {func(f *flight) {
			f.claim(func(e *contract.Execution) { succeed(e); showing(e); e.BundleDigest = "sha256:other" }).gone()
		}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := launched(t)
			tc.make(f)
			op := settings.Default()
			s := f.snapshot(now)
			st := agentrun.Settle(op, s, agentrun.Decide(op, s), agentrun.Done{})
			if st.CompletionTime == nil {
				t.Fatal("the run did not end")
			}
			if diff := cmp.Diff(tc.want, st.Media); diff != "" {
				t.Errorf("media (-want +got):\n%s", diff)
			}
		})
	}
}
