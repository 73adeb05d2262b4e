package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

var talkOf = contract.TranscriptOrigin{RunUID: "uid-of-r", Generation: 1, BundleDigest: contract.Digest([]byte("bundle"))}

// talk has every type of record that a person is shown with what was said.
func talk() []contract.Event {
	long := json.RawMessage(`"` + strings.Repeat("ü", 200) + `"`)
	source := "function main(input){\n\treturn tools.call('pay', {n: 1})\n}"
	return []contract.Event{
		{Type: contract.EventExecutionStarted, BundleDigest: talkOf.BundleDigest, Content: &contract.EventContent{Input: json.RawMessage(`{"n":1}`)}},
		{Type: contract.EventStepStarted, Step: 1},
		{Type: contract.EventModelRequested, Step: 1, Content: &contract.EventContent{Dropped: 2, Messages: []contract.EventMessage{
			{Role: "system", Text: "Be brief.\nBe \x1b[2Jright."}, {Role: "tool", ToolCallID: "c0", Text: "7"},
		}}},
		{Type: contract.EventModelAnswered, Step: 1, DurationMs: 7, InputTokens: 10, OutputTokens: 2, Attempts: 1, Content: &contract.EventContent{
			Reasoning: "hm\u202e", Text: "I pay.", FinishReason: "stop", ToolCalls: []contract.ModelToolCall{{ID: "c1", Name: "run_code", Arguments: "{}"}},
		}},
		{Type: contract.EventProgramStarted, Step: 1, Tool: "code", ID: "code_execution_1", Content: &contract.EventContent{Source: source, SourceDigest: "sha256:00"}},
		{Type: contract.EventCall, Step: 1, Seq: 1, Tool: "pay", State: "Dispatched", Content: &contract.EventContent{Arguments: json.RawMessage(`{"n":1}`)}},
		{Type: contract.EventCall, Step: 1, Seq: 1, Tool: "pay", State: "Completed", DurationMs: 5, Content: &contract.EventContent{Result: long}},
		{Type: contract.EventCallDenied, Step: 1, Tool: "rm", State: "Refused", Reason: contract.ReasonToolNotAllowed, Content: &contract.EventContent{Message: "not granted"}},
		{Type: contract.EventLatched, Step: 1, Tool: "rm", Reason: contract.ReasonToolNotAllowed},
		{Type: contract.EventProgramFinished, Step: 1, Tool: "code", State: "Failed", Reason: contract.ReasonJavaScriptError, DurationMs: 9, Content: &contract.EventContent{Message: "no", Line: 2, Column: 9}},
		{Type: contract.EventPending, Step: 1, ID: "1-2-aa", Tool: "buy", State: "Approval", Content: &contract.EventContent{Arguments: json.RawMessage(`{"n":2}`)}},
		{Type: contract.EventResolved, Step: 1, ID: "1-2-aa", Tool: "buy", State: "Approve", DurationMs: 60, Content: &contract.EventContent{Message: "ann"}},
		{Type: contract.EventStepFinished, Step: 1, State: "Code", DurationMs: 90},
		{Type: contract.EventCall, Step: 2, Seq: 3, Tool: "look", State: "Completed", Content: &contract.EventContent{
			Omitted: []contract.Omission{{Field: "result", Bytes: 300000, Digest: "sha256:11"}},
		}},
		{Type: contract.EventTruncated, Step: 2, Omitted: &contract.Omitted{Contents: 1, Bytes: 9}},
		{Type: contract.EventFinal, Step: 2, Content: &contract.EventContent{Output: json.RawMessage(`{"a":[1]}`)}},
		{Type: contract.EventError, Reason: contract.ReasonStepLimitExceeded, Content: &contract.EventContent{Message: "no more steps", Evidence: `{"x":1}`}},
		{Type: contract.EventExecutionFinished, State: "Failed", Reason: contract.ReasonStepLimitExceeded, DurationMs: 100},
	}
}

