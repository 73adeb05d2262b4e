package agentrun

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// agentHeadroom is what an agent needs beside the runtime: the conversation, and
// copies of it in a request and an answer, in bytes.
const agentHeadroom = 64 << 20

// agentRefused refuses what the CRD cannot see in a field of any JSON.
func agentRefused(l *look) *Plan {
	a := l.Run.Spec.Agent
	if a == nil {
		return nil
	}
	if err := contract.CheckExtraBody(a.Extra()); err != nil {
		return settle(failed(contract.ReasonInvalidInput, "spec.agent: %v", err))
	}
	return nil
}

// modelRefused waits for the grant of the run's model.
func modelRefused(l *look) *Plan {
	if l.Run.Spec.Agent == nil {
		return nil
	}
	g, refused := l.model()
	if refused != nil {
		return l.wait(contract.ReasonModelNotGranted, fmt.Sprintf("model %s (rule %s): %s", refused.Name, refused.Rule, refused.Message))
	}
	// Credentials and certificates are mounted by tool name.
	tools, _ := l.tools()
	if slices.ContainsFunc(tools, func(t projected) bool { return t.Tool.Name == g.Tool.Name }) {
		return l.wait(contract.ReasonModelNotGranted, fmt.Sprintf(
			"model %s: its ToolGrant declares the name %q, which a tool of this run has, too; rename one of the two", l.Run.Spec.Agent.Model, g.Tool.Name))
	}
	return nil
}

// model is the grant of the one model that the run may ask.
func (l *look) model() (contract.Grant, *contract.Refusal) {
	return contract.EligibleModel(l.subject(), v1alpha1.ContractGrants(l.Models), l.Run.Spec.Agent.Model)
}

// agent pins what the run's agent is told and the one model that it may ask.
func (l *look) agent() (*contract.PinnedAgent, error) {
	a := l.Run.Spec.Agent
	g, refused := l.model()
	if refused != nil {
		return nil, contract.Faultf(contract.ReasonModelNotGranted, "%s", refused.Message)
	}
	m := g.Backend.Model
	out := &contract.PinnedAgent{
		Protocol: a.Protocol, Finalize: a.Finalize, Instructions: a.Instructions, Prompt: a.Prompt,
		MaxSteps: a.MaxSteps, MaxTokens: lowerOf(a.MaxTokens, g.Authority.MaxTokensPerRun),
		Model: contract.PinnedModel{
			Grant: grantRef(l.Run.Namespace, g), Tool: g.Tool.Name, URL: m.URL, Model: m.Model, API: m.API.Defaulted(),
			Auth: g.Auth, CA: g.Backend.CA, TimeoutMs: g.Authority.Timeout.Milliseconds(), Retry: g.Authority.Retry,
		},
		Options: contract.ModelOptions{
			Temperature: json.Number(a.Temperature), TopP: json.Number(a.TopP), MaxOutputTokens: a.MaxOutputTokens,
			Seed: a.Seed, Stop: a.Stop, ReasoningEffort: a.ReasoningEffort, Store: a.Store, User: a.User, ExtraBody: a.Extra(),
		},
	}
	if err := contract.CheckModelOptions(out.Model.API, out.Options); err != nil {
		return nil, contract.Faultf(contract.ReasonInvalidInput, "spec.agent: %v", err)
	}
	if a.Memory != nil {
		out.MaxItems = a.Memory.MaxItems
	}
	var err error
	if out.Recipes, err = l.pinRecipes(); err != nil {
		return nil, err
	}
	// An object may be older than the CRD's defaults.
	if out.Protocol == "" {
		out.Protocol = contract.ProtocolCode
	}
	if out.Finalize == "" {
		out.Finalize = contract.FinalizeDirect
	}
	if out.MaxSteps == 0 {
		out.MaxSteps = contract.DefaultMaxSteps
	}
	return out, nil
}

// mergeSteps completes the steps of a termination message, which may be brief, with
// those of the status: a step that the status has whole stays as it is there.
func mergeSteps(had, got []contract.Step) []contract.Step {
	out := slices.Clone(had)
	for _, s := range got {
		i := slices.IndexFunc(out, func(x contract.Step) bool { return x.Step == s.Step })
		switch {
		case i < 0:
			out = append(out, s)
		case out[i].Kind == "":
			out[i] = s
		}
	}
	slices.SortFunc(out, func(a, b contract.Step) int { return cmp.Compare(a.Step, b.Step) })
	return out
}

// lowerOf is the lower one of two bounds, of which 0 is none.
func lowerOf(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// modelStatus says in the run's status which model is pinned.
func modelStatus(a *contract.PinnedAgent) *v1alpha1.PinnedModelStatus {
	if a == nil {
		return nil
	}
	g := a.Model.Grant
	return &v1alpha1.PinnedModelStatus{
		Grant: g.Name, GrantNamespace: g.Namespace, UID: g.UID, Generation: g.Generation, Model: a.Model.Model,
	}
}
