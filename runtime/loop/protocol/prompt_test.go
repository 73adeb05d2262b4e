package protocol

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not the golden one; go test -update writes it anew (-want +got):\n%s", file, diff)
	}
}

func twoTools() []contract.Tool {
	return []contract.Tool{
		{
			Name: "orders_list", Description: "Lists the orders of a customer, the newest first.",
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"customer":{"type":"string"},"limit":{"type":"integer","minimum":1}},"required":["customer"],"additionalProperties":false}`),
			OutputSchema: json.RawMessage(`{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"cents":{"type":"integer"}},"required":["id","cents"]}}`),
		},
		{
			Name: "mail_send", Description: "Sends a mail to a customer.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"},"text":{"type":"string"}},"required":["to","text"]}`),
		},
	}
}

func catalogue(t *testing.T, most int, tools ...contract.Tool) contract.Catalogue {
	t.Helper()
	c, err := contract.NewCatalogue(tools, most)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRender(t *testing.T) {
	calls := int64(3)
	none := int64(0)
	full := catalogue(t, contract.MaxCatalogueBytes, twoTools()...)
	in := PromptInput{
		Instructions: "You keep the books of a small shop.\nBe exact.",
		Finalize:     contract.FinalizeDirect, Limits: contract.DefaultLimits(), MaxSteps: contract.DefaultMaxSteps, Catalogue: full,
	}
	cases := map[string]func(*PromptInput){
		"two-tools": func(*PromptInput) {},
		"no-tools":  func(in *PromptInput) { in.Catalogue = catalogue(t, contract.MaxCatalogueBytes) },
		"without-return-schemas": func(in *PromptInput) {
			in.Catalogue = catalogue(t, len(full.Text)-1, twoTools()...)
		},
		"empty-catalogue": func(in *PromptInput) { in.Catalogue = catalogue(t, 2, twoTools()...) },
		"finalize-model":  func(in *PromptInput) { in.Finalize = contract.FinalizeModel },
		"custom-limits": func(in *PromptInput) {
			in.Limits = contract.Limits{
				SourceBytes: 4000, OutputBytes: 200, HeapBytes: 3 << 19, WallClockMs: 1500, Fuel: 1_000_000, ChildCalls: &calls,
			}
			in.MaxSteps = 1
		},
		"no-calls-no-instructions": func(in *PromptInput) {
			in.Instructions, in.MaxSteps, in.Limits = " \n", 0, contract.Limits{ChildCalls: &none}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			in := in
			change(&in)
			got := Render(in)
			golden(t, name+".txt", got)
			if again := Render(in); again != got {
				t.Error("the same input gave two texts")
			}
		})
	}
}

// The contract itself must not outgrow what it explains.
func TestPromptIsShort(t *testing.T) {
	for _, f := range []contract.Finalize{contract.FinalizeDirect, contract.FinalizeModel} {
		in := PromptInput{Finalize: f, Limits: contract.DefaultLimits(), MaxSteps: 20}
		in.Catalogue = catalogue(t, contract.MaxCatalogueBytes, twoTools()...)
		own := len(Render(in)) - len(in.Catalogue.Text)
		t.Logf("finalize %s: %d bytes without the catalogue, about %d tokens", f, own, own/4)
		if own > 4096 {
			t.Errorf("finalize %s: %d bytes without the catalogue, want at most 4096", f, own)
		}
	}
}

func TestTask(t *testing.T) {
	long := `"` + strings.Repeat("é", 5000) + `"`
	cases := map[string]struct {
		input, want string
	}{
		"none":     {"", "Do it."},
		"null":     {" null ", "Do it."},
		"an input": {"{\"n\": 3,\n\"s\": \"a\\nb\"}", "Do it.\n\nINPUT, the argument of main: {\"n\":3,\"s\":\"a\\nb\"}"},
		"cut":      {long, "Do it.\n\nINPUT, of which main gets all 10002 bytes, begins: " + long[:8191]},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Task("Do it.", json.RawMessage(tc.input))); diff != "" {
				t.Errorf("task (-want +got):\n%.500s", diff)
			}
		})
	}
}
