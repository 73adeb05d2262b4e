package sandbox

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

var update = flag.Bool("update", false, "rewrite testdata/reachable.txt; review every line that appears")

// TestReachable holds everything that a program can reach against the keep-list.
// A new name there is a decision, not a detail.
func TestReachable(t *testing.T) {
	src, err := os.ReadFile("testdata/walk.js")
	if err != nil {
		t.Fatal(err)
	}
	limits := contract.DefaultLimits()
	limits.OutputBytes = 1 << 20
	res, err := testEngine(t).Execute(t.Context(), Program{Source: string(src), Limits: limits}, &hostileTools{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := json.Unmarshal(res.Value, &got); err != nil {
		t.Fatal(err)
	}
	got = slices.Compact(got)
	const file = "testdata/reachable.txt"
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what a program can reach has changed (-want +got):\n%s", diff)
	}
}
