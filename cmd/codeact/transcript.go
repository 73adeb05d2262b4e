package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// maxLogBytes bounds the file of lines that codeact transcript reads: the log of a
// pod has more than its transcript.
const maxLogBytes = 8 * contract.MaxTranscriptText

type transcriptFlags struct {
	cluster
	file, lastHash, output string
}

func newTranscript() *cobra.Command {
	var f transcriptFlags
	c := &cobra.Command{
		Use:   "transcript [RUN] [-f FILE] [--last-hash HASH] [-n NAMESPACE] [-o text|jsonl]",
		Short: "Check and print what was said in a run",
		Long: `Check and print what was said in a run.

With RUN, it is the transcript of the run's last execution in a cluster, checked
against what the pod wrote into the run's status. With FILE (- reads the standard
input) it is taken from there instead: packed or not, or the log of the pod, whose
other lines are left out. A FILE without RUN is checked in itself, and against
--last-hash, where that is given; that its end is missing is not noticed without.

When the transcript does not hold, the exit code is 1 and the first record that does
not is named. Text then says so in its head, and -o jsonl prints nothing.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	c.Flags().StringVarP(&f.file, "filename", "f", "", "the file of the transcript, or - for the standard input")
	c.Flags().StringVar(&f.lastHash, "last-hash", "", "the hash of the last record of FILE, as the run's status had it")
	c.Flags().StringVarP(&f.output, "output", "o", "text", "text or jsonl")
	f.bind(c)
	return c
}

func (f *transcriptFlags) run(cmd *cobra.Command, args []string) error {
	switch {
	case f.output != "text" && f.output != "jsonl":
		return fmt.Errorf("-o %s: want text or jsonl", f.output)
	case len(args) == 0 && f.file == "":
		return errors.New("name a run, or a file with -f")
	case f.lastHash != "" && len(args) > 0:
		return errors.New("--last-hash is for a file without a run: the run's status has the hash")
	case f.lastHash != "" && !contract.ValidDigest(f.lastHash):
		return errors.New("--last-hash: want sha256: and 64 hex digits")
	}
	var said transcript
	var err error
	if f.file != "" {
		if said.raw, err = readLines(f.file, cmd.InOrStdin()); err != nil {
			return err
		}
	}
	if len(args) > 0 {
		api, ns, err := f.connect()
		if err != nil {
			return err
		}
		if err := said.find(cmd.Context(), api, types.NamespacedName{Namespace: ns, Name: args[0]}); err != nil {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "codeact: %s\n", plain(err.Error()))
			return errFailed
		}
	}
	broken := said.check(f.lastHash)
	if err := said.print(cmd.OutOrStdout(), f.output, broken); err != nil {
		return err
	}
	if broken != nil {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "codeact: %s\n", plain(broken.Error()))
		return errFailed
	}
	return nil
}

// transcript is one on its way from where it is kept to who reads it.
type transcript struct {
	// raw is what was found, packed or not; nil before anything was.
	raw []byte
	// origin and want are what the run's status says; nil without a run.
	origin *contract.TranscriptOrigin
	want   *contract.TranscriptRef
	// checked says what the transcript was held against.
	checked string
	// lines are the records that hold in themselves, without their line feeds.
	lines  [][]byte
	events []contract.Event
}

// find looks up what the run's status says of its transcript and, unless it was
// found in a file, the transcript.
func (t *transcript) find(ctx context.Context, api client.Client, name types.NamespacedName) error {
	var run v1alpha1.AgentRun
	if err := api.Get(ctx, name, &run); err != nil {
		return err
	}
	e := run.Status.Execution
	switch {
	case e == nil || e.Transcript == nil:
		return fmt.Errorf("run %s has no transcript: %s", name, whyNone(&run))
	case e.RunUID != string(run.UID):
		return fmt.Errorf("run %s: its report is that of another run", name)
	case run.Status.Pinned != nil && e.Generation == run.Status.ExecutionGeneration && e.BundleDigest != run.Status.Pinned.Digest:
		return fmt.Errorf("run %s: its report is of another bundle than was pinned", name)
	}
	t.want = e.Transcript
	t.origin = &contract.TranscriptOrigin{RunUID: string(run.UID), Generation: e.Generation, BundleDigest: e.BundleDigest}
	if t.raw != nil {
		return nil
	}
	if t.want.ConfigMap == "" {
		return fmt.Errorf("run %s: its transcript could not be stored; check the log of pod %s: codeact transcript %s -f LOG", name, e.Claim.PodName, name.Name)
	}
	var cm corev1.ConfigMap
	err := api.Get(ctx, types.NamespacedName{Namespace: name.Namespace, Name: t.want.ConfigMap}, &cm)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("run %s: its transcript, the ConfigMap %s, is gone", name, t.want.ConfigMap)
	}
	if err != nil {
		return err
	}
	t.raw = cm.BinaryData[contract.TranscriptKey]
	return nil
}

// whyNone says why a run has no transcript.
func whyNone(run *v1alpha1.AgentRun) string {
	switch {
	case run.Spec.Transcript == contract.TranscriptNone:
		return "its spec has transcript: None"
	case run.Status.CompletionTime == nil:
		return "it is stored when the run ends, and is in the log of its pod until then"
	}
	return "its pod did not live to store one"
}

// check takes the lines of the transcript apart, and returns why it does not hold.
func (t *transcript) check(lastHash string) error {
	visit := func(line []byte, e contract.Event) error {
		t.lines, t.events = append(t.lines, bytes.Clone(line)), append(t.events, e)
		return nil
	}
	if t.want != nil {
		t.checked = "verified against the run's status"
		return contract.VerifyTranscript(bytes.NewReader(t.raw), *t.origin, *t.want, visit)
	}
	t.checked = "not verified against a run's status"
	got, err := contract.ReadTranscript(bytes.NewReader(t.raw), nil, visit)
	if err != nil || lastHash == "" {
		return err
	}
	t.checked = "verified against --last-hash, not against a run's status"
	if got.LastHash != lastHash {
		return &contract.BrokenTranscript{Record: got.Records, Why: "its hash is not the one given, so that records are missing at the end, or any may have been changed"}
	}
	return nil
}

func (t *transcript) print(w io.Writer, format string, broken error) error {
	var out bytes.Buffer
	switch {
	case format == "text":
		t.text(&out, broken)
	case broken == nil:
		for _, line := range t.lines {
			out.Write(append(line, '\n'))
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

// readLines reads the file, without the lines that are no records.
func readLines(name string, in io.Reader) ([]byte, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxLogBytes+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxLogBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxLogBytes)
	}
	if bytes.HasPrefix(raw, []byte("\x1f\x8b")) {
		return raw, nil
	}
	return records(raw), nil
}

// records are the lines of a pod's log that are or may be records: a log has events
// that are none, and lines that are no events. A record that is changed until it
// looks like one of these is missed by the record behind it.
func records(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for line := range bytes.Lines(raw) {
		var e contract.Event
		none := json.Unmarshal(line, &e) == nil && e.Hash == "" && (e.N == 0 || !e.Type.Recorded())
		if none || !bytes.HasPrefix(line, []byte("{")) {
			continue
		}
		out = append(out, line...)
	}
	return out
}
