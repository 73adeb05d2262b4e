// Package prompt measures what the model is told of its tools in each protocol, in
// tokens, beside native definitions of the same tools.
package prompt

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"text/tabwriter"

	"github.com/tiktoken-go/tokenizer"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/runtime/loop/protocol"
	"github.com/codeact-dev/codeact-operator/test/toolset"
)

// function is a native definition as Chat Completions has it. It has no place for
// what a tool returns.
type function struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func define(tb testing.TB, tools []protocol.Definition) string {
	tb.Helper()
	list := make([]function, len(tools))
	for i, t := range tools {
		list[i].Type = "function"
		f := &list[i].Function
		f.Name, f.Description, f.Parameters = t.Name, t.Description, t.Parameters
	}
	text, err := json.Marshal(list)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// TestSize prints the table. The tokens are those of o200k_base, which the models of
// OpenAI count by since GPT-4o.
func TestSize(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer func() { _ = w.Flush() }()
	fmt.Fprintln(w, "tools\twhat\tbytes\ttokens\tof native\t")
	for _, n := range []int{0, 10, 100} {
		base := 0
		for _, x := range texts(t, n) {
			tokens, err := codec.Count(x.text)
			if err != nil {
				t.Fatal(err)
			}
			if base == 0 {
				base = tokens
			}
			ratio := fmt.Sprintf("%.2f", float64(tokens)/float64(base))
			if n == 0 {
				ratio = ""
			}
			fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%s\t\n", n, x.what, len(x.text), tokens, ratio)
		}
	}
}

type measured struct{ what, text string }

// texts is what the model is told of n tools, native definitions first.
func texts(tb testing.TB, n int) []measured {
	tb.Helper()
	tools := toolset.Declare(n)
	catalogue, err := contract.NewCatalogue(tools, contract.MaxCatalogueBytes)
	if err != nil {
		tb.Fatal(err)
	}
	if len(catalogue.Names) != n {
		tb.Fatalf("%d of %d tools are shown", len(catalogue.Names), n)
	}
	limits := contract.DefaultLimits()
	var native []protocol.Definition
	pinned := make([]contract.PinnedTool, n)
	for i, t := range tools {
		native = append(native, protocol.Definition{Name: t.Name, Description: t.Description, Parameters: t.InputSchema})
		pinned[i] = contract.PinnedTool{Tool: t}
	}
	code := protocol.Render(protocol.PromptInput{Finalize: contract.FinalizeDirect, Limits: limits, MaxSteps: contract.DefaultMaxSteps, Catalogue: catalogue})
	both := protocol.ToolsInput{Limits: limits, MaxSteps: contract.DefaultMaxSteps, Catalogue: catalogue, Tools: pinned}
	return []measured{
		{"native definitions", define(tb, native)},
		{"protocol Code", code},
		{"protocol Tools", protocol.RenderTools(both) + define(tb, protocol.Definitions(both))},
	}
}
