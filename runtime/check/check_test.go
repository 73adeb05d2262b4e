package check_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/check"
	"github.com/codeact-dev/codeact-operator/runtime/fixture"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// TestReachesNothing holds the whole path of a check pod to code that cannot reach a
// tool: no client of HTTP, of MCP, of models or of Kubernetes is linked into it.
func TestReachesNothing(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Fields(string(out))
	if len(found) < 50 {
		t.Fatalf("only %d packages: mend this test", len(found))
	}
	for _, p := range found {
		for _, bad := range []string{"net/http", "crypto/tls", "os/exec", "github.com/modelcontextprotocol", "github.com/openai", "k8s.io",
			"github.com/codeact-dev/codeact-operator/runtime/broker/", "github.com/codeact-dev/codeact-operator/runtime/model",
			"github.com/codeact-dev/codeact-operator/runtime/report"} {
			if strings.HasPrefix(p, bad) {
				t.Errorf("%s is linked into the path of a check pod", p)
			}
		}
	}
}

func checkOf(limits contract.Limits, timeout time.Duration, source string, tests ...contract.Fixture) contract.Check {
	return contract.Check{Recipe: "x", ManifestDigest: contract.Digest(nil), Source: source, Tools: []string{"get"},
		Limits: limits, TimeoutMs: timeout.Milliseconds(), Tests: tests}
}

func named(names ...string) (out []contract.Fixture) {
	for _, n := range names {
		out = append(out, contract.Fixture{Name: n, Input: []byte(`{}`), Expect: contract.FixtureEnd{Output: []byte("1")}})
	}
	return out
}

func TestTests(t *testing.T) {
	e, err := sandbox.New(t.Context(), sandbox.Options{Ceiling: contract.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.WithoutCancel(t.Context())) })
	run := fixture.Runner{Sandbox: e, Now: time.Now}
	short := contract.DefaultLimits()
	short.WallClockMs = 50
	forever := `function main() { for (;;) {} }`
	for name, tc := range map[string]struct {
		check      contract.Check
		wantPassed int
		wantFailed []contract.FailedTest // messages are parts
	}{
		"under the limits of the recipe": {
			check:      checkOf(short, time.Minute, forever, named("a", "b")...),
			wantFailed: []contract.FailedTest{{Index: 0, Reason: contract.ReasonTimeout, Message: "ended otherwise"}, {Index: 1, Reason: contract.ReasonTimeout}},
		},
		"an expected timeout": {
			check: checkOf(short, time.Minute, forever, contract.Fixture{Name: "a", Input: []byte(`{}`), Expect: contract.FixtureEnd{Reason: contract.ReasonTimeout}}), wantPassed: 1,
		},
		"no longer than all may take": {
			check: checkOf(contract.DefaultLimits(), 100*time.Millisecond, forever, named("a", "b", "c")...),
			wantFailed: []contract.FailedTest{{Index: 0, Reason: contract.ReasonTimeout, Message: "did not end within 100ms"},
				{Index: 1, Reason: contract.ReasonTimeout, Message: "did not end within"}, {Index: 2, Reason: contract.ReasonTimeout}},
		},
		"a tool that is not declared": {
			check:      checkOf(contract.DefaultLimits(), time.Minute, `function main() { try { tools.call("put", {}) } catch (e) {} return 1 }`, named("a")...),
			wantFailed: []contract.FailedTest{{Reason: contract.ReasonToolNotAllowed, Message: "want 1; got ToolNotAllowed"}},
		},
		"several differences are counted": {
			check: checkOf(contract.DefaultLimits(), time.Minute, `function main() { return 2 }`, contract.Fixture{Name: "a", Input: []byte(`{}`),
				Calls: []contract.FixtureCall{{Tool: "get"}, {Tool: "get"}}, Expect: contract.FixtureEnd{Output: []byte("1")}}),
			wantFailed: []contract.FailedTest{{Message: "call 1 of get was not made; and 2 more"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := check.Tests(t.Context(), run, tc.check)
			if got.Passed != tc.wantPassed || len(got.Failed) != len(tc.wantFailed) {
				t.Fatalf("got %+v", got)
			}
			for i, f := range got.Failed {
				w := tc.wantFailed[i]
				if f.Index != w.Index || f.Reason != w.Reason || !strings.Contains(f.Message, w.Message) {
					t.Errorf("got %+v, want %+v", f, w)
				}
			}
		})
	}
}

// TestStopped ends the pod while a test runs: half of the tests is no result.
func TestStopped(t *testing.T) {
	raw, digest, err := checkOf(contract.DefaultLimits(), time.Minute, `function main() { for (;;) {} }`, named("a")...).Encode()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	close(stop)
	var log bytes.Buffer
	code := check.Run(t.Context(), check.Config{Path: in, Digest: digest, TerminationPath: out, Log: &log, Now: time.Now, Stop: stop})
	if _, err := os.Stat(out); code != check.ExitNotRun || !os.IsNotExist(err) {
		t.Errorf("exit code %d, report %v, log %s", code, err, log.String())
	}
}
