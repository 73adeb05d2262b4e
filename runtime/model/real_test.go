package model

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/broker/backend/egress"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// TestRealEndpoint asks the endpoint at CODEACT_MODEL_URL, such as
// http://127.0.0.1:11434/v1, for the model CODEACT_MODEL_NAME with the credential
// in CODEACT_MODEL_KEY_FILE, through the API CODEACT_MODEL_API (ChatCompletions
// when it is empty), streaming and not.
func TestRealEndpoint(t *testing.T) {
	at := os.Getenv("CODEACT_MODEL_URL")
	if at == "" {
		t.Skip("CODEACT_MODEL_URL names no endpoint")
	}
	if _, err := url.Parse(at); err != nil {
		t.Fatal("CODEACT_MODEL_URL is no URL")
	}
	b := pinned(at, contract.ModelAPI(cmp.Or(os.Getenv("CODEACT_MODEL_API"), string(contract.ModelAPIChat))))
	b.Agent.Model.Model = cmp.Or(os.Getenv("CODEACT_MODEL_NAME"), "default")
	b.Agent.Model.TimeoutMs = contract.DefaultModelTimeoutMs
	key := os.Getenv("CODEACT_MODEL_KEY_FILE")
	if key == "" {
		b.Agent.Model.Auth.Type = contract.AuthNone
	}
	for name, f := range map[string]form{"streaming": fullForm, "not streaming": {}} {
		t.Run(name, func(t *testing.T) {
			c, err := New(b, egress.Files{Path: func(string) string { return key }})
			if err != nil {
				t.Fatal(err)
			}
			c.form = f
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			ans, err := c.Ask(ctx, loop.ModelRequest{Messages: []loop.Message{
				{Role: loop.RoleSystem, Text: "Answer with one word in lower case and nothing else."},
				{Role: loop.RoleUser, Text: "Which colour has the sky on a clear day?"},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if ans.Text == nil || !strings.Contains(strings.ToLower(*ans.Text), "blue") || ans.FinishReason == "" {
				t.Errorf("answer %+v", ans)
			}
			t.Logf("%d input and %d output tokens (counted: %v), %d attempts, finish reason %s", ans.InputTokens, ans.OutputTokens, ans.Counted, ans.Attempts, ans.FinishReason)
		})
	}
}
