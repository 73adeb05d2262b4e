package recipe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/recipe"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/controllers/status"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const source = "function main(input) {\n  return tools.call('search', input);\n}\n"

// want is what one case expects of the conditions; an empty part is True.
type want struct {
	verb                          recipe.Verb
	reason                        contract.Reason
	message                       string
	source, schema, toolsResolved contract.Reason
}

type test struct {
	recipe  *builders.Recipe
	recipes []*builders.Recipe
	grants  []*builders.Grant
	maps    map[string]*corev1.ConfigMap
	want    want
}

func search() *builders.Grant { return builders.MakeGrant("search", "search").Ready("", "") }

func labels(k, v string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{k: v}}
}

func sweep() *builders.Recipe { return builders.MakeRecipe("sweep", source, "search").Created(now) }

func TestDecideSource(t *testing.T) {
	bad := func(src string) *builders.Recipe { return builders.MakeRecipe("sweep", src) }
	run(t, map[string]test{
		"a sound recipe is Ready": {
			recipe: sweep(), grants: []*builders.Grant{search()}, want: want{verb: recipe.VerbAccept},
		},
		"its digest holds": {
			recipe: sweep().SourceDigest(contract.Digest([]byte(source))), grants: []*builders.Grant{search()},
			want: want{verb: recipe.VerbAccept},
		},
		"another digest": {
			recipe: sweep().SourceDigest(contract.Digest([]byte("x"))), grants: []*builders.Grant{search()},
			want: want{verb: recipe.VerbRefuse, reason: contract.ReasonDigestMismatch, message: "not spec.sourceDigest", source: contract.ReasonDigestMismatch},
		},
		"a syntax error has line and column": {
			recipe: bad("function main(input) {\n  return input +;\n}\n"),
			want:   want{verb: recipe.VerbRefuse, reason: contract.ReasonSyntaxError, message: "main.js:2:", source: contract.ReasonSyntaxError},
		},
		"a forbidden construct has line and column": {
			recipe: bad("async function main(input) {\n  return input;\n}\n"),
			want:   want{verb: recipe.VerbRefuse, reason: contract.ReasonProhibited, message: "main.js:1:", source: contract.ReasonProhibited},
		},
		"no main": {
			recipe: bad("const main = (input) => input;"),
			want:   want{verb: recipe.VerbRefuse, reason: contract.ReasonJavaScriptError, message: "function main(input)", source: contract.ReasonJavaScriptError},
		},
		"a source of more than its own limit": {
			recipe: sweep().Limits(contract.Limits{SourceBytes: 10}), grants: []*builders.Grant{search()},
			want: want{verb: recipe.VerbRefuse, reason: contract.ReasonSourceTooLarge, message: "10", source: contract.ReasonSourceTooLarge},
		},
		"a limit above the operator's": {
			recipe: sweep().Limits(contract.Limits{HeapBytes: 64 << 20}), grants: []*builders.Grant{search()},
			want: want{verb: recipe.VerbRefuse, reason: contract.ReasonLimitsTooHigh, message: "heapBytes"},
		},
		"a literal call of an undeclared tool is only a warning": {
			recipe: builders.MakeRecipe("sweep", source), want: want{verb: recipe.VerbAccept},
		},
	})
}

func TestDecideSchema(t *testing.T) {
	grants := []*builders.Grant{search()}
	run(t, map[string]test{
		"sound schemas": {
			recipe: sweep().InputSchema(`{"type":"object","properties":{"q":{"type":"string"}}}`).OutputSchema(`true`),
			grants: grants, want: want{verb: recipe.VerbAccept},
		},
		"an input schema that is no schema": {
			recipe: sweep().InputSchema(`{"type":"objekt"}`), grants: grants,
			want: want{verb: recipe.VerbRefuse, reason: contract.ReasonSchemaInvalid, message: "spec.inputSchema", schema: contract.ReasonSchemaInvalid},
		},
		"an output schema with an external reference": {
			recipe: sweep().OutputSchema(`{"$ref":"https://schemas.example/out.json"}`), grants: grants,
			want: want{verb: recipe.VerbRefuse, reason: contract.ReasonSchemaInvalid, message: "external reference", schema: contract.ReasonSchemaInvalid},
		},
	})
}

