package loop

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestRecipeIsRecordedOnce: of a recipe that is called twice, the transcript has
// what it takes to execute it again, and has it once.
func TestRecipeIsRecordedOnce(t *testing.T) {
	c, _ := toolsConfig(speaks(calls("sum", `{ "n": 1 }`, "sum", `{}`), says{text: "done"}))
	c.Bundle.Run = recordedBundle.Run
	c.Events = recording()
	if o := Run(t.Context(), c); o.Fault != nil {
		t.Fatal(o.Fault)
	}
	events, _ := kept(t, c.Events)
	r, limits := c.Bundle.Agent.Recipes[0], contract.DefaultLimits()
	second := contract.EventContent{
		Recipe: r.Name, SourceDigest: r.SourceDigest, Arguments: []byte(`{}`), InputDigest: contract.Digest([]byte(`{}`)),
	}
	first := contract.EventContent{
		Recipe: r.Name, SourceDigest: r.SourceDigest, Arguments: []byte(`{"n":1}`), InputDigest: contract.Digest([]byte(`{ "n": 1 }`)),
		Source: r.Source, Limits: &limits, InputSchema: r.InputSchema, OutputSchema: r.OutputSchema,
	}
	var got []contract.EventContent
	for _, e := range events {
		if e.Type == contract.EventToolStarted {
			got = append(got, *e.Content)
		}
	}
	if diff := cmp.Diff([]contract.EventContent{first, second}, got); diff != "" {
		t.Errorf("calls of the recipe (-want +got):\n%s", diff)
	}
}

// TestProgramIsRecorded: so is the program of a run.
func TestProgramIsRecorded(t *testing.T) {
	b := recordedBundle
	b.Recipe = &contract.PinnedRecipe{Name: "sum"}
	b.Source, b.SourceDigest, b.Input, b.Limits = "s", contract.Digest([]byte("s")), []byte(`{}`), contract.DefaultLimits()
	b.InputSchema, b.OutputSchema = []byte(`{"type":"object"}`), []byte(`{"type":"string"}`)
	e := recording()
	e.started(b)
	e.finished(b, Outcome{Value: []byte(`"x"`)})
	events, _ := kept(t, e)
	want := &contract.EventContent{
		Recipe: "sum", Source: b.Source, SourceDigest: b.SourceDigest, Input: b.Input, Limits: &b.Limits,
		InputSchema: b.InputSchema, OutputSchema: b.OutputSchema,
	}
	if diff := cmp.Diff(want, events[0].Content); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}
