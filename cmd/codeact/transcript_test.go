package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// aTranscript is one that holds, and where it ends.
func aTranscript(t *testing.T) ([]byte, contract.TranscriptRef) {
	t.Helper()
	from := contract.TranscriptOrigin{RunUID: "u", Generation: 1, BundleDigest: contract.Digest([]byte("b"))}
	chain := contract.NewChain(from)
	var out []byte
	for _, e := range []contract.Event{
		{Type: contract.EventExecutionStarted, RunUID: "u", Generation: 1, BundleDigest: from.BundleDigest},
		{Type: contract.EventModelRequested, Step: 1, Content: &contract.EventContent{Messages: []contract.EventMessage{{Role: "user", Text: "do it"}}}},
		{Type: contract.EventModelAnswered, Step: 1, Content: &contract.EventContent{Text: "I do \x1b[2Jit", Reasoning: "hm"}},
		{Type: contract.EventProgramStarted, Step: 1, Tool: "code", Content: &contract.EventContent{Source: "function main() {\n  return 7\n}\n"}},
		{Type: contract.EventFinal, Step: 1, Content: &contract.EventContent{Output: []byte("7")}},
	} {
		r, err := chain.Next(e)
		if err != nil {
			t.Fatal(err)
		}
		chain.Add(r)
		out = append(out, r.Line...)
	}
	return out, chain.Ref()
}

const transcriptText = `   1  execution.started
   2  model.requested  (step 1)
      to the model, user:
        do it
   3  model.answered  (step 1)
      reasoning:
        hm
      text:
        I do \u001b[2Jit
   4  program.started  code  (step 1)
      program:
          1  function main() {
          2    return 7
          3  }
   5  final  (step 1)
      output:
        7
`

func TestTranscriptOfAFile(t *testing.T) {
	text, ref := aTranscript(t)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(text)
	_ = w.Close()
	live := `{"type":"model.delta","content":{"text":"I"}}` + "\n"
	at := bytes.Index(text, []byte(`"n":3`))
	tests := map[string]struct {
		file               []byte
		args               []string
		wantCode           int
		wantOut, wantError string
	}{
		"lines":            {text, nil, exitOK, transcriptText, "5 records hold together, up to " + ref.LastHash},
		"packed":           {packed.Bytes(), nil, exitOK, transcriptText, "not held to the status of a run"},
		"the log of a pod": {append([]byte(live), text...), nil, exitOK, transcriptText, "5 records"},
		"as they are":      {text, []string{"-o", "jsonl"}, exitOK, string(text), "5 records"},
		"changed":          {bytes.Replace(text, []byte("do it"), []byte("do no"), 1), nil, exitFailed, "   1  execution.started\n", "record 2 of the transcript does not hold"},
		"one is missing":   {append(text[:bytes.LastIndexByte(text[:at], '\n')+1:bytes.LastIndexByte(text[:at], '\n')+1], text[at+bytes.IndexByte(text[at:], '\n')+1:]...), nil, exitFailed, "", "record 3 of the transcript does not hold"},
		"empty":            {nil, nil, exitFailed, "", "record 1 of the transcript does not hold: there is none"},
		"another form":     {text, []string{"-o", "yaml"}, exitUsage, "", "-o is text or jsonl"},
		"a run besides":    {text, []string{"run"}, exitUsage, "", "either a run or"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "t.jsonl")
			if err := os.WriteFile(file, tc.file, 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errs := codeact(t, append([]string{"transcript", "-f", file}, tc.args...)...)
			if code != tc.wantCode || !strings.HasPrefix(out, tc.wantOut) || !strings.Contains(errs, tc.wantError) {
				t.Errorf("code %d, output %s, error %s", code, out, errs)
			}
		})
	}
}
