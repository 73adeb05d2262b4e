package run

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/report/reporttest"
)

const storedAs = "pod-transcript"

// wantTranscript checks that the report says exactly where the transcript is, on
// both ways, and that what is stored holds against it. It returns its types.
func (p *pod) wantTranscript() (types []contract.EventType) {
	p.t.Helper()
	ref := p.last().Transcript
	if ref == nil {
		p.t.Fatal("the report has no transcript")
	}
	if diff := cmp.Diff(ref, p.message().Transcript); diff != "" {
		p.t.Errorf("termination message (-report +message):\n%s", diff)
	}
	if ref.ConfigMap != storedAs {
		p.t.Errorf("it is said to be in %q", ref.ConfigMap)
	}
	packed := p.api.ConfigMaps()[storedAs].BinaryData[contract.TranscriptKey]
	origin := contract.TranscriptOrigin{RunUID: "u", Generation: 2, BundleDigest: p.digest}
	err := contract.VerifyTranscript(bytes.NewReader(packed), origin, *ref, func(_ []byte, e contract.Event) error {
		types = append(types, e.Type)
		return nil
	})
	if err != nil {
		p.t.Error(err)
	}
	return types
}

func TestTranscriptIsStored(t *testing.T) {
	p, _, model := newAgentPod(t, program(`function main(){return tools.call("pay",{})}`))
	if code := p.run(model); code != ExitSucceeded {
		t.Fatalf("exit code %d, log %s", code, p.log.String())
	}
	want := []contract.EventType{
		"execution.started", "step.started", "model.requested", "model.answered", "program.started", "call", "call", "program.finished",
		"final", "step.finished", "execution.finished",
	}
	if diff := cmp.Diff(want, p.wantTranscript()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// TestTranscriptIsLost cannot store the transcript: the run is as good as any other,
// its report has the hash, and the lines on the stream hold against it.
func TestTranscriptIsLost(t *testing.T) {
	tests := map[string]struct {
		fail    func(w http.ResponseWriter)
		wantLog string
	}{
		"the API server is away": {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "the transcript is not stored"},
		"the name is taken":      {func(w http.ResponseWriter) { reporttest.Fail(w, http.StatusConflict, "AlreadyExists") }, "is not this pod's"},
		"it is not allowed":      {func(w http.ResponseWriter) { reporttest.Fail(w, http.StatusForbidden, "Forbidden") }, "Forbidden"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, paysOnce, contract.EffectIdempotent, says("7"))
			p.api.Intercept(func(w http.ResponseWriter, r *http.Request, _ int) bool {
				if r.Method == http.MethodPost {
					tc.fail(w)
				}
				return r.Method == http.MethodPost
			})
			if code := p.run(func(c *Config) { c.ReportFor = 2 * time.Second }); code != ExitSucceeded {
				t.Errorf("exit code %d", code)
			}
			ref := p.last().Transcript
			if ref == nil || ref.ConfigMap != "" || ref.LastHash == "" || ref.Records == 0 {
				t.Fatalf("the report says %+v", ref)
			}
			if diff := cmp.Diff(ref, p.message().Transcript); diff != "" {
				t.Errorf("termination message (-report +message):\n%s", diff)
			}
			if !strings.Contains(p.log.String(), tc.wantLog) {
				t.Errorf("log %q", p.log.String())
			}
			var records bytes.Buffer
			var last contract.EventType
			for line := range strings.Lines(p.events.String()) {
				var e contract.Event
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				if last = e.Type; e.Type.Recorded() {
					records.WriteString(line)
				}
			}
			if last != contract.EventTranscriptLost {
				t.Errorf("the stream ends with %s", last)
			}
			origin := contract.TranscriptOrigin{RunUID: "u", Generation: 2, BundleDigest: p.digest}
			if err := contract.VerifyTranscript(&records, origin, *ref, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTranscriptOfAStoppedPod: the grace of a pod that is told to end is enough to
// store the transcript, and one that cannot be stored leaves time for the report.
func TestTranscriptOfAStoppedPod(t *testing.T) {
	for name, away := range map[string]bool{"stored": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, `function main(){tools.call("pay",{})}`, contract.EffectReadOnly, never)
			p.api.Intercept(func(_ http.ResponseWriter, r *http.Request, _ int) bool {
				if away && r.Method == http.MethodPost {
					panic(http.ErrAbortHandler)
				}
				return false
			})
			go func() {
				<-p.toolHits
				close(p.stop)
			}()
			start := time.Now()
			p.wantFailed(p.run(func(c *Config) { c.GraceFor, c.ReportFor = 2*time.Second, time.Hour }), contract.ReasonInterrupted)
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("it took %s", d)
			}
			if !away {
				p.wantTranscript()
				return
			}
			if ref := p.last().Transcript; ref == nil || ref.ConfigMap != "" || ref.LastHash == "" {
				t.Errorf("the report says %+v", ref)
			}
		})
	}
}

// TestTranscriptNone keeps nothing: no ConfigMap, no word of it in the report, and no
// content on the stream.
func TestTranscriptNone(t *testing.T) {
	p, _, model := newAgentPod(t, program(`function main(){tools.call("pay",{secret:"hunter2"});return "hunter2"}`))
	p.bundle.Transcript, p.bundle.Agent.Prompt = contract.TranscriptNone, "hunter2"
	p.pin()
	if code := p.run(model); code != ExitSucceeded {
		t.Fatalf("exit code %d, log %s", code, p.log.String())
	}
	if e := p.last(); e.Transcript != nil || p.message().Transcript != nil {
		t.Errorf("the report has %+v", e.Transcript)
	}
	if diff := cmp.Diff(0, len(p.api.ConfigMaps())); diff != "" {
		t.Errorf("ConfigMaps (-want +got):\n%s", diff)
	}
	if strings.Contains(p.events.String()+p.log.String(), "hunter2") || strings.Contains(p.events.String(), `"content"`) {
		t.Errorf("the stream has contents: %s", p.events.String())
	}
}

func unpacked(t *testing.T, packed []byte) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
