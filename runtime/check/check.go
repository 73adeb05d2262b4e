// Package check is the life of a check pod: load the check, run its tests in the
// sandbox, say what came of them. It talks to nobody: neither to the Kubernetes API
// nor to a tool.
package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/fixture"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

// Exit codes. Nobody takes them for a result: only a whole report is one.
const (
	// ExitReported: the tests have run, and the report says what came of them.
	ExitReported = 0
	// ExitNotRun: there is no report.
	ExitNotRun = 1
)

// Config is what a check pod knows when it starts.
type Config struct {
	// Path is the file of the check, whose digest must be Digest.
	Path, Digest string
	// TerminationPath is where the report is written.
	TerminationPath string
	// CacheDir holds the sandbox's compilation cache.
	CacheDir string
	// Log gets one line for what a person must know.
	Log io.Writer
	// Now tells the time.
	Now func() time.Time
	// Stop is closed when the pod is told to end: what is not finished then is no
	// result.
	Stop <-chan struct{}
}

// Run lives through one pod and returns its exit code.
func Run(ctx context.Context, c Config) int {
	if err := c.run(ctx); err != nil {
		_, _ = fmt.Fprintf(c.Log, "codeact-runtime: check: %v\n", err)
		return ExitNotRun
	}
	return ExitReported
}

func (c Config) run(ctx context.Context) error {
	check, err := c.load()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-c.Stop:
			cancel(errors.New("the pod was told to end"))
		case <-ctx.Done():
		}
	}()
	e, err := sandbox.New(ctx, sandbox.Options{CacheDir: c.CacheDir, Ceiling: check.Limits})
	if err != nil {
		return err
	}
	defer func() { _ = e.Close(context.WithoutCancel(ctx)) }()
	report := Tests(ctx, fixture.Runner{Sandbox: e, Now: c.Now}, check)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	report.Check = c.Digest
	message, err := report.TerminationMessage()
	if err != nil {
		return err
	}
	return os.WriteFile(c.TerminationPath, message, 0o600)
}

// load reads the check and believes nothing of it before its digest holds.
func (c Config) load() (contract.Check, error) {
	f, err := os.Open(c.Path)
	if err != nil {
		return contract.Check{}, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, contract.MaxBundleBytes+1))
	if err != nil {
		return contract.Check{}, err
	}
	return contract.DecodeCheck(raw, c.Digest)
}

// Tests runs the tests of a check one after another, under its timeout. A test that
// does not end in time, and each one behind it, has failed.
func Tests(ctx context.Context, run fixture.Runner, c contract.Check) contract.CheckReport {
	timeout := time.Duration(c.TimeoutMs) * time.Millisecond
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	x := fixture.Recipe{Name: c.Recipe, Source: c.Source, InputSchema: c.InputSchema, OutputSchema: c.OutputSchema, Limits: c.Limits}
	for _, name := range c.Tools {
		x.Tools = append(x.Tools, contract.Tool{Name: name})
	}
	var report contract.CheckReport
	for i, f := range c.Tests {
		var res fixture.Result
		if within.Err() == nil {
			res = run.Run(within, x, f)
		}
		switch {
		case within.Err() != nil:
			report.Failed = append(report.Failed, contract.FailedTest{Index: i, Reason: contract.ReasonTimeout,
				Message: fmt.Sprintf("the tests of the recipe did not end within %s", timeout)})
		case res.Passed:
			report.Passed++
		default:
			report.Failed = append(report.Failed, contract.FailedTest{Index: i, Reason: res.Reason, Message: describe(res)})
		}
	}
	return report
}

// describe words what was not as a test expects: the first difference, and how many
// more there are.
func describe(res fixture.Result) string {
	const side = contract.MaxFailedTestBytes / 3
	d := res.Diffs[0]
	var b strings.Builder
	b.WriteString(d.Title())
	if d.Want != "" {
		fmt.Fprintf(&b, "; want %s", contract.Truncate(d.Want, side))
	}
	if d.Got != "" {
		fmt.Fprintf(&b, "; got %s", contract.Truncate(d.Got, side))
	}
	if more := len(res.Diffs) - 1; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return contract.Truncate(b.String(), contract.MaxFailedTestBytes)
}
