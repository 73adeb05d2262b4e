// Command codeact is the tool of recipe authors: it runs programs and manifests
// without a cluster. Of runs in a cluster it answers the calls that wait.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes of every subcommand.
const (
	exitOK     = 0
	exitFailed = 1 // the program or run failed
	exitUsage  = 2 // usage or bad manifest
)

// errFailed ends the command with exitFailed; what failed has been said already.
var errFailed = errors.New("failed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line. Every error but errFailed is one of usage.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	switch err := root.ExecuteContext(ctx); {
	case err == nil:
		return exitOK
	case errors.Is(err, errFailed):
		return exitFailed
	default:
		_, _ = fmt.Fprintf(errs, "codeact: %v\n", err)
		return exitUsage
	}
}

// newRoot lists the subcommands; each has a file of its own.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "codeact",
		Short: "Run CodeAct programs and manifests without a cluster",
		Long: `Run CodeAct programs and manifests without a cluster, and answer the calls of runs
in a cluster that wait for somebody, and print what was said in one.

Exit codes: 0 success, 1 the program or run failed, 2 usage or bad manifest.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help()
			return errors.New("name a subcommand")
		},
	}
	root.AddCommand(newExec(), newRun(), newCatalogue(), newPending(), newApprove(), newDeny(), newTranscript(), newReplay(), newRecipe(), newTool(), newKRM())
	return root
}