// sealed are the events as the lines of a transcript, and where it ends.
func sealed(t *testing.T, events []contract.Event) ([]string, contract.TranscriptRef) {
	t.Helper()
	c := contract.NewChain(talkOf)
	var lines []string
	for _, e := range events {
		e.Time, e.Run, e.RunUID, e.Generation = "2026-01-02T03:04:05Z", "team-a/r", talkOf.RunUID, talkOf.Generation
		r, err := c.Next(e)
		if err != nil {
			t.Fatal(err)
		}
		c.Add(r)
		lines = append(lines, string(r.Line))
	}
	return lines, c.Ref()
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestTranscriptText holds what a person is shown to testdata/transcript.txt.
func TestTranscriptText(t *testing.T) {
	golden, err := os.ReadFile("testdata/transcript.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines, _ := sealed(t, talk())
	code, out, errs := command(t, nil, strings.Join(lines, ""), "transcript", "-f", "-")
	if code != exitOK || errs != "" {
		t.Errorf("code %d, %s", code, errs)
	}
	if diff := cmp.Diff(string(golden), out); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if strings.ContainsAny(out, "\x1b\u202e\t") {
		t.Error("the text commands a terminal")
	}
}

// TestTranscriptOfAFile reads transcripts from files, whole and not.
func TestTranscriptOfAFile(t *testing.T) {
	lines, ref := sealed(t, talk())
	all := strings.Join(lines, "")
	delta, err := contract.Event{Type: contract.EventModelDelta, Content: &contract.EventContent{Text: "x"}}.Line()
	if err != nil {
		t.Fatal(err)
	}
	noRoom, err := contract.Event{Type: contract.EventCall, Tool: "pay"}.Line()
	if err != nil {
		t.Fatal(err)
	}
	log := lines[0] + string(delta) + "codeact-runtime: a word\n\n" + strings.Join(lines[1:4], "") + string(noRoom) + strings.Join(lines[4:], "")
	edited := strings.Replace(all, `"tool":"pay"`, `"tool":"buy"`, 1)
	tests := map[string]struct {
		text     string
		args     []string
		wantCode int
		wantErr  string
		want     string // in the output as text
	}{
		"lines":              {text: all, want: "18 records, not verified against a run's status"},
		"packed":             {text: zipped(t, all), want: "18 records, not verified"},
		"the log of a pod":   {text: log, want: "18 records, not verified"},
		"with its last hash": {text: all, args: []string{"--last-hash", ref.LastHash}, want: "18 records, verified against --last-hash, not"},
		"cut, unnoticed":     {text: strings.Join(lines[:5], ""), want: "5 records, not verified"},
		"cut, with the last hash": {
			text: strings.Join(lines[:5], ""), args: []string{"--last-hash", ref.LastHash},
			wantCode: exitFailed, wantErr: "record 5 of the transcript does not hold", want: "DOES NOT HOLD: record 5",
		},
		"edited":             {text: edited, wantCode: exitFailed, wantErr: "record 6 of the transcript does not hold", want: "5 records come before it"},
		"cut in a line":      {text: all[:len(all)-9], wantCode: exitFailed, wantErr: "record 18", want: "DOES NOT HOLD"},
		"a record as a word": {text: strings.Replace(all, lines[3], "x"+lines[3], 1), wantCode: exitFailed, wantErr: "record 4 of the", want: "record 5 is in its place"},
		"of no transcript":   {text: string(delta), wantCode: exitFailed, wantErr: "there is none", want: "DOES NOT HOLD"},
		"damaged":            {text: zipped(t, all)[:300], wantCode: exitFailed, wantErr: "cannot be read", want: "DOES NOT HOLD"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"transcript", "-f", "t"}, tc.args...)
			code, out, errs := command(t, map[string]string{"t": tc.text}, "", args...)
			if code != tc.wantCode || !strings.Contains(errs, tc.wantErr) || tc.wantErr == "" && errs != "" {
				t.Errorf("code %d, %s", code, errs)
			}
			if !strings.Contains(out, tc.want) {
				t.Errorf("no %q in %s", tc.want, out)
			}
			code, out, _ = command(t, map[string]string{"t": tc.text}, "", append(args, "-o", "jsonl")...)
			switch {
			case code != tc.wantCode, code != exitOK && out != "":
				t.Errorf("as lines: code %d, %d bytes", code, len(out))
			case code == exitOK && (out == "" || !strings.HasPrefix(all, out)):
				t.Error("the lines are not those of the transcript")
			}
		})
	}
}

