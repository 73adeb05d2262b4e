package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/replay"
	"github.com/codeact-dev/codeact-operator/sandbox"
)

type replayFlags struct {
	recorded
	with   string
	step   int64
	output string
	limits []string
}

func newReplay() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay RUN|FILE [-f FILE] [--with DIR [--step N]] [-n NAMESPACE] [-o text|json]",
		Short: "Execute the programs of a run again, against the results in its transcript",
		Long: `Execute the programs of a run again, against the results in its transcript.

No tool is called: each program runs in the real sandbox, with its recorded input
and limits, and every call is answered with what it was answered then. A program
that makes the same calls and comes to the same end holds; of one that does not it
is said where it diverges. Failures must come again with their reason, message and
place; what a clock or somebody ended cannot, which is said. Of a call that was
refused, the tool is compared: its arguments are not in the transcript.

RUN is a run in a cluster, whose transcript is held against the run's status. FILE
is a transcript, packed or not, the log of a pod (- reads the standard input), or
what codeact transcript -o jsonl has printed; it is checked in itself, and against
--last-hash. With RUN and -f FILE, FILE is held against the status of RUN. A
transcript whose chain of hashes is broken is not replayed.

--with DIR executes the recipe in DIR instead, with the same inputs and the same
results, and shows what differs: of a run of that recipe, of every call of it by an
agent, or, with --step, of the programs of that step. A call that the record does
not have ends the comparison, for nobody knows what it would return.

Exit codes: 0 it holds, or nothing differs; 1 it diverges, or something differs;
2 usage, or it cannot be verified.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.recorded.bind(c)
	c.Flags().StringVar(&f.with, "with", "", "the folder of a recipe, or of several, to execute instead")
	c.Flags().Int64Var(&f.step, "step", 0, "with --with: the step of an agent whose programs are replaced")
	c.Flags().StringArrayVar(&f.limits, "limit", nil, "with --with: one limit of the operator as name=value; may be repeated")
	c.Flags().StringVarP(&f.output, "output", "o", "text", "text or json")
	return c
}

func (f *replayFlags) run(cmd *cobra.Command, name string) error {
	switch {
	case f.output != "text" && f.output != "json":
		return fmt.Errorf("-o %s: want text or json", f.output)
	case f.with == "" && (f.step != 0 || len(f.limits) > 0):
		return errors.New("--step and --limit are for --with")
	}
	t, rec, err := f.read(cmd, name)
	if err != nil {
		return err
	}
	if f.with != "" {
		return f.compare(cmd, t, rec)
	}
	var rep replay.Report
	err = inSandbox(cmd.Context(), rec.Ceiling(), func(r replay.Replayer) error {
		rep, err = r.Run(cmd.Context(), rec)
		return err
	})
	if err != nil {
		return err
	}
	if f.output == "json" {
		err = writeReplay(cmd.OutOrStdout(), rep)
	} else {
		err = writeReplayText(cmd.OutOrStdout(), t, rep)
	}
	switch {
	case err != nil:
		return err
	case rep.Verdict == replay.Diverges:
		return errFailed
	case rep.Verdict != replay.Holds:
		return errors.New("the replay cannot be verified as a whole")
	}
	return nil
}

// writeReplay writes a value for programs.
func writeReplay(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// inSandbox makes the sandbox and closes it behind f.
func inSandbox(ctx context.Context, ceiling contract.Limits, f func(replay.Replayer) error) error {
	e, err := sandbox.New(ctx, sandbox.Options{CacheDir: cacheDir(), Ceiling: ceiling})
	if err != nil {
		return err
	}
	defer func() { _ = e.Close(context.WithoutCancel(ctx)) }()
	return f(replay.Replayer{Sandbox: e})
}

// recorded is how a subcommand is given the record of a run.
type recorded struct {
	cluster
	file, lastHash string
}

func (f *recorded) bind(c *cobra.Command) {
	c.Flags().StringVarP(&f.file, "filename", "f", "", "the transcript of RUN, or the log of its pod; - for the standard input")
	c.Flags().StringVar(&f.lastHash, "last-hash", "", "the hash of the last record of FILE, as the run's status had it")
	f.cluster.bind(c)
}

// read reads the record of a run, by its name or from a file. Nothing of a
// transcript that does not hold is taken.
func (f *recorded) read(cmd *cobra.Command, name string) (*transcript, replay.Record, error) {
	t := &transcript{}
	file := f.file
	inFile := file == "" && isFile(name)
	if inFile {
		file = name
	}
	switch {
	case f.lastHash != "" && !inFile:
		return t, replay.Record{}, errors.New("--last-hash is for a file without a run: the run's status has the hash")
	case f.lastHash != "" && !contract.ValidDigest(f.lastHash):
		return t, replay.Record{}, errors.New("--last-hash: want sha256: and 64 hex digits")
	}
	if file != "" {
		var err error
		if t.raw, err = readLines(file, cmd.InOrStdin()); err != nil {
			return t, replay.Record{}, err
		}
	}
	if !inFile {
		api, ns, err := f.connect()
		if err != nil {
			return t, replay.Record{}, err
		}
		if err := t.find(cmd.Context(), api, types.NamespacedName{Namespace: ns, Name: name}); err != nil {
			return t, replay.Record{}, errors.New(plain(err.Error()))
		}
	}
	if err := t.check(f.lastHash); err != nil {
		if len(t.raw) == 0 && file != "" {
			return t, replay.Record{}, fmt.Errorf("%s holds no record of a transcript: it is of something else, or of a run with transcript: None", file)
		}
		return t, replay.Record{}, errors.New(plain(err.Error()))
	}
	rec, err := replay.Read(t.events)
	return t, rec, err
}

// isFile reports whether a name is that of a file, and not of a run: the standard
// input, a path, or a file that is there.
func isFile(name string) bool {
	if name == "-" || strings.ContainsRune(name, os.PathSeparator) {
		return true
	}
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
