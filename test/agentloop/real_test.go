package agentloop

import (
	"cmp"
	"os"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/test/modelserver/script"
)

const task = "How many pieces of the article bolt-m8 are in stock? Look it up. The output must hold that number and nothing that you made up."

// TestRealModel takes a whole run of each protocol to the endpoint at
// CODEACT_MODEL_URL, such as http://127.0.0.1:11434/v1, and asks its model
// CODEACT_MODEL through the API CODEACT_MODEL_API (ChatCompletions when it is
// empty), with the bearer token CODEACT_MODEL_KEY, if there is one. The tools are those
// of the scripted runs.
func TestRealModel(t *testing.T) {
	at := os.Getenv("CODEACT_MODEL_URL")
	if at == "" {
		t.Skip("CODEACT_MODEL_URL names no endpoint")
	}
	for name, protocol := range map[string]func(*world){"Code": func(*world) {}, "Tools": native} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, contract.ModelAPI(cmp.Or(os.Getenv("CODEACT_MODEL_API"), string(contract.ModelAPIChat))), script.Script{})
			protocol(w)
			askReal(w, at)
			e := w.run()
			t.Logf("steps %q, calls %q, %d ms, output %s", stepsOf(e.Steps), callsOf(e.Calls), e.Usage.WallMs, e.Output)
			if e.Error != nil {
				t.Fatalf("error %+v", e.Error)
			}
			asked := w.asked()
			if len(asked) == 0 || asked[0] != bolt {
				t.Errorf("requests of the tools: %q", asked)
			}
			if !strings.Contains(e.Output, "12") {
				t.Errorf("output %s", e.Output)
			}
		})
	}
}

// askReal turns the world's model into the one that the environment names. Its tools
// stay those of the tests, and what is irrevocable among them does nothing.
func askReal(w *world, at string) {
	w.bundle.TimeoutMs = 10 * 60_000
	w.bundle.Agent.Prompt = task
	m := &w.bundle.Agent.Model
	m.URL, m.Model, m.TimeoutMs = at, cmp.Or(os.Getenv("CODEACT_MODEL"), "default"), contract.DefaultModelTimeoutMs
	if k := os.Getenv("CODEACT_MODEL_KEY"); k != "" {
		m.Auth.Type, w.creds = contract.AuthSecretRef, key(k)
	}
}

// key is a credential.
type key string

func (k key) Credential(string) ([]byte, error) { return []byte(k), nil }
