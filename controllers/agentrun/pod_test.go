package agentrun_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/agentrun"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/test/builders"
	"github.com/codeact-dev/codeact-operator/test/golden"
)

// TestGolden holds the whole pod and the whole pin: a change of either is a
// change of what runs.
func TestGolden(t *testing.T) {
	class := "gvisor"
	runs := map[string]agentrun.Snapshot{
		"code": {Run: builders.MakeRun("hello").Code(echo).Input(`{"n":1}`).Obj()},
		"recipe": {
			Run: builders.MakeRun("report.weekly").Label("tier", "batch").Recipe("sweep").Input(`{"q":"x"}`).Timeout(90 * time.Second).
				Pod(v1alpha1.PodOptions{
					NodeSelector: map[string]string{"pool": "runs"}, RuntimeClassName: &class, PriorityClassName: "low",
					Tolerations: []corev1.Toleration{{Key: "runs", Operator: corev1.TolerationOpExists}},
					Resources:   &v1alpha1.PodResources{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
				}).Obj(),
			Recipe: builders.MakeRecipe("sweep", calling, "search", "pay", "mail").Ready("", "").Obj(),
			Grants: []v1alpha1.ToolGrant{
				*search().Capabilities([]string{contract.CapabilityRunLabels}, []string{contract.CapabilityRunLabels}).Obj(),
				*builders.MakeGrant("pay", "pay").Secret("pay-token", "token").Effect(contract.EffectEffectful).MaxCalls(1).Ready("", "").Obj(),
				*builders.MakeGrant("mail", "mail").Token("mail.example").Effect(contract.EffectIdempotent).Ready("", "").Obj(),
			},
		},
		"broker": {
			Run:             builders.MakeRun("many").Label("tier", "batch").Code(echo, "search", "forecast", "note").Obj(),
			NamespaceLabels: map[string]string{"env": "dev"},
			Grants: []v1alpha1.ToolGrant{
				*search().Effect(contract.EffectReadOnly).Retry(3, time.Second).CA("roots", "ca.crt").HTTP(func(h *v1alpha1.HTTPBackend) {
					h.URL, h.Method, h.Response = "https://tools.example/search/{q}", "GET", contract.ResponseText
					h.Headers = []v1alpha1.HTTPHeader{{Name: "Accept-Language", Value: "en"}}
				}).Obj(),
				*builders.MakeGrant("weather", "forecast").In("team-b").AllowedBy(metav1.LabelSelector{MatchLabels: map[string]string{"env": "dev"}}).
					MCP("https://weather.example/mcp", "").Effect(contract.EffectIdempotent).Retry(2, 0).Ready("", "").Obj(),
				*builders.MakeGrant("note", "note").MCP("https://notes.example/mcp", "notes.add").Secret("notes", "token").CA("roots", "ca.crt").
					Constraint("size(args.text) <= 100", "too long").ResultConstraint("result.ok", "").Ready("", "").Obj(),
			},
		},
		"agent": {
			Run: builders.MakeRun("ask").Agent("gpt", "how many bolts?", "note").AgentWith(func(a *v1alpha1.AgentSpec) {
				a.Temperature, a.MaxTokens = "0.2", 5000
			}).Obj(),
			Grants: []v1alpha1.ToolGrant{*builders.MakeGrant("note", "note").Secret("notes", "token").Ready("", "").Obj()},
			Models: []v1alpha1.ToolGrant{*gpt().Secret("openai", "token").CA("roots", "ca.crt").MaxTokens(4000).Obj()},
		},
		"tools": {
			Run: toolsRun([]string{"sweep"}, "search", "wire").Obj(),
			Recipes: []v1alpha1.Recipe{*builders.MakeRecipe("sweep", calling, "search", "hidden").ToolName("sweep_all").
				InputSchema(`{"type":"object","properties":{"q":{"type":"string"}}}`).OutputSchema(`{"type":"number"}`).Ready("", "").Obj()},
			Grants: []v1alpha1.ToolGrant{
				*search().Effect(contract.EffectReadOnly).Obj(),
				*gives("wire", "wire").Secret("bank", "token").Effect(contract.EffectEffectful).Approval(contract.ApprovalRequired).Obj(),
				*gives("hidden", "hidden").Recipes("sweep").Secret("hidden", "token").Obj(),
			},
			Models: []v1alpha1.ToolGrant{*gpt().Secret("openai", "token").Obj()},
		},
	}
	operators := map[string]func(*settings.Operator){
		"broker": func(o *settings.Operator) {
			o.Egress = contract.OperatorPolicy{AllowLoopback: true, ProxyFromEnvironment: true, WarnOnDrift: true}
			o.Runtime.Proxy = settings.Proxy{HTTPS: "http://proxy.example:3128", No: "10.0.0.0/8,$x"}
			o.Runtime.TraceEndpoint = "http://collector.tracing:4318"
		},
	}
	for name, s := range runs {
		t.Run(name, func(t *testing.T) {
			s.Now = now
			op := settings.Default()
			if edit := operators[name]; edit != nil {
				edit(&op)
			}
			op.Runtime.Image, op.Runtime.PullPolicy = "registry.example/codeact:v0", corev1.PullIfNotPresent
			p := agentrun.Decide(op, s)
			if p.Verb != agentrun.VerbLaunch {
				t.Fatalf("verb %q: %s %+v", p.Verb, p.Message, p.Outcome)
			}
			golden.CheckYAML(t, name+"-pod.yaml", agentrun.NewPod(op.Runtime, s.Run, p.Pin))
			golden.CheckYAML(t, name+"-pin.yaml", p.Pin.ConfigMap(s.Run))
		})
	}
}

func TestNames(t *testing.T) {
	tests := map[string]string{
		"short":              "r",
		"dots":               "a.b.c",
		"a cut at a dot":     strings.Repeat("a", 49) + "." + strings.Repeat("b", 200),
		"a label-sized name": strings.Repeat("x", 63),
		"the longest name":   strings.Repeat("y", 253),
		"long with dashes":   strings.Repeat("z-", 126) + "z",
	}
	for what, name := range tests {
		t.Run(what, func(t *testing.T) {
			run := builders.MakeRun(name).Code(echo).Obj()
			run.UID = "3f2a9f0e-7a54-4d4c-9a43-0a0a0a0a0a0a"
			for _, generation := range []int64{1, 12345678901} {
				got := agentrun.Name(run, generation)
				if errs := validation.IsDNS1123Label(got); len(errs) > 0 {
					t.Errorf("%q: %v", got, errs)
				}
			}
			if agentrun.Name(run, 1) == agentrun.Name(run, 2) {
				t.Error("two generations have one name")
			}
			other := run.DeepCopy()
			other.UID = "another"
			if agentrun.Name(run, 1) == agentrun.Name(other, 1) {
				t.Error("two runs have one name")
			}
			p := agentrun.Decide(settings.Default(), agentrun.Snapshot{Now: now, Run: run})
			for k, v := range agentrun.NewPod(settings.Runtime{}, run, p.Pin).Labels {
				if errs := validation.IsValidLabelValue(v); len(errs) > 0 {
					t.Errorf("label %s=%q: %v", k, v, errs)
				}
			}
		})
	}
}

func TestResources(t *testing.T) {
	list := func(cpu, mem string) corev1.ResourceList {
		out := corev1.ResourceList{}
		if cpu != "" {
			out[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		if mem != "" {
			out[corev1.ResourceMemory] = resource.MustParse(mem)
		}
		return out
	}
	tests := map[string]struct {
		asked                    *v1alpha1.PodResources
		wantRequests, wantLimits corev1.ResourceList
	}{
		"none":             {wantRequests: list("50m", "64Mi"), wantLimits: list("", "97Mi")},
		"a limit":          {asked: &v1alpha1.PodResources{Limits: list("", "256Mi")}, wantRequests: list("50m", "64Mi"), wantLimits: list("", "256Mi")},
		"small limits":     {asked: &v1alpha1.PodResources{Limits: list("10m", "32Mi")}, wantRequests: list("10m", "32Mi"), wantLimits: list("10m", "32Mi")},
		"a large request":  {asked: &v1alpha1.PodResources{Requests: list("2", "1Gi")}, wantRequests: list("2", "1Gi"), wantLimits: list("", "1Gi")},
		"all of it":        {asked: &v1alpha1.PodResources{Requests: list("1", "1Gi"), Limits: list("2", "2Gi")}, wantRequests: list("1", "1Gi"), wantLimits: list("2", "2Gi")},
		"requests of zero": {asked: &v1alpha1.PodResources{Requests: list("0", "0")}, wantRequests: list("0", "0"), wantLimits: list("", "97Mi")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := builders.MakeRun("r").Code(echo)
			if tc.asked != nil {
				b.Resources(*tc.asked)
			}
			run := b.Obj()
			p := agentrun.Decide(settings.Default(), agentrun.Snapshot{Now: now, Run: run})
			got := agentrun.NewPod(settings.Runtime{}, run, p.Pin).Spec.Containers[0].Resources
			for what, x := range map[string][2]corev1.ResourceList{"requests": {tc.wantRequests, got.Requests}, "limits": {tc.wantLimits, got.Limits}} {
				if d := cmp.Diff(x[0], x[1], cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })); d != "" {
					t.Errorf("%s: %s", what, d)
				}
			}
		})
	}
}