func TestDecideNames(t *testing.T) {
	plain := func(name string) *builders.Recipe {
		return builders.MakeRecipe(name, "function main(x) { return x }").Created(now)
	}
	refuse := func(r contract.Reason, msg string) want {
		return want{verb: recipe.VerbRefuse, reason: r, message: msg}
	}
	run(t, map[string]test{
		"a reserved name": {recipe: plain("run_code"), want: refuse(contract.ReasonReservedName, "run_code")},
		"a reserved toolName": {
			recipe: plain("sweep").ToolName("delegate"), want: refuse(contract.ReasonReservedName, "delegate"),
		},
		"an older recipe has the name": {
			recipe: plain("sweep"), recipes: []*builders.Recipe{plain("zap").ToolName("sweep").Created(now.Add(-time.Second))},
			want: refuse(contract.ReasonNameConflict, "Recipe zap"),
		},
		"a younger one has not": {
			recipe: plain("sweep"), recipes: []*builders.Recipe{plain("a").ToolName("sweep").Created(now.Add(time.Second))},
			want: want{verb: recipe.VerbAccept},
		},
		"of two of the same second the first name has it": {
			recipe: plain("sweep"), recipes: []*builders.Recipe{plain("a").ToolName("sweep")},
			want: refuse(contract.ReasonNameConflict, "Recipe a"),
		},
		"a grant has the name": {
			recipe: plain("search"), grants: []*builders.Grant{search()},
			want: refuse(contract.ReasonNameConflict, "ToolGrant search"),
		},
		"itself among its tools": {
			recipe: builders.MakeRecipe("sweep", source, "sweep"),
			want:   want{verb: recipe.VerbRefuse, reason: contract.ReasonRecursive, message: "itself", toolsResolved: contract.ReasonToolsNotGranted},
		},
		"another recipe among its tools": {
			recipe: sweep(), recipes: []*builders.Recipe{plain("other").ToolName("search")},
			want: want{verb: recipe.VerbWait, reason: contract.ReasonToolsNotGranted, message: "it is Recipe other, and code never calls a recipe", toolsResolved: contract.ReasonToolsNotGranted},
		},
		"a tool that a recipe is called like is denied to code, whoever was first": {
			recipe: sweep(), recipes: []*builders.Recipe{plain("other").ToolName("search")}, grants: []*builders.Grant{search()},
			want: want{verb: recipe.VerbWait, reason: contract.ReasonToolsNotGranted,
				message: "search (HardDeny: Recipe other is called the same", toolsResolved: contract.ReasonToolsNotGranted},
		},
		"a recipe of another namespace denies nothing": {
			recipe: sweep(), recipes: []*builders.Recipe{plain("search").In("team-b")}, grants: []*builders.Grant{search()},
			want: want{verb: recipe.VerbAccept},
		},
		"a grant of another namespace takes no name away": {
			recipe: plain("search"), grants: []*builders.Grant{search().In("team-b").Allowed()}, want: want{verb: recipe.VerbAccept},
		},
		"namesakes of another namespace are another matter": {
			recipe: plain("sweep"), recipes: []*builders.Recipe{plain("zap").In("team-b").ToolName("sweep").Created(now.Add(-time.Hour))},
			grants: []*builders.Grant{builders.MakeGrant("g", "sweep").In("team-b")}, want: want{verb: recipe.VerbAccept},
		},
	})
}

func TestDecideTools(t *testing.T) {
	wait := func(msg string) want {
		return want{verb: recipe.VerbWait, reason: contract.ReasonToolsNotGranted, message: msg, toolsResolved: contract.ReasonToolsNotGranted}
	}
	run(t, map[string]test{
		"no grant yet":              {recipe: sweep(), want: wait("no ToolGrant")},
		"a grant that is not Ready": {recipe: sweep(), grants: []*builders.Grant{builders.MakeGrant("search", "search")}, want: wait("not Ready")},
		"a grant that has expired": {
			recipe: sweep(), grants: []*builders.Grant{search().NotAfter(now.Add(-time.Second))}, want: wait("expired"),
		},
		"a grant for other recipes": {
			recipe: sweep(), grants: []*builders.Grant{search().Recipes("tidy")}, want: wait("only for the recipes tidy"),
		},
		"a grant for this recipe": {
			recipe: sweep(), grants: []*builders.Grant{search().Recipes("tidy", "sweep")}, want: want{verb: recipe.VerbAccept},
		},
		"a grant for some runs is one": {
			recipe: sweep(), grants: []*builders.Grant{search().Selector(metav1.LabelSelector{MatchLabels: map[string]string{"tier": "batch"}})},
			want: want{verb: recipe.VerbAccept},
		},
		"a tool of another kind": {
			recipe: sweep(), grants: []*builders.Grant{search().Kind(contract.KindProxy)}, want: wait("kind Proxy"),
		},
		"a grant that needs approvals": {
			recipe: sweep(), grants: []*builders.Grant{search().Approval(contract.ApprovalRequired)}, want: wait("search (Approval: "),
		},
		"a grant of another namespace": {
			recipe: sweep(), grants: []*builders.Grant{search().In("team-b")}, want: wait("no ToolGrant of this namespace"),
		},
		"a grant that another namespace offers": {
			recipe: sweep(), grants: []*builders.Grant{search().In("team-b").Allowed()}, want: want{verb: recipe.VerbAccept},
		},
		"a grant that is offered to other namespaces": {
			recipe: sweep(), grants: []*builders.Grant{search().In("team-b").AllowedBy(labels("env", "prod"))}, want: wait("no ToolGrant of this namespace"),
		},
		"a grant that is offered to this namespace": {
			recipe: sweep(), grants: []*builders.Grant{search().In("team-b").AllowedBy(labels("env", "dev"))}, want: want{verb: recipe.VerbAccept},
		},
		"an offered grant that is not Ready": {
			recipe: sweep(), grants: []*builders.Grant{builders.MakeGrant("search", "search").In("team-b").Allowed()},
			want: wait("ToolGrant team-b/search is not Ready"),
		},
		"a grant here, and one that is offered": {
			recipe: sweep(), grants: []*builders.Grant{search(), search().In("team-b").Allowed()},
			want: wait("ambiguous: ToolGrants search and team-b/search"),
		},
		"a capability that is not granted": {
			recipe: sweep(), grants: []*builders.Grant{search().Capabilities([]string{contract.CapabilityRunLabels}, nil)},
			want: wait("run.labels"),
		},
	})
}

