package envtest

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// TestMaxima holds the maxima of the CRDs to the ceilings of the contract: what
// the API server lets in is what an operator may at most allow.
func TestMaxima(t *testing.T) {
	c := contract.Ceilings()
	want := map[string]float64{
		"sourceBytes": float64(c.SourceBytes), "inputBytes": float64(c.InputBytes), "outputBytes": float64(c.OutputBytes),
		"heapBytes": float64(c.HeapBytes), "stackBytes": float64(c.StackBytes), "wallClockMs": float64(c.WallClockMs),
		"childCalls": float64(c.Calls()), "fuel": float64(c.Fuel),
	}
	recipe, run, grant := spec(t, "recipes"), spec(t, "agentruns"), spec(t, "toolgrants")
	for name, s := range map[string]apiextensionsv1.JSONSchemaProps{"Recipe": recipe, "AgentRun": run} {
		got := map[string]float64{}
		for field, p := range s.Properties["limits"].Properties {
			if p.Maximum != nil {
				got[field] = *p.Maximum
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s.spec.limits: %s", name, d)
		}
	}
	code, agent := run.Properties["code"], run.Properties["agent"]
	if m := agent.Properties["maxSteps"]; m.Maximum == nil || *m.Maximum != contract.MaxMaxSteps || string(m.Default.Raw) != strconv.Itoa(contract.DefaultMaxSteps) {
		t.Errorf("AgentRun.spec.agent.maxSteps: %v, default %s", m.Maximum, m.Default)
	}
	if n := agent.Properties["extraBody"].MaxProperties; n == nil || *n != contract.MaxExtraBodyMembers {
		t.Errorf("AgentRun.spec.agent.extraBody: %v, want %d", n, contract.MaxExtraBodyMembers)
	}
	tool, authority := grant.Properties["tool"], grant.Properties["grant"]
	for name, x := range map[string]struct {
		got  *int64
		want int64
	}{
		"Recipe.spec.source":              {maxLength(recipe, "source"), c.SourceBytes},
		"AgentRun.spec.code.source":       {maxLength(code, "source"), c.SourceBytes},
		"Recipe.spec.description":         {maxLength(recipe, "description"), contract.MaxDescriptionBytes},
		"ToolGrant.spec.tool.description": {maxLength(tool, "description"), contract.MaxDescriptionBytes},
		"Recipe.spec.tools":               {maxItems(recipe, "tools"), contract.MaxRecipeTools},
		"AgentRun.spec.code.tools":        {maxItems(code, "tools"), contract.MaxRecipeTools},
		"AgentRun.spec.agent.tools":       {maxItems(agent, "tools"), contract.MaxRecipeTools},

		"AgentRun.spec.agent.prompt":       {maxLength(agent, "prompt"), contract.MaxPromptBytes},
		"AgentRun.spec.agent.instructions": {maxLength(agent, "instructions"), contract.MaxInstructionBytes},

		"ToolGrant.spec.grant.constraints":            {maxItems(authority, "constraints"), contract.MaxConstraints},
		"ToolGrant.spec.grant.resultConstraints":      {maxItems(authority, "resultConstraints"), contract.MaxConstraints},
		"ToolGrant.spec.grant.constraints.expression": {maxLength(*authority.Properties["constraints"].Items.Schema, "expression"), contract.MaxConstraintChars},
	} {
		if x.got == nil || *x.got != x.want {
			t.Errorf("%s: got %v, want %d", name, x.got, x.want)
		}
	}
	status := kindSchema(t, "agentruns").Properties["status"]
	execution := status.Properties["execution"]
	if n := maxItems(execution, "steps"); n == nil || *n != contract.MaxMaxSteps {
		t.Errorf("AgentRun.status.execution.steps: got %v, want %d", n, contract.MaxMaxSteps)
	}
	call := execution.Properties["calls"].Items.Schema
	if n := maxLength(*call, "receipt"); n == nil || *n != contract.MaxReceiptBytes {
		t.Errorf("AgentRun.status.execution.calls.receipt: got %v, want %d", n, contract.MaxReceiptBytes)
	}
	failure := execution.Properties["error"]
	if n := maxLength(failure, "evidence"); n == nil || *n != c.OutputBytes {
		t.Errorf("AgentRun.status.execution.error.evidence: got %v, want %d", n, c.OutputBytes)
	}
	calls := grant.Properties["grant"].Properties["maxCallsPerRun"].Maximum
	if calls == nil || int64(*calls) != c.Calls() {
		t.Errorf("ToolGrant.spec.grant.maxCallsPerRun: got %v, want %d", calls, c.Calls())
	}
}

func maxLength(s apiextensionsv1.JSONSchemaProps, field string) *int64 {
	p := s.Properties[field]
	return p.MaxLength
}

func maxItems(s apiextensionsv1.JSONSchemaProps, field string) *int64 {
	p := s.Properties[field]
	return p.MaxItems
}

func spec(t *testing.T, plural string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	return kindSchema(t, plural).Properties["spec"]
}

func kindSchema(t *testing.T, plural string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", "codeact.dev_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(b, &crd); err != nil {
		t.Fatal(err)
	}
	return *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}