// TestTranscriptOfARun finds the transcript of a run and holds it against the status.
func TestTranscriptOfARun(t *testing.T) {
	lines, ref := sealed(t, talk())
	all := strings.Join(lines, "")
	ref.ConfigMap = "p-transcript"
	tests := map[string]struct {
		change  func(*v1alpha1.AgentRun)
		stored  string
		file    string
		wantErr string // of find
		broken  string
	}{
		"stored":            {stored: zipped(t, all)},
		"in the log":        {file: all, change: func(r *v1alpha1.AgentRun) { r.Status.Execution.Transcript.ConfigMap = "" }},
		"cut":               {stored: zipped(t, strings.Join(lines[:7], "")), broken: "record 8 of the transcript"},
		"of another bundle": {stored: zipped(t, all), change: func(r *v1alpha1.AgentRun) { r.Status.Execution.BundleDigest = contract.Digest(nil) }, broken: "record 1 of"},
		"not as pinned": {stored: zipped(t, all), wantErr: "another bundle than was pinned", change: func(r *v1alpha1.AgentRun) {
			r.Status.ExecutionGeneration, r.Status.Pinned = 1, &v1alpha1.PinnedStatus{Digest: contract.Digest(nil)}
		}},
		"of another run": {stored: zipped(t, all), wantErr: "that of another run", change: func(r *v1alpha1.AgentRun) { r.Status.Execution.RunUID = "x" }},
		"gone":           {wantErr: "p-transcript, is gone"},
		"lost":           {wantErr: "check the log of pod p", change: func(r *v1alpha1.AgentRun) { r.Status.Execution.Transcript.ConfigMap = "" }},
		"not there yet":  {wantErr: "stored when the run ends", change: func(r *v1alpha1.AgentRun) { r.Status.Execution = nil }},
		"none": {wantErr: "transcript: None", change: func(r *v1alpha1.AgentRun) {
			r.Spec.Transcript, r.Status.Execution.Transcript = contract.TranscriptNone, nil
		}},
		"killed": {wantErr: "did not live", change: func(r *v1alpha1.AgentRun) {
			r.Status.CompletionTime, r.Status.Execution.Transcript = new(metav1.Now()), nil
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run, end := waitingRun("r"), ref
			run.Status.Execution = &contract.Execution{
				RunUID: "uid-of-r", Generation: 1, BundleDigest: talkOf.BundleDigest, Transcript: &end, Claim: contract.Claim{PodName: "p"},
			}
			if tc.change != nil {
				tc.change(run)
			}
			objects := []client.Object{run}
			if tc.stored != "" {
				objects = append(objects, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: "p-transcript"},
					BinaryData: map[string][]byte{contract.TranscriptKey: []byte(tc.stored)},
				})
			}
			var found transcript
			if tc.file != "" {
				found.raw = records([]byte(tc.file))
			}
			err := found.find(t.Context(), asAnn(t, objects...), types.NamespacedName{Namespace: run.Namespace, Name: "r"})
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			broken := found.check("")
			if tc.broken == "" && broken != nil || tc.broken != "" && (broken == nil || !strings.Contains(broken.Error(), tc.broken)) {
				t.Errorf("%v, want %q", broken, tc.broken)
			}
			if found.checked != "verified against the run's status" {
				t.Errorf("it is %s", found.checked)
			}
		})
	}
}

func TestTranscriptUsage(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"nothing":        {nil, "name a run, or a file"},
		"unknown output": {[]string{"r", "-o", "yaml"}, "want text or jsonl"},
		"two hashes":     {[]string{"r", "--last-hash", talkOf.BundleDigest}, "without a run"},
		"no hash":        {[]string{"-f", "-", "--last-hash", "x"}, "64 hex digits"},
		"no file":        {[]string{"-f", "absent"}, "absent"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			code, _, errs := command(t, nil, "", append([]string{"transcript"}, tc.args...)...)
			if code != exitUsage || !strings.Contains(errs, tc.want) {
				t.Errorf("code %d, %s", code, errs)
			}
		})
	}
}
