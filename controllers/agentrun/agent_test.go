package agentrun_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

func gpt() *builders.Grant {
	return builders.MakeGrant("gpt", "gpt-5").Model("https://models.example/v1", "gpt-5-mini").Ready("", "")
}

func agentRun(tools ...string) *builders.Run {
	return builders.MakeRun("r").Agent("gpt", "how many bolts?", tools...)
}

func extra(body string) func(*v1alpha1.AgentSpec) {
	return func(a *v1alpha1.AgentSpec) { a.ExtraBody = &apiextensionsv1.JSON{Raw: []byte(body)} }
}

func TestDecideAgentBeforeLaunch(t *testing.T) {
	seed := int64(1)
	tests := map[string]struct {
		run    *builders.Run
		models []*builders.Grant
		grants []*builders.Grant

		wantVerb    agentrun.Verb
		wantReason  contract.Reason
		wantMessage string
	}{
		"with its model": {run: agentRun(), models: []*builders.Grant{gpt()}, wantVerb: agentrun.VerbLaunch},
		"with its model and tools": {
			run: agentRun("search"), models: []*builders.Grant{gpt()}, grants: []*builders.Grant{search()}, wantVerb: agentrun.VerbLaunch,
		},
		"with a model of another namespace": {
			run: agentRun(), models: []*builders.Grant{gpt().In("team-b").AllowedBy(labels("env", "dev"))}, wantVerb: agentrun.VerbLaunch,
		},
		"without a grant of the name": {
			run: agentRun(), wantVerb: agentrun.VerbWait, wantReason: contract.ReasonModelNotGranted,
			wantMessage: `model gpt (rule Grant): there is no ToolGrant "gpt" in this namespace`,
		},
		"at the end of the wait": {
			run: waitingSince(agentRun(), now.Add(-time.Minute)), wantVerb: agentrun.VerbSettle,
			wantReason: contract.ReasonModelNotGranted, wantMessage: "waited 1m0s",
		},
		"with a model that is not Ready": {
			run: agentRun(), models: []*builders.Grant{gpt().Ready("BackendInvalid", "")},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonModelNotGranted, wantMessage: "ToolGrant gpt is not Ready",
		},
		"with a model that has expired": {
			run: agentRun(), models: []*builders.Grant{gpt().NotAfter(now.Add(-time.Second))},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonModelNotGranted, wantMessage: "expired",
		},
		"with a model for other labels": {
			run: agentRun(), models: []*builders.Grant{gpt().Selector(labels("tier", "batch"))},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonModelNotGranted, wantMessage: "does not select",
		},
		"with a model for recipes": {
			run: agentRun(), models: []*builders.Grant{gpt().Recipes("sweep")},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonModelNotGranted, wantMessage: "only for the recipes sweep",
		},
		"with a model that is not offered": {
			run: agentRun(), models: []*builders.Grant{gpt().In("team-b").AllowedBy(labels("env", "prod"))},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonModelNotGranted, wantMessage: "there is no ToolGrant",
		},
		"with two models of the name": {
			run: agentRun(), models: []*builders.Grant{gpt(), gpt().In("team-b").Allowed()},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonModelNotGranted, wantMessage: "ambiguous: ToolGrants gpt and team-b/gpt",
		},
		"with a tool in place of a model": {
			run: agentRun(), models: []*builders.Grant{builders.MakeGrant("gpt", "search").Ready("", "")},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonModelNotGranted, wantMessage: "(rule Kind): ToolGrant gpt gives a tool of kind Function",
		},
		"with a model over HTTP, from before there were any": {
			run: agentRun(), models: []*builders.Grant{builders.MakeGrant("gpt", "gpt-5").Kind(contract.KindModel).Ready("", "")},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonModelNotGranted, wantMessage: "(rule Kind)",
		},
		"with a credential that is not granted": {
			run: agentRun(), models: []*builders.Grant{gpt().Capabilities([]string{contract.CapabilityAuth}, nil)},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonModelNotGranted, wantMessage: "(rule Capabilities)",
		},
		"with a tool of the model's name": {
			run: agentRun("search"), models: []*builders.Grant{builders.MakeGrant("gpt", "search").Model("https://models.example", "m").Ready("", "")},
			grants: []*builders.Grant{search()}, wantVerb: agentrun.VerbWait,
			wantReason: contract.ReasonModelNotGranted, wantMessage: `declares the name "search", which a tool of this run has, too`,
		},
		"whose programs would call the model": {
			run: agentRun("gpt-5"), models: []*builders.Grant{gpt()}, grants: []*builders.Grant{gpt()},
			wantVerb: agentrun.VerbWait, wantReason: contract.ReasonToolsNotGranted, wantMessage: "gpt-5 (rule Kind)",
		},
		"without a grant of its tool": {
			run: agentRun("search"), models: []*builders.Grant{gpt()}, wantVerb: agentrun.VerbWait,
			wantReason: contract.ReasonToolsNotGranted, wantMessage: "search (rule Grant)",
		},
		"with an extra body of the runtime's does not wait": {
			run: agentRun().AgentWith(extra(`{"Messages":[]}`)), wantVerb: agentrun.VerbSettle,
			wantReason: contract.ReasonInvalidInput, wantMessage: `spec.agent: extraBody may not set "Messages"`,
		},
		"with what its API does not have": {
			run:    agentRun().AgentWith(func(a *v1alpha1.AgentSpec) { a.Seed = &seed }),
			models: []*builders.Grant{gpt().API(contract.ModelAPIResponses)}, wantVerb: agentrun.VerbSettle,
			wantReason: contract.ReasonInvalidInput, wantMessage: "spec.agent: the Responses API has no seed",
		},
		"cancelled": {run: agentRun().Cancel(), wantVerb: agentrun.VerbSettle, wantReason: contract.ReasonCancelled},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			op := settings.Default()
			s := agentrun.Snapshot{Now: now, Run: tc.run.Obj(), NamespaceLabels: map[string]string{"env": "dev"}}
			for _, g := range tc.models {
				s.Models = append(s.Models, *g.Obj())
			}
			for _, g := range tc.grants {
				s.Grants = append(s.Grants, *g.Obj())
			}
			p := agentrun.Decide(op, s)
			reason, message := p.Reason, p.Message
			if p.Outcome != nil {
				reason, message = p.Outcome.Reason, p.Outcome.Message
			}
			if p.Verb != tc.wantVerb || tc.wantReason != "" && reason != string(tc.wantReason) || !strings.Contains(message, tc.wantMessage) {
				t.Fatalf("%s %s %q, want %s %s %q", p.Verb, reason, message, tc.wantVerb, tc.wantReason, tc.wantMessage)
			}
			run := checkSettled(t, op, s, p, agentrun.Done{Pinned: true, Launched: tc.wantVerb == agentrun.VerbLaunch})
			c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionPinned)
			if tc.wantReason == contract.ReasonModelNotGranted && (c == nil || c.Reason != string(tc.wantReason) || c.Message != message) {
				t.Errorf("Pinned %+v does not tell what is missing", c)
			}
		})
	}
}

