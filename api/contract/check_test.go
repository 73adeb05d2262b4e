package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckRoundTrip(t *testing.T) {
	c := Check{
		Version: CheckVersion, Recipe: "look_up", ManifestDigest: Digest([]byte("m")), Source: "function main() {}", Tools: []string{"a"},
		InputSchema: []byte(`{"type":"object"}`), Limits: DefaultLimits(), TimeoutMs: 1000,
		Tests: []Fixture{{Name: "x", Input: []byte(`{"n":9007199254740993}`), Expect: FixtureEnd{Output: []byte(`null`)}}},
	}
	raw, digest, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeCheck(raw, digest)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(c, got); d != "" {
		t.Error(d)
	}
	bad := func(what string, raw []byte, want string) {
		t.Helper()
		if _, err := DecodeCheck(raw, want); !faultIs(err, ReasonDigestMismatch) {
			t.Errorf("%s: %v", what, err)
		}
	}
	bad("no digest", raw, "")
	bad("other bytes", append(raw, ' '), digest)
	for what, text := range map[string]string{
		"another version": `{"version":"check.v2"}`, "an unknown field": `{"version":"check.v1","backend":{"url":"http://x"}}`, "no JSON": `{`,
	} {
		bad(what, []byte(text), Digest([]byte(text)))
	}
	c.Source = strings.Repeat("x", MaxBundleBytes)
	if _, _, err := c.Encode(); !faultIs(err, ReasonBundleTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func faultIs(err error, r Reason) bool {
	f, ok := AsFault(err)
	return ok && f.Reason == r
}

func TestCheckReport(t *testing.T) {
	digest := Digest([]byte("c"))
	many := CheckReport{Check: digest}
	for i := range MaxFixtures {
		many.Failed = append(many.Failed, FailedTest{Index: i, Reason: ReasonEvidenceBudgetTooSmall, Message: strings.Repeat("\"<é>\n", 300)})
	}
	for name, tc := range map[string]struct {
		report CheckReport
		tests  int
	}{
		"all passed":        {CheckReport{Check: digest, Passed: 3}, 3},
		"one failed":        {CheckReport{Check: digest, Passed: 2, Failed: []FailedTest{{Index: 1, Reason: ReasonTimeout, Message: "slow"}}}, 3},
		"as many as can be": {many, MaxFixtures},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := tc.report.TerminationMessage()
			if err != nil || len(m) > MaxTerminationBytes {
				t.Fatalf("%d bytes: %v", len(m), err)
			}
			got, err := ParseCheckReport(m, digest, tc.tests)
			if err != nil {
				t.Fatal(err)
			}
			if got.Passed != tc.report.Passed || len(got.Failed) != len(tc.report.Failed) {
				t.Errorf("got %d passed and %d failed", got.Passed, len(got.Failed))
			}
			for i, f := range got.Failed {
				if f.Index != tc.report.Failed[i].Index || f.Reason != tc.report.Failed[i].Reason || tc.tests < 10 && f.Message != tc.report.Failed[i].Message {
					t.Errorf("failed test %d is %+v", i, f)
				}
			}
			for n := range len(m) {
				if _, err := ParseCheckReport(m[:n], digest, tc.tests); err == nil {
					t.Fatalf("the first %d bytes are a report", n)
				}
			}
		})
	}
}

func TestCheckReportRefused(t *testing.T) {
	digest := Digest([]byte("c"))
	for name, r := range map[string]CheckReport{
		"of another check":       {Check: Digest([]byte("d")), Passed: 3},
		"of fewer tests":         {Check: digest, Passed: 2},
		"of more tests":          {Check: digest, Passed: 3, Failed: []FailedTest{{Index: 0}}},
		"of a test that is none": {Check: digest, Passed: 2, Failed: []FailedTest{{Index: 3}}},
		"of a test below all":    {Check: digest, Passed: 2, Failed: []FailedTest{{Index: -1}}},
		"of a test twice":        {Check: digest, Passed: 1, Failed: []FailedTest{{Index: 1}, {Index: 1}}},
		"with a negative count":  {Check: digest, Passed: -1, Failed: []FailedTest{{Index: 0}, {Index: 1}, {Index: 2}, {Index: 3}}},
		"with another reason":    {Check: digest, Passed: 2, Failed: []FailedTest{{Index: 1, Reason: "Perhaps"}}},
	} {
		m, err := r.TerminationMessage()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseCheckReport(m, digest, 3); err == nil {
			t.Errorf("a report %s passes: %+v", name, got)
		}
	}
	for _, text := range []string{"", "{}", "null", "Error: out of memory", fmt.Sprintf(`{"codeact":"report.v1","digest":%q,"report":{}}`, Digest([]byte("{}")))} {
		if _, err := ParseCheckReport([]byte(text), digest, 0); err == nil {
			t.Errorf("%q is a report", text)
		}
	}
}
