package v1alpha1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// TestContract holds that the pin gets every word of a grant.
func TestContract(t *testing.T) {
	grant := func() *builders.Grant { return builders.MakeGrant("g", "search") }
	plain := func(edit func(*contract.Grant)) contract.Grant {
		g := contract.Grant{
			Namespace: builders.Namespace, Name: "g", UID: "uid-of-g", Generation: 1,
			Tool:      contract.Tool{Name: "search"}.Defaulted(),
			Backend:   contract.Backend{HTTP: &contract.HTTPBackend{URL: "http://tools.example/search"}},
			Auth:      contract.Auth{Type: contract.AuthNone},
			Authority: contract.Authority{Timeout: contract.DefaultCallTimeout},
		}
		if edit != nil {
			edit(&g)
		}
		return g
	}
	tests := map[string]struct {
		grant *builders.Grant
		want  func(*contract.Grant)
	}{
		"nothing said": {grant: grant()},
		"HTTP, all of it": {
			grant: grant().CA("roots", "ca.crt").HTTP(func(h *v1alpha1.HTTPBackend) {
				h.URL, h.Method, h.Response = "https://tools.example/{q}", "GET", contract.ResponseText
				h.Headers = []v1alpha1.HTTPHeader{{Name: "A", Value: "b"}}
			}),
			want: func(g *contract.Grant) {
				g.Backend = contract.Backend{
					HTTP: &contract.HTTPBackend{
						URL: "https://tools.example/{q}", Method: "GET", Response: contract.ResponseText,
						Headers: []contract.HTTPHeader{{Name: "A", Value: "b"}},
					},
					CA: &contract.CABundle{ConfigMap: "roots", Key: "ca.crt"},
				}
			},
		},
		"a model, as little as may be said": {
			grant: grant().Model("https://models.example/v1", "m"),
			want: func(g *contract.Grant) {
				g.Tool.Kind, g.Authority.Timeout = contract.KindModel, 2*time.Minute
				g.Backend = contract.Backend{Model: &contract.ModelBackend{URL: "https://models.example/v1", Model: "m", API: contract.ModelAPIChat}}
			},
		},
		"a model, all of it": {
			grant: grant().Model("https://models.example/v1", "m").API(contract.ModelAPIResponses).CA("roots", "ca.crt").MaxTokens(7).
				Effect(contract.EffectEffectful).Retry(3, time.Second).Timeout(time.Minute).Allowed(),
			want: func(g *contract.Grant) {
				g.Tool.Kind = contract.KindModel
				g.Backend = contract.Backend{
					Model: &contract.ModelBackend{URL: "https://models.example/v1", Model: "m", API: contract.ModelAPIResponses},
					CA:    &contract.CABundle{ConfigMap: "roots", Key: "ca.crt"},
				}
				g.Authority = contract.Authority{
					Timeout: time.Minute, MaxTokensPerRun: 7, Retry: &contract.Retry{Attempts: 3, BackoffMs: 1000},
				}
			},
		},
		"MCP, by the tool's own name": {
			grant: grant().MCP("http://mcp.example", ""),
			want: func(g *contract.Grant) {
				g.Backend = contract.Backend{MCP: &contract.MCPBackend{URL: "http://mcp.example", Tool: "search"}}
			},
		},
		"MCP, by another name": {
			grant: grant().MCP("https://mcp.example", "web.search").CA("roots", "ca.crt"),
			want: func(g *contract.Grant) {
				g.Backend = contract.Backend{
					MCP: &contract.MCPBackend{URL: "https://mcp.example", Tool: "web.search"},
					CA:  &contract.CABundle{ConfigMap: "roots", Key: "ca.crt"},
				}
			},
		},
		"authority": {
			grant: grant().Effect(contract.EffectIdempotent).Approval(contract.ApprovalRequired).Recipes("sweep").MaxCalls(3).
				Timeout(time.Second).NotAfter(time.Unix(9, 0)).Retry(4, time.Second).Constraint("true", "no").ResultConstraint("result", ""),
			want: func(g *contract.Grant) {
				g.Tool.Effect = contract.EffectIdempotent
				g.Authority = contract.Authority{
					Approval: contract.ApprovalRequired, Recipes: []string{"sweep"}, MaxCallsPerRun: 3,
					Timeout: time.Second, NotAfter: time.Unix(9, 0), Retry: &contract.Retry{Attempts: 4, BackoffMs: 1000},
					Constraints:       []contract.Constraint{{Expression: "true", Message: "no"}},
					ResultConstraints: []contract.Constraint{{Expression: "result"}},
				}
			},
		},
		"a retry without a backoff": {
			grant: grant().Effect(contract.EffectReadOnly).Retry(2, 0),
			want: func(g *contract.Grant) {
				g.Tool.Effect, g.Authority.Retry = contract.EffectReadOnly, &contract.Retry{Attempts: 2, BackoffMs: 200}
			},
		},
		"a retry of what may have an effect is none": {grant: grant().Retry(2, 0)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := tc.grant.Obj().Contract()
			if got.Authority.AllowsNamespace != nil {
				t.Error("the grant is offered to other namespaces")
			}
			if d := cmp.Diff(plain(tc.want), got); d != "" {
				t.Errorf("grant (-want +got):\n%s", d)
			}
		})
	}
}

