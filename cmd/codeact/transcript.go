package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

type transcriptFlags struct {
	cluster
	file, output string
}

func newTranscript() *cobra.Command {
	var f transcriptFlags
	c := &cobra.Command{
		Use:   "transcript RUN [-n NAMESPACE] | -f FILE [-o text|jsonl]",
		Short: "Verify and print what was said and done in a run",
		Long: `Verify and print what was said and done in a run: messages, programs, calls with
their arguments and results, and the output.

Of a run in a cluster, every record is held to the hash that the run's status has,
so that one that was changed, removed, added or moved is noticed. A file, packed or
not, or the log of a pod, is held to itself alone: that shows that no record in it
was changed without the later ones, and not that it is whole or the run's.

The exit code is 1 when a record does not hold; its number is said.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (f.file != "") {
				return errors.New("transcript: name either a run or, with -f, a file")
			}
			if f.output != "text" && f.output != "jsonl" {
				return errors.New("transcript: -o is text or jsonl")
			}
			return f.run(cmd, args)
		},
	}
	c.Flags().StringVarP(&f.file, "filename", "f", "", "file with a transcript, or with the log of a pod; - reads the standard input")
	c.Flags().StringVarP(&f.output, "output", "o", "text", "text, or jsonl: the records as they are")
	f.bind(c)
	return c
}

func (f *transcriptFlags) run(cmd *cobra.Command, args []string) error {
	out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
	visit := func(line []byte, e contract.Event) error {
		if f.output == "jsonl" {
			_, err := out.Write(append(line, '\n'))
			return err
		}
		_, err := io.WriteString(out, plain(recorded(e)))
		return err
	}
	said, err := f.read(cmd, args, visit)
	if err != nil {
		_, _ = fmt.Fprintf(errs, "codeact: %s\n", plain(err.Error()))
		return errFailed
	}
	_, _ = fmt.Fprintln(errs, plain(said))
	return nil
}

// read verifies the transcript and returns in words what that showed.
func (f *transcriptFlags) read(cmd *cobra.Command, args []string, visit func([]byte, contract.Event) error) (string, error) {
	if f.file != "" {
		text, err := readRecords(f.file, cmd.InOrStdin())
		if err != nil {
			return "", err
		}
		ref, err := contract.ReadTranscript(bytes.NewReader(text), nil, visit)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d records hold together, up to %s; they are not held to the status of a run", ref.Records, ref.LastHash), nil
	}
	api, ns, err := f.connect()
	if err != nil {
		return "", err
	}
	packed, from, want, err := stored(cmd.Context(), api, types.NamespacedName{Namespace: ns, Name: args[0]})
	if err != nil {
		return "", err
	}
	if err := contract.VerifyTranscript(bytes.NewReader(packed), from, want, visit); err != nil {
		return "", err
	}
	said := fmt.Sprintf("%d records hold, as the status of the run has them", want.Records)
	if want.Truncated {
		said += "; it was too large, and says itself what is left out"
	}
	return said, nil
}

// stored is the transcript of the run's newest execution, and what it must be.
func stored(ctx context.Context, api client.Client, key types.NamespacedName) ([]byte, contract.TranscriptOrigin, contract.TranscriptRef, error) {
	var from contract.TranscriptOrigin
	var run v1alpha1.AgentRun
	if err := api.Get(ctx, key, &run); err != nil {
		return nil, from, contract.TranscriptRef{}, err
	}
	e := run.Status.Execution
	if e == nil || e.Transcript == nil {
		return nil, from, contract.TranscriptRef{}, fmt.Errorf("run %s has no transcript: it has not ended, keeps none (spec.transcript), or its pod was killed", key.Name)
	}
	if e.Transcript.ConfigMap == "" {
		return nil, from, *e.Transcript, fmt.Errorf("the transcript of run %s could not be stored", key.Name)
	}
	from = contract.TranscriptOrigin{RunUID: string(run.UID), Generation: e.Generation, BundleDigest: e.BundleDigest}
	var cm corev1.ConfigMap
	if err := api.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: e.Transcript.ConfigMap}, &cm); err != nil {
		return nil, from, *e.Transcript, err
	}
	return cm.BinaryData[contract.TranscriptKey], from, *e.Transcript, nil
}

// readRecords reads a transcript, packed or not, without the lines of a pod's log that
// are no records.
func readRecords(name string, in io.Reader) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	const most = contract.MaxTranscriptText
	raw := bufio.NewReader(io.LimitReader(in, most))
	if head, _ := raw.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		raw = bufio.NewReader(io.LimitReader(unpacked, most))
	}
	text, err := io.ReadAll(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var records []byte
	for line := range bytes.Lines(text) {
		var e contract.Event
		if json.Unmarshal(line, &e) == nil && !e.Type.Recorded() {
			continue
		}
		records = append(records, line...)
	}
	return records, nil
}
