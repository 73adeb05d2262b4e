package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestMain is the command itself in the processes that TestCheckProcess starts.
func TestMain(m *testing.M) {
	if os.Getenv("RUNTIME_AS_A_PROCESS") != "" {
		os.Exit(command(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// looking is a check of a program that calls one tool.
func looking(t *testing.T, tests ...contract.Fixture) (file, digest string) {
	t.Helper()
	raw, digest, err := contract.Check{
		Recipe: "look_up", ManifestDigest: contract.Digest(nil), Tools: []string{"get"},
		Source:      `function main(input) { return tools.call("get", { id: input.id }).name.trim(); }`,
		InputSchema: []byte(`{"type":"object","required":["id"]}`), Limits: contract.DefaultLimits(), TimeoutMs: 60_000, Tests: tests,
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), contract.CheckKey)
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, digest
}

func trims(want string) contract.Fixture {
	return contract.Fixture{
		Name: "trims " + want, Input: []byte(`{"id":7}`), Expect: contract.FixtureEnd{Output: []byte(want)},
		Calls: []contract.FixtureCall{{Tool: "get", Args: []byte(`{"id":7}`), Returns: []byte(`{"name":" Lamp "}`)}},
	}
}

// TestCheckProcess runs the subcommand as the pod does, in a network namespace
// without any network where the kernel lets a test have one.
func TestCheckProcess(t *testing.T) {
	refused := contract.Fixture{Name: "refuses", Expect: contract.FixtureEnd{Reason: contract.ReasonInvalidInput}}
	for name, tc := range map[string]struct {
		tests    []contract.Fixture
		digest   string // in place of the right one
		wantCode int
		want     contract.CheckReport
		wantLog  string
	}{
		"all pass": {tests: []contract.Fixture{trims(`"Lamp"`), refused}, want: contract.CheckReport{Passed: 2}},
		"one fails": {tests: []contract.Fixture{refused, trims(`"Desk"`)}, want: contract.CheckReport{Passed: 1, Failed: []contract.FailedTest{
			{Index: 1, Message: `the output differs, first at $; want "Desk"; got "Lamp"`}}}},
		"a call that no test has": {tests: []contract.Fixture{{Name: "none", Input: []byte(`{"id":7}`)}}, want: contract.CheckReport{Failed: []contract.FailedTest{
			{Reason: contract.ReasonBrokerUnavailable, Message: `call 1 of get is one that the test does not have; got get {"id":7}`}}}},
		"another digest": {tests: []contract.Fixture{refused}, digest: contract.Digest([]byte("x")), wantCode: 1, wantLog: "DigestMismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			file, digest := looking(t, tc.tests...)
			expected := digest
			if tc.digest != "" {
				expected = tc.digest
			}
			out := filepath.Join(t.TempDir(), "termination-log")
			code, log := process(t, expected, file, out)
			if code != tc.wantCode || !strings.Contains(log, tc.wantLog) {
				t.Fatalf("exit code %d: %s", code, log)
			}
			if tc.wantCode != 0 {
				if _, err := os.Stat(out); !os.IsNotExist(err) {
					t.Errorf("there is a report: %v", err)
				}
				return
			}
			message, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			got, err := contract.ParseCheckReport(message, digest, len(tc.tests))
			if err != nil {
				t.Fatal(err)
			}
			tc.want.Check = digest
			if d := cmp.Diff(tc.want, *got); d != "" {
				t.Error(d)
			}
		})
	}
}

func process(t *testing.T, digest, in, out string) (int, string) {
	t.Helper()
	run := func(alone bool) (*exec.Cmd, string, error) {
		var log bytes.Buffer
		c := exec.CommandContext(t.Context(), os.Args[0], contract.CheckCommand, in, out)
		// Nothing else of the environment: a pod has no proxy and no service either.
		c.Env = []string{"RUNTIME_AS_A_PROCESS=1", contract.EnvCheckDigest + "=" + digest}
		c.Stdout, c.Stderr = &log, &log
		if alone {
			c.SysProcAttr = withoutNetwork()
		}
		err := c.Run()
		return c, log.String(), err
	}
	c, log, err := run(true)
	if c.ProcessState == nil {
		t.Logf("with the network of this machine: %v", err)
		c, log, err = run(false)
	}
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), log
}