func TestOffered(t *testing.T) {
	dev := map[string]string{"env": "dev"}
	some := metav1.LabelSelector{MatchLabels: dev}
	unread := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
	grant := func() *builders.Grant { return builders.MakeGrant("g", "search") }
	same := grant().Obj()
	same.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesSame}
	tests := map[string]struct {
		grant                              *v1alpha1.ToolGrant
		wantOffered, wantDev, wantUnmarked bool
	}{
		"nothing said":                 {grant: grant().Obj()},
		"Same":                         {grant: same},
		"All":                          {grant: grant().Allowed().Obj(), wantOffered: true, wantDev: true, wantUnmarked: true},
		"All, with a token":            {grant: grant().Token("a").Allowed().Obj(), wantOffered: true, wantDev: true, wantUnmarked: true},
		"Selector":                     {grant: grant().AllowedBy(some).Obj(), wantOffered: true, wantDev: true},
		"a selector of nothing is all": {grant: grant().AllowedBy(metav1.LabelSelector{}).Obj(), wantOffered: true, wantDev: true, wantUnmarked: true},
		"a selector that is not read":  {grant: grant().AllowedBy(unread).Obj(), wantOffered: true},
		// The API server refuses the next two.
		"All, with a Secret":       {grant: grant().Secret("s", "k").Allowed().Obj()},
		"All, with a certificate":  {grant: grant().CA("roots", "ca.crt").Allowed().Obj()},
		"All, MCP and certificate": {grant: grant().MCP("https://mcp.example", "").CA("roots", "ca.crt").Allowed().Obj()},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.grant.Offered(); got != tc.wantOffered {
				t.Fatalf("offered %t, want %t", got, tc.wantOffered)
			}
			allows := tc.grant.Contract().Authority.AllowsNamespace
			if !tc.wantOffered {
				if allows != nil {
					t.Error("the pin would see an offer")
				}
				return
			}
			if got := allows("team-b", dev); got != tc.wantDev {
				t.Errorf("a namespace of developers: %t, want %t", got, tc.wantDev)
			}
			if got := allows("team-b", nil); got != tc.wantUnmarked {
				t.Errorf("a namespace without labels: %t, want %t", got, tc.wantUnmarked)
			}
		})
	}
}

func TestRecipeTools(t *testing.T) {
	var recipes []v1alpha1.Recipe
	for _, b := range []*builders.Recipe{
		builders.MakeRecipe("sweep", "x"), builders.MakeRecipe("z", "x").ToolName("tidy"), builders.MakeRecipe("b", "x").ToolName("tidy"),
		builders.MakeRecipe("other", "x").In("team-b"),
	} {
		recipes = append(recipes, *b.Obj())
	}
	want := map[string]string{"sweep": "sweep", "tidy": "b"}
	if d := cmp.Diff(want, v1alpha1.RecipeTools(builders.Namespace, recipes)); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
}