func run(t *testing.T, tests map[string]test) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := recipe.Snapshot{Now: now, Recipe: tc.recipe.Obj(), NamespaceLabels: map[string]string{"env": "dev"}, ConfigMaps: tc.maps}
			for _, o := range append(tc.recipes, tc.recipe) {
				s.Recipes = append(s.Recipes, *o.Obj())
			}
			for _, g := range tc.grants {
				s.Grants = append(s.Grants, *g.Obj())
			}
			p := recipe.Decide(settings.Default(), s)
			r := s.Recipe.DeepCopy()
			r.Status = recipe.Settle(s, p)
			if p.Verb != tc.want.verb {
				t.Errorf("verb %q, want %q (%v)", p.Verb, tc.want.verb, p.Fault)
			}
			c := check(t, r, v1alpha1.ConditionReady, tc.want.reason)
			if !strings.Contains(c.Message, tc.want.message) {
				t.Errorf("message %q, want %q in it", c.Message, tc.want.message)
			}
			check(t, r, v1alpha1.ConditionSourceVerified, tc.want.source)
			check(t, r, v1alpha1.ConditionSchemaValid, tc.want.schema)
			check(t, r, v1alpha1.ConditionToolsResolved, tc.want.toolsResolved)
			if err := status.CheckKstatus(r.Generation, r.Status.ObservedGeneration, r.Status.Conditions, v1alpha1.ConditionReady); err != nil {
				t.Error(err)
			}
			s.Recipe = r
			if d := cmp.Diff(r.Status, recipe.Settle(s, recipe.Decide(settings.Default(), s))); d != "" {
				t.Errorf("a second look changes the status: %s", d)
			}
		})
	}
}

func check(t *testing.T, r *v1alpha1.Recipe, kind string, bad contract.Reason) metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(r.Status.Conditions, kind)
	if c == nil {
		t.Fatalf("no condition %s", kind)
	}
	if (c.Status == metav1.ConditionTrue) != (bad == "") || (bad != "" && c.Reason != string(bad)) {
		t.Errorf("%s is %s %s (%s), want %q", kind, c.Status, c.Reason, c.Message, bad)
	}
	return *c
}

func TestSettle(t *testing.T) {
	s := recipe.Snapshot{Now: now, Recipe: builders.MakeRecipe("sweep", source).Obj()}
	st := recipe.Settle(s, recipe.Decide(settings.Default(), s))
	if c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionSourceVerified); !strings.Contains(c.Message, `"search"`) {
		t.Errorf("the undeclared tool is not in %q", c.Message)
	}
	if st.ToolName != "sweep" || st.SourceDigest != contract.Digest([]byte(source)) {
		t.Errorf("tool name %q and source digest %q", st.ToolName, st.SourceDigest)
	}
	if st.InputSchemaDigest != contract.Digest([]byte(v1alpha1.DefaultInputSchema)) || !contract.ValidDigest(st.ManifestDigest) {
		t.Errorf("schema digest %q and manifest digest %q", st.InputSchemaDigest, st.ManifestDigest)
	}
	s = recipe.Snapshot{Now: now, Recipe: sweep().Obj(), Grants: []v1alpha1.ToolGrant{*search().Obj()}}
	st = recipe.Settle(s, recipe.Decide(settings.Default(), s))
	if d := cmp.Diff([]v1alpha1.RecipeTool{{Name: "search", Usable: true, Grant: "search"}}, st.Tools); d != "" {
		t.Error(d)
	}
}
