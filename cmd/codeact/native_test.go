package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codeact-dev/codeact-operator/test/modelserver/script"
	"github.com/codeact-dev/codeact-operator/test/toolserver/tools"
)

// restock are the files of the sample of an agent with native tools, with a model
// that plays the turns and the tool server of the demo.
func restock(t *testing.T, turns []script.Turn) []string {
	t.Helper()
	plays := script.New(script.Config{})
	plays.Play("restock", script.Script{
		Turns: turns, Model: "gpt-5-mini", WantTools: []string{"run_code", "scarcest", "count_stock", "order_parts"},
	})
	model := httptest.NewServer(plays)
	t.Cleanup(func() { model.CloseClientConnections(); model.Close() })
	server := httptest.NewServer(tools.New(tools.Config{}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	samples := filepath.Join("..", "..", "config", "samples")
	secret := filepath.Join(t.TempDir(), "secret.yaml")
	write := func(to, text string) {
		t.Helper()
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(secret, "apiVersion: v1\nkind: Secret\nmetadata: {name: openai}\nstringData: {token: a-key-of-nobody}\n")
	args := []string{"-f", secret}
	for _, name := range []string{"agent/model.yaml", "agent-tools/recipe.yaml", "agent-tools/order.yaml", "agent-tools/agentrun.yaml"} {
		raw, err := os.ReadFile(filepath.Join(samples, name))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(raw), "https://api.openai.com/v1", model.URL+"/s/restock/v1")
		file := filepath.Join(t.TempDir(), "manifest.yaml")
		write(file, strings.ReplaceAll(text, "http://toolserver:8080", server.URL))
		args = append(args, "-f", file)
	}
	return args
}

// restocks calls the recipe, then the order, and ends with the text.
func restocks(text, last string) []script.Turn {
	call := func(name, args string) script.Turn {
		return script.Turn{ToolCalls: []script.ToolCall{{Name: name, Arguments: args}}}
	}
	return []script.Turn{
		call("scarcest", `{"skus":["bolt-m8","nut-m8"]}`), call("order_parts", `{"sku":"bolt-m8","quantity":100}`),
		{Text: text, WantLast: []string{last}},
	}
}

func TestNativeToolsWithoutACluster(t *testing.T) {
	tests := map[string]struct {
		turns    []script.Turn
		args     []string
		wantText string
		// wantCalls are the tools of the journal, with what came of each.
		wantCalls string
	}{
		"approved":            {restocks("Ordered.", "order-0001"), []string{"--approve", "order_parts"}, "Ordered.", "count_stock Completed, count_stock Completed, order_parts Completed"},
		"nobody to answer it": {restocks("Nobody agreed.", "ApprovalRequired"), nil, "Nobody agreed.", "count_stock Completed, count_stock Completed, order_parts ApprovalRequired"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			code, out, errs := codeact(t, append(append([]string{"run", "--local", "-o", "json"}, restock(t, tc.turns)...), tc.args...)...)
			if code != exitOK {
				t.Fatalf("code %d, output %s, error %s", code, out, errs)
			}
			var got struct {
				Value string
				Calls []struct{ Tool, Outcome string }
			}
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var calls []string
			for _, c := range got.Calls {
				calls = append(calls, c.Tool+" "+c.Outcome)
			}
			if got.Value != tc.wantText || strings.Join(calls, ", ") != tc.wantCalls {
				t.Errorf("output %q, calls %v, whole %s", got.Value, calls, out)
			}
		})
	}
}

// TestCatalogueOfNativeTools: what run_code may call is shown, and not the order.
func TestCatalogueOfNativeTools(t *testing.T) {
	code, out, errs := codeact(t, append([]string{"catalogue"}, restock(t, nil)...)...)
	if code != exitOK || !strings.Contains(out, `"count_stock"`) || strings.Contains(out, "order_parts") {
		t.Errorf("code %d, output %s, error %s", code, out, errs)
	}
}
