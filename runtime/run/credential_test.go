package run

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// canary is the credential of the tool and of the model.
const canary = "canary-5d41402abc4b2a76"

type holdsCanary struct{}

func (holdsCanary) Credential(string) ([]byte, error) { return []byte(canary), nil }

// endpoint is a model that streams each answer in parts of a few letters.
func endpoint(t *testing.T, text, reasoning string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+canary {
			t.Errorf("the model is sent the credential %q", got)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		part := func(field, s string) {
			for len(s) > 0 {
				n := min(5, len(s))
				_, _ = fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{%q:%s}}]}\n\n", field, quoted(s[:n]))
				s = s[n:]
			}
		}
		part("reasoning_content", reasoning)
		part("content", text)
		_, _ = io.WriteString(w, "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// TestNoCredentialIsKept has tools and models that say their credential: it is
// neither in the transcript nor on the stream, nor in the log or the report.
func TestNoCredentialIsKept(t *testing.T) {
	pays := program(`function main(){let r="";try{r=tools.call("pay",{})}catch(e){r="caught "+e.message}return {r:r}}`)
	const final = `{"type":"final","output":"done"}`
	long := strings.Repeat("and so on ", 200)
	tests := map[string]struct {
		tool, text, reasoning string
		want                  contract.Reason
	}{
		"nobody says it":          {`"7"`, pays, "hm", ""},
		"the tool, in its answer": {`{"you":"Bearer ` + canary + `"}`, pays, "", contract.ReasonStepLimitExceeded},
		"the model":               {`"7"`, `{"type":"final","output":"` + canary + `"}`, "", contract.ReasonModelError},
		"the model, late":         {`"7"`, `{"type":"final","output":"` + long + canary + long + `"}`, "", contract.ReasonModelError},
		"the model, to itself":    {`"7"`, final, "my key is " + canary, contract.ReasonModelError},
		"the model, at length":    {`"7"`, final, long + canary + long, contract.ReasonModelError},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, "", contract.EffectReadOnly, says(tc.tool))
			p.bundle.Agent = &contract.PinnedAgent{
				Protocol: contract.ProtocolCode, Finalize: contract.FinalizeDirect, Prompt: "Pay.", MaxSteps: 3,
				Model: contract.PinnedModel{
					Tool: "llm", URL: endpoint(t, tc.text, tc.reasoning), Model: "m", API: contract.ModelAPIChat, TimeoutMs: 20_000,
					Auth: contract.Auth{Type: contract.AuthSecretRef}, Retry: &contract.Retry{Attempts: 1},
				},
			}
			pay := &p.bundle.Tools[0]
			pay.Tool.Capabilities, pay.Auth = []string{contract.CapabilityAuth}, contract.Auth{Type: contract.AuthSecretRef}
			var err error
			if pay.Digest, err = pay.Tool.Digest(); err != nil {
				t.Fatal(err)
			}
			p.pin()
			p.run(func(c *Config) { c.Credentials = holdsCanary{} })
			var got contract.Reason
			if e := p.last().Error; e != nil {
				got = e.Reason
			}
			if got != tc.want {
				t.Errorf("reason %q, want %q; log %s", got, tc.want, p.log.String())
			}
			if calls := p.last().Calls; strings.Contains(tc.tool, canary) && (len(calls) == 0 || calls[0].Reason != contract.ReasonChildResultInvalid) {
				t.Errorf("journal %+v", calls)
			}
			p.wantTranscript()
			report, err := json.Marshal(p.last())
			if err != nil {
				t.Fatal(err)
			}
			packed := p.api.ConfigMaps()[storedAs].BinaryData[contract.TranscriptKey]
			for where, text := range map[string]string{
				"transcript": unpacked(t, packed), "stream": p.events.String(), "log": p.log.String(), "report": string(report),
			} {
				if strings.Contains(text, canary) {
					t.Errorf("the credential is in the %s", where)
				}
			}
		})
	}
}
