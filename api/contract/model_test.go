package contract

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestEligibleModel(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	all := func(string, map[string]string) bool { return true }
	gpt := func(edit func(*Grant)) Grant {
		g := Grant{
			Namespace: "a", Name: "gpt", UID: "1", Ready: true, Tool: Tool{Name: "gpt-5", Kind: KindModel},
			Backend: Backend{Model: &ModelBackend{URL: "https://models.example", Model: "m"}},
		}
		if edit != nil {
			edit(&g)
		}
		return g
	}
	tests := map[string]struct {
		grants      []Grant
		wantFrom    string // namespace of the grant that is found
		wantRule    Rule
		wantMessage string
	}{
		"its own":             {grants: []Grant{gpt(nil)}, wantFrom: "a"},
		"one that is offered": {grants: []Grant{gpt(func(g *Grant) { g.Namespace, g.Authority.AllowsNamespace = "b", all })}, wantFrom: "b"},
		"none":                {wantRule: RuleGrant, wantMessage: `there is no ToolGrant "gpt"`},
		"another name":        {grants: []Grant{gpt(func(g *Grant) { g.Name, g.Tool.Name = "x", "gpt" })}, wantRule: RuleGrant, wantMessage: "there is no ToolGrant"},
		"one that is not":     {grants: []Grant{gpt(func(g *Grant) { g.Namespace = "b" })}, wantRule: RuleGrant, wantMessage: "there is no ToolGrant"},
		"not Ready":           {grants: []Grant{gpt(func(g *Grant) { g.Ready = false })}, wantRule: RuleGrant, wantMessage: "not Ready"},
		"expired":             {grants: []Grant{gpt(func(g *Grant) { g.Authority.NotAfter = now.Add(-1) })}, wantRule: RuleGrant, wantMessage: "expired"},
		"for recipes":         {grants: []Grant{gpt(func(g *Grant) { g.Authority.Recipes = []string{"r"} })}, wantRule: RuleGrant, wantMessage: "only for the recipes r"},
		"for other labels":    {grants: []Grant{gpt(func(g *Grant) { g.Authority.Selects = func(map[string]string) bool { return false } })}, wantRule: RuleGrant, wantMessage: "does not select"},
		"here and from afar":  {grants: []Grant{gpt(func(g *Grant) { g.Namespace, g.Authority.AllowsNamespace = "b", all }), gpt(nil)}, wantRule: RuleGrant, wantMessage: "ambiguous: ToolGrants b/gpt and gpt"},
		"a function":          {grants: []Grant{gpt(func(g *Grant) { g.Tool.Kind, g.Backend.Model = "", nil })}, wantRule: RuleKind, wantMessage: "a tool of kind Function"},
		"a model over HTTP":   {grants: []Grant{gpt(func(g *Grant) { g.Backend = Backend{HTTP: &HTTPBackend{}} })}, wantRule: RuleKind, wantMessage: "spec.backend.model"},
		"an ungranted one":    {grants: []Grant{gpt(func(g *Grant) { g.Tool.Capabilities = []string{CapabilityAuth} })}, wantRule: RuleCapabilities, wantMessage: `"auth"`},
		"a granted one": {grants: []Grant{gpt(func(g *Grant) {
			g.Tool.Capabilities, g.Authority.Capabilities = []string{CapabilityAuth}, []string{CapabilityAuth}
		})}, wantFrom: "a"},
		"not Ready beside Ready": {grants: []Grant{gpt(func(g *Grant) { g.Ready = false }), gpt(func(g *Grant) { g.Namespace, g.Authority.AllowsNamespace = "b", all })}, wantFrom: "b"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g, refused := EligibleModel(Subject{Namespace: "a", Now: now}, tc.grants, "gpt")
			if tc.wantRule == "" {
				if refused != nil || g.Namespace != tc.wantFrom {
					t.Errorf("grant of %q, refused %+v", g.Namespace, refused)
				}
				return
			}
			if refused == nil || refused.Name != "gpt" || refused.Rule != tc.wantRule || !strings.Contains(refused.Message, tc.wantMessage) {
				t.Errorf("refused %+v, want %s %q", refused, tc.wantRule, tc.wantMessage)
			}
		})
	}
}

func TestCheckBackendOfModel(t *testing.T) {
	tests := map[string]struct {
		url, schema string
		ca          *CABundle
		want        string
	}{
		"https":                    {url: "https://models.example/v1"},
		"http":                     {url: "http://models.svc:8000/v1"},
		"certificates over https":  {url: "https://models.example/v1", ca: &CABundle{ConfigMap: "c", Key: "k"}},
		"certificates over http":   {url: "http://models.example/v1", ca: &CABundle{ConfigMap: "c", Key: "k"}, want: "spec.backend.model.caBundle"},
		"arguments in the address": {url: "https://models.example/{x}", want: "spec.backend.model.url"},
		"another scheme":           {url: "ftp://models.example", want: "spec.backend.model.url"},
		"a schema":                 {url: "https://models.example", schema: `{}`, want: "drop inputSchema and outputSchema"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := CheckBackend(Tool{Name: "m", Kind: KindModel, InputSchema: json.RawMessage(tc.schema)},
				Backend{Model: &ModelBackend{URL: tc.url, Model: "m"}, CA: tc.ca})
			f, _ := AsFault(err)
			if (err != nil) != (tc.want != "") || err != nil && (f == nil || f.Reason != ReasonBackendInvalid || !strings.Contains(f.Message, tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestBundleOfAgent(t *testing.T) {
	tests := map[string]struct {
		edit func(*Bundle)
		want string
	}{
		"without a program": {},
		"with a program":    {edit: func(b *Bundle) { b.Source = "x" }, want: "a program beside it"},
		"with a recipe":     {edit: func(b *Bundle) { b.Recipe = &PinnedRecipe{} }, want: "a program beside it"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := Bundle{Agent: &PinnedAgent{Prompt: "p"}, Tools: []PinnedTool{}}
			if tc.edit != nil {
				tc.edit(&b)
			}
			b.SourceDigest = Digest([]byte(b.Source))
			raw, digest, err := b.Encode()
			if err != nil {
				t.Fatal(err)
			}
			got, err := DecodeBundle(raw, digest)
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want %q", err, tc.want)
			}
			if err == nil && got.Agent.Prompt != "p" {
				t.Errorf("agent %+v", got.Agent)
			}
		})
	}
}
