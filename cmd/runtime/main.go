// Command runtime is what runs in a runtime pod.
//
//	runtime [run]             execute the bundle that is mounted into the pod
//	runtime check [IN OUT]    run the tests of the recipe that is mounted into the pod,
//	                          or in file IN, and write what came of them for the kubelet,
//	                          or into file OUT
//	runtime precompile DIR    write the sandbox's compilation cache into DIR
//	runtime verify-cache DIR  fail if the sandbox would not start from DIR
//
// Exit codes of run: 0 the execution succeeded, 1 it failed, 2 it was not
// claimed and nothing was executed. Of check: 0 the tests have run, whatever came of
// them, 1 there is no report. The other two: 0, or 1 on failure. Wrong usage is 2.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
	"github.com/codeact-dev/codeact-operator/runtime/check"
	"github.com/codeact-dev/codeact-operator/runtime/report"
	"github.com/codeact-dev/codeact-operator/runtime/run"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

func main() { os.Exit(command(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

func command(ctx context.Context, args []string, out, errs io.Writer) int {
	switch {
	case len(args) == 0, len(args) == 1 && args[0] == "run":
		return pod(ctx, out, errs)
	case len(args) == 1 && args[0] == contract.CheckCommand:
		return tests(ctx, contract.CheckPath(), contract.TerminationPath, errs)
	case len(args) == 3 && args[0] == contract.CheckCommand:
		return tests(ctx, args[1], args[2], errs)
	case len(args) == 2 && args[0] == "precompile":
		return said(errs, sandbox.Precompile(ctx, args[1]))
	case len(args) == 2 && args[0] == "verify-cache":
		return said(errs, sandbox.VerifyCache(ctx, args[1]))
	}
	_, _ = fmt.Fprintln(errs, "usage: runtime [run | check [IN OUT] | precompile DIR | verify-cache DIR]")
	return 2
}

func said(errs io.Writer, err error) int {
	if err != nil {
		_, _ = fmt.Fprintf(errs, "codeact-runtime: %v\n", err)
		return 1
	}
	return 0
}

func pod(ctx context.Context, out, errs io.Writer) int {
	return run.Run(ctx, run.Config{
		BundlePath: contract.BundlePath(), BundleDigest: os.Getenv(contract.EnvBundleDigest),
		Pod:             report.Pod{Name: os.Getenv(contract.EnvPodName), UID: os.Getenv(contract.EnvPodUID)},
		TerminationPath: contract.TerminationPath,
		CacheDir:        contract.CacheDir,
		API:             report.InCluster,
		Credentials:     egress.Files{Path: contract.CredentialPath},
		Events:          out, Log: errs,
		Trace: os.Getenv(contract.EnvTraceEndpoint) != "",
		Now:   time.Now,
		Stop:  stopped(),
	})
}

func tests(ctx context.Context, in, out string, errs io.Writer) int {
	return check.Run(ctx, check.Config{
		Path: in, Digest: os.Getenv(contract.EnvCheckDigest),
		TerminationPath: out, CacheDir: contract.CacheDir,
		Log: errs, Now: time.Now, Stop: stopped(),
	})
}

// stopped is closed at the first SIGTERM or SIGINT; later ones change nothing.
func stopped() <-chan struct{} {
	signals, stop := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		close(stop)
	}()
	return stop
}