// TestPinOfAgent holds what is pinned of an agent and its model.
func TestPinOfAgent(t *testing.T) {
	seed, store := int64(7), false
	full := agentRun("search").AgentWith(func(a *v1alpha1.AgentSpec) {
		*a = v1alpha1.AgentSpec{
			Model: "gpt", Prompt: "p", Instructions: "i", Tools: a.Tools, Finalize: contract.FinalizeModel, MaxSteps: 3, MaxTokens: 900,
			Memory: &v1alpha1.AgentMemory{MaxItems: 6}, Temperature: "0.20", TopP: "1", MaxOutputTokens: 50, Seed: &seed, Stop: []string{"END"},
			ReasoningEffort: "low", Store: &store, User: "u", ExtraBody: &apiextensionsv1.JSON{Raw: []byte(`{"top_k":5}`)},
		}
	})
	tests := map[string]struct {
		run  *builders.Run
		gpt  *builders.Grant
		want contract.PinnedAgent
	}{
		"as little as may be said": {run: agentRun("search"), gpt: gpt(), want: contract.PinnedAgent{
			Protocol: contract.ProtocolCode, Finalize: contract.FinalizeDirect, Prompt: "how many bolts?", MaxSteps: 20,
			Model: contract.PinnedModel{
				Grant: contract.GrantRef{Name: "gpt", UID: "uid-of-gpt", Generation: 1}, Tool: "gpt-5", URL: "https://models.example/v1",
				Model: "gpt-5-mini", API: contract.ModelAPIChat, Auth: contract.Auth{Type: contract.AuthNone}, TimeoutMs: 120_000,
			},
		}},
		"all of it": {
			run: full,
			gpt: gpt().API(contract.ModelAPIChat).Secret("openai", "token").CA("roots", "ca.crt").MaxTokens(1000).Timeout(time.Second).Retry(4, time.Second),
			want: contract.PinnedAgent{
				Protocol: contract.ProtocolCode, Finalize: contract.FinalizeModel, Instructions: "i", Prompt: "p", MaxSteps: 3, MaxTokens: 900, MaxItems: 6,
				Model: contract.PinnedModel{
					Grant: contract.GrantRef{Name: "gpt", UID: "uid-of-gpt", Generation: 1}, Tool: "gpt-5", URL: "https://models.example/v1",
					Model: "gpt-5-mini", API: contract.ModelAPIChat, Auth: contract.Auth{Type: contract.AuthSecretRef, SecretName: "openai", SecretKey: "token"},
					CA: &contract.CABundle{ConfigMap: "roots", Key: "ca.crt"}, TimeoutMs: 1000, Retry: &contract.Retry{Attempts: 4, BackoffMs: 1000},
				},
				Options: contract.ModelOptions{
					Temperature: "0.20", TopP: "1", MaxOutputTokens: 50, Seed: &seed, Stop: []string{"END"}, ReasoningEffort: "low",
					Store: &store, User: "u", ExtraBody: []byte(`{"top_k":5}`),
				},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := decideAgent(t, tc.run, tc.gpt)
			b, err := contract.DecodeBundle(p.Pin.Raw, p.Pin.Digest)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(&tc.want, b.Agent); d != "" {
				t.Error(d)
			}
			if b.Source != "" || b.SourceDigest != contract.Digest(nil) || b.Catalogue == nil || len(b.Tools) != 1 {
				t.Errorf("source %q (%s), catalogue %v, tools %v", b.Source, b.SourceDigest, b.Catalogue, b.Tools)
			}
			want := &v1alpha1.PinnedModelStatus{Grant: "gpt", UID: "uid-of-gpt", Generation: 1, Model: "gpt-5-mini"}
			if d := cmp.Diff(want, p.Pin.Status().Model); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestLowerTokenBudgetWins(t *testing.T) {
	tests := map[string]struct{ run, grant, want int64 }{
		"neither": {0, 0, 0}, "the run's": {5, 0, 5}, "the grant's": {0, 7, 7}, "the lower run's": {5, 7, 5}, "the lower grant's": {9, 7, 7},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := gpt()
			if tc.grant > 0 {
				g.MaxTokens(tc.grant)
			}
			p := decideAgent(t, agentRun().AgentWith(func(a *v1alpha1.AgentSpec) { a.MaxTokens = tc.run }), g)
			if got := p.Pin.Bundle.Agent.MaxTokens; got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

func decideAgent(t *testing.T, run *builders.Run, model *builders.Grant) agentrun.Plan {
	t.Helper()
	p := agentrun.Decide(settings.Default(), agentrun.Snapshot{
		Now: now, Run: run.Obj(), Models: []v1alpha1.ToolGrant{*model.Obj()}, Grants: []v1alpha1.ToolGrant{*search().Obj()},
	})
	if p.Verb != agentrun.VerbLaunch {
		t.Fatalf("verb %s: %s %+v", p.Verb, p.Message, p.Outcome)
	}
	return p
}

// TestAgentExecutionDigest: every word to an agent is a part of what is executed.
func TestAgentExecutionDigest(t *testing.T) {
	whole, _ := agentRun("search").Obj().ExecutionDigest()
	for name, edit := range map[string]func(*v1alpha1.AgentSpec){
		"prompt": func(a *v1alpha1.AgentSpec) { a.Prompt += "!" }, "model": func(a *v1alpha1.AgentSpec) { a.Model = "x" },
		"tools": func(a *v1alpha1.AgentSpec) { a.Tools = nil }, "temperature": func(a *v1alpha1.AgentSpec) { a.Temperature = "0" },
		"extraBody": extra(`{}`),
	} {
		if d, err := agentRun("search").AgentWith(edit).Obj().ExecutionDigest(); err != nil || d == whole {
			t.Errorf("%s: digest %s, error %v", name, d, err)
		}
	}
}

// TestReportOfAgent: the steps of the status outlive a brief termination message,
// and the end says which step it came in.
func TestReportOfAgent(t *testing.T) {
	steps := []contract.Step{{Step: 1, Kind: contract.StepCode}, {Step: 2, Kind: contract.StepFinal}}
	f := launched(t).claim(func(e *contract.Execution) { e.Steps = steps; succeed(e) })
	p := agentrun.Decide(settings.Default(), f.snapshot(now))
	if p.Outcome == nil || !p.Outcome.Succeeded || p.Outcome.Message != "the agent gave its output in step 2" {
		t.Errorf("outcome %+v", p.Outcome)
	}
	for name, tc := range map[string]struct{ had, got, want []contract.Step }{
		"none":        {had: steps, want: steps},
		"the last":    {had: steps[:1], got: steps[1:], want: steps},
		"what it was": {had: []contract.Step{steps[0], {Step: 2}}, got: steps[1:], want: steps},
		"brief ones":  {had: []contract.Step{{Step: 1, Kind: contract.StepCode, InputTokens: 9}}, got: steps, want: []contract.Step{{Step: 1, Kind: contract.StepCode, InputTokens: 9}, steps[1]}},
	} {
		brief := launched(t).claim(func(e *contract.Execution) { e.Steps = tc.had }).
			says("Completed", 0, func(e *contract.Execution) { e.Steps = tc.got; succeed(e) })
		p = agentrun.Decide(settings.Default(), brief.snapshot(now))
		if p.Report == nil || p.Outcome.Message != "the agent gave its output in step 2" {
			t.Fatalf("%s: report %+v, outcome %+v", name, p.Report, p.Outcome)
		}
		if d := cmp.Diff(tc.want, p.Report.Steps); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	settled(t, f)
	agentrun.Slim(f.run)
	if f.run.Status.Execution.Steps != nil {
		t.Error("the cache keeps the steps of an ended run")
	}
}
