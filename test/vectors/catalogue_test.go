package vectors_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

type catalogueCase struct {
	ID    string `json:"id"`
	Tools []struct {
		Name         string          `json:"name"`
		Description  json.RawMessage `json:"description"`
		Parameters   json.RawMessage `json:"parameters"`
		ReturnSchema json.RawMessage `json:"return_schema"`
	} `json:"tools"`
	MaxBytes int `json:"maxBytes"`
	Expect   struct {
		Step     contract.CatalogueStep `json:"step"`
		Names    []string               `json:"names"`
		Callable []string               `json:"callable"`
		Bytes    int                    `json:"bytes"`
	} `json:"expect"`
}

func TestCatalogue(t *testing.T) {
	cases := casesOf[catalogueCase](t, "catalogue")
	for _, tc := range cases {
		t.Run(tc.ID, func(t *testing.T) { tc.run(t) })
	}
	if len(cases) != 8 {
		t.Errorf("%d cases, want 8", len(cases))
	}
}

func (tc catalogueCase) run(t *testing.T) {
	var tools []contract.Tool
	for _, x := range tc.Tools {
		tool := contract.Tool{Name: x.Name, InputSchema: repeated(t, x.Parameters), OutputSchema: repeated(t, x.ReturnSchema)}
		if err := json.Unmarshal(repeated(t, x.Description), &tool.Description); err != nil {
			t.Fatal(err)
		}
		tools = append(tools, tool)
	}
	most := tc.MaxBytes
	if most == 0 {
		most = contract.MaxCatalogueBytes
	}
	c, err := contract.NewCatalogue(tools, most)
	if err != nil {
		t.Fatal(err)
	}
	if c.Step != tc.Expect.Step {
		t.Fatalf("step %s, want %s (%d bytes)", c.Step, tc.Expect.Step, len(c.Text))
	}
	if d := cmp.Diff(tc.Expect.Callable, c.Names); d != "" {
		t.Errorf("callable: %s", d)
	}
	if c.Step != contract.CatalogueEmpty && len(c.Text) != tc.Expect.Bytes {
		t.Errorf("%d bytes, want %d", len(c.Text), tc.Expect.Bytes)
	}
	var shown []struct {
		Name    string           `json:"name"`
		Return  *json.RawMessage `json:"return_schema"`
		Omitted bool             `json:"return_schema_omitted"`
	}
	if err := json.Unmarshal(c.Text, &shown); err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, s := range shown {
		names = append(names, s.Name)
		if full := c.Step == contract.CatalogueFull; full != (s.Return != nil) || full == s.Omitted {
			t.Errorf("%s has a return schema: %v, omitted: %v", s.Name, s.Return != nil, s.Omitted)
		}
	}
	if d := cmp.Diff(tc.Expect.Names, names); d != "" {
		t.Errorf("names: %s", d)
	}
}

// repeated writes out every {"repeat": T, "times": N} in a JSON text.
func repeated(t *testing.T, text json.RawMessage) json.RawMessage {
	t.Helper()
	x, err := contract.DecodeJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := contract.Canonical(writeOut(x))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func writeOut(x any) any {
	switch x := x.(type) {
	case []any:
		for i, v := range x {
			x[i] = writeOut(v)
		}
	case map[string]any:
		if s, ok := x["repeat"].(string); ok {
			n, _ := x["times"].(json.Number)
			times, _ := n.Int64()
			return strings.Repeat(s, int(times))
		}
		for k, v := range x {
			x[k] = writeOut(v)
		}
	}
	return x
}
