package model

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop"
)

// key is a credential.
type key string

func (k key) Credential(string) ([]byte, error) { return []byte(k), nil }

// realClient is a client of the endpoint at CODEACT_MODEL_URL, such as
// http://127.0.0.1:11434/v1, for its model CODEACT_MODEL with the bearer token
// CODEACT_MODEL_KEY, if there is one, through the API CODEACT_MODEL_API
// (ChatCompletions when it is empty). Without the first one, the test is skipped.
func realClient(t *testing.T, f form) *Client {
	t.Helper()
	at := os.Getenv("CODEACT_MODEL_URL")
	if at == "" {
		t.Skip("CODEACT_MODEL_URL names no endpoint")
	}
	if _, err := url.Parse(at); err != nil {
		t.Fatal("CODEACT_MODEL_URL is no URL")
	}
	b := pinned(at, contract.ModelAPI(cmp.Or(os.Getenv("CODEACT_MODEL_API"), string(contract.ModelAPIChat))))
	b.Agent.Model.Model = cmp.Or(os.Getenv("CODEACT_MODEL"), "default")
	b.Agent.Model.TimeoutMs = contract.DefaultModelTimeoutMs
	k := os.Getenv("CODEACT_MODEL_KEY")
	if k == "" {
		b.Agent.Model.Auth.Type = contract.AuthNone
	}
	c, err := New(b, key(k))
	if err != nil {
		t.Fatal(err)
	}
	c.form = f
	return c
}

// really asks and tells the log what it cost.
func really(t *testing.T, c *Client, tools []loop.ModelTool, messages ...loop.Message) loop.ModelAnswer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	ans, err := c.Ask(ctx, loop.ModelRequest{Messages: messages, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d input and %d output tokens (counted: %v), %d attempts, finish reason %s", ans.InputTokens, ans.OutputTokens, ans.Counted, ans.Attempts, ans.FinishReason)
	return ans
}

var realForms = map[string]form{"streaming": fullForm, "not streaming": {}}

// TestRealEndpoint asks a real endpoint a question, streaming and not.
func TestRealEndpoint(t *testing.T) {
	for name, f := range realForms {
		t.Run(name, func(t *testing.T) {
			ans := really(t, realClient(t, f), nil,
				loop.Message{Role: loop.RoleSystem, Text: "Answer with one word in lower case and nothing else."},
				loop.Message{Role: loop.RoleUser, Text: "Which colour has the sky on a clear day?"})
			if ans.Text == nil || !strings.Contains(strings.ToLower(*ans.Text), "blue") || ans.FinishReason == "" {
				t.Errorf("answer %+v", ans)
			}
		})
	}
}

// TestRealEndpointCalls has a real endpoint call a tool, and tells it the result.
func TestRealEndpointCalls(t *testing.T) {
	tools := []loop.ModelTool{{
		Name: "stock_of", Description: "Tells how many pieces of an article are in stock.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"sku":{"type":"string"}},"required":["sku"]}`),
	}}
	for name, f := range realForms {
		t.Run(name, func(t *testing.T) {
			c := realClient(t, f)
			messages := []loop.Message{
				{Role: loop.RoleSystem, Text: "Use the tools for what you do not know. Answer with a number and nothing else."},
				{Role: loop.RoleUser, Text: "How many pieces of the article bolt-m8 are in stock?"},
			}
			ans := really(t, c, tools, messages...)
			if len(ans.ToolCalls) != 1 || ans.ToolCalls[0].Name != "stock_of" {
				t.Fatalf("answer %+v", ans)
			}
			var args struct{ SKU string }
			if err := json.Unmarshal([]byte(ans.ToolCalls[0].Arguments), &args); err != nil || args.SKU != "bolt-m8" {
				t.Fatalf("arguments %s, error %v", ans.ToolCalls[0].Arguments, err)
			}
			ans.ToolCalls[0].ID = cmp.Or(ans.ToolCalls[0].ID, "call_1")
			messages = append(messages, loop.Message{Role: loop.RoleAssistant, ToolCalls: ans.ToolCalls},
				loop.Message{Role: loop.RoleTool, ToolCallID: ans.ToolCalls[0].ID, Text: `{"result":712}`})
			if ans = really(t, c, tools, messages...); ans.Text == nil || !strings.Contains(*ans.Text, "712") {
				t.Errorf("answer %+v", ans)
			}
		})
	}
}
