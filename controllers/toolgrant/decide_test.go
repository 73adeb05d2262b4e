package toolgrant_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/status"
	"github.com/codeact-dev/codeact-operator/controllers/toolgrant"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestDecide(t *testing.T) {
	grant := func() *builders.Grant { return builders.MakeGrant("search", "search").Created(now) }
	tests := map[string]struct {
		grant       *builders.Grant
		others      []*builders.Grant
		wantReason  contract.Reason // empty: accepted
		wantMessage string
		wantSchema  metav1.ConditionStatus
		wantRequeue time.Duration
	}{
		"a plain grant is Ready": {
			grant: grant().Schemas(`{"type":"object"}`, `{"type":"array"}`), wantSchema: metav1.ConditionTrue,
			wantMessage: "runs may be pinned with this grant",
		},
		"a sound grant that gives code nothing says so": {
			grant: grant().Approval(contract.ApprovalRequired), wantSchema: metav1.ConditionTrue, wantMessage: "no run may call its tool from code (rule Approval)",
		},
		"a capability that is asked for and not given": {
			grant: grant().Capabilities([]string{contract.CapabilityRunIdentity}, nil), wantSchema: metav1.ConditionTrue,
			wantMessage: `(rule Capabilities): it asks for the capability "run.identity"`,
		},
		"a schema that is no schema": {
			grant: grant().Schemas(`{"type":7}`, ""), wantReason: contract.ReasonSchemaInvalid,
			wantMessage: "spec.tool.inputSchema", wantSchema: metav1.ConditionFalse,
		},
		"an output schema that refers outside itself": {
			grant: grant().Schemas("", `{"$ref":"http://schemas.example/x.json"}`), wantReason: contract.ReasonSchemaInvalid,
			wantMessage: "external reference", wantSchema: metav1.ConditionFalse,
		},
		"a schema that refers to a file": {
			grant: grant().Schemas(`{"$ref":"file:///etc/passwd"}`, ""), wantReason: contract.ReasonSchemaInvalid,
			wantMessage: "external reference", wantSchema: metav1.ConditionFalse,
		},
		"a schema that is larger than allowed": {
			grant:      grant().Schemas(`{"description":"`+strings.Repeat("x", contract.MaxSchemaBytes)+`"}`, ""),
			wantReason: contract.ReasonSchemaInvalid, wantMessage: "more than", wantSchema: metav1.ConditionFalse,
		},
		"a selector that cannot be read": {
			grant: grant().Selector(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "tier", Operator: "Near"}}}),
			wantReason: contract.ReasonSchemaInvalid, wantMessage: "spec.grant.runSelector", wantSchema: metav1.ConditionTrue,
		},
		"a grant that ends later is looked at again just after": {
			grant: grant().NotAfter(now.Add(time.Hour)), wantSchema: metav1.ConditionTrue, wantRequeue: time.Hour + time.Millisecond,
		},
		"a grant that ends in a far future is looked at again before": {
			grant: grant().NotAfter(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)), wantSchema: metav1.ConditionTrue, wantRequeue: 365*24*time.Hour + time.Millisecond,
		},
		"a grant holds until its last moment": {
			grant: grant().NotAfter(now), wantSchema: metav1.ConditionTrue, wantRequeue: time.Millisecond,
		},
		"a grant that has ended": {
			grant: grant().NotAfter(now.Add(-time.Second)), wantReason: contract.ReasonExpired,
			wantMessage: "2026-03-01T11:59:59Z", wantSchema: metav1.ConditionTrue,
		},
		"a selector of namespaces that cannot be read": {
			grant:      grant().AllowedBy(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}),
			wantReason: contract.ReasonSchemaInvalid, wantMessage: "spec.allowedNamespaces.selector", wantSchema: metav1.ConditionTrue,
		},
		"offered to every namespace":       {grant: grant().Allowed(), wantSchema: metav1.ConditionTrue},
		"for which calls must be approved": {grant: grant().Approval(contract.ApprovalRequired), wantSchema: metav1.ConditionTrue},
		"an older grant of the same tool has the name": {
			grant: grant(), others: []*builders.Grant{builders.MakeGrant("z", "search").Created(now.Add(-time.Second))},
			wantReason: contract.ReasonNameConflict, wantMessage: "ToolGrant z", wantSchema: metav1.ConditionTrue,
		},
		"a younger one has not": {
			grant: grant(), others: []*builders.Grant{builders.MakeGrant("a", "search").Created(now.Add(time.Second))},
			wantSchema: metav1.ConditionTrue,
		},
		"of two of the same second the first name has it": {
			grant: grant(), others: []*builders.Grant{builders.MakeGrant("a", "search").Created(now)},
			wantReason: contract.ReasonNameConflict, wantMessage: "ToolGrant a", wantSchema: metav1.ConditionTrue,
		},
		"the one with the first name sees the other and stays": {
			grant: grant(), others: []*builders.Grant{builders.MakeGrant("z", "search").Created(now)}, wantSchema: metav1.ConditionTrue,
		},
		"an older grant that has expired holds no name": {
			grant:      grant(),
			others:     []*builders.Grant{builders.MakeGrant("a", "search").Created(now.Add(-time.Hour)).NotAfter(now.Add(-time.Minute))},
			wantSchema: metav1.ConditionTrue,
		},
		"another tool is another matter": {
			grant: grant(), others: []*builders.Grant{builders.MakeGrant("a", "Search").Created(now.Add(-time.Hour))}, wantSchema: metav1.ConditionTrue,
		},
		"another namespace is another matter": {
			grant: grant(), others: []*builders.Grant{builders.MakeGrant("a", "search").In("team-b").Created(now.Add(-time.Hour))},
			wantSchema: metav1.ConditionTrue,
		},
		"itself in the list is no conflict": {grant: grant(), others: []*builders.Grant{grant()}, wantSchema: metav1.ConditionTrue},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := toolgrant.Snapshot{Now: now, Grant: tc.grant.Obj()}
			for _, o := range tc.others {
				s.Others = append(s.Others, *o.Obj())
			}
			p := toolgrant.Decide(s)
			g := s.Grant.DeepCopy()
			g.Status = toolgrant.Settle(s, p)

			wantReady := metav1.ConditionTrue
			wantVerb := toolgrant.VerbAccept
			if tc.wantReason != "" {
				wantReady, wantVerb = metav1.ConditionFalse, toolgrant.VerbRefuse
			}
			if p.Verb != wantVerb {
				t.Errorf("verb %q, want %q (%v)", p.Verb, wantVerb, p.Fault)
			}
			c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
			if c == nil || c.Status != wantReady || (tc.wantReason != "" && c.Reason != string(tc.wantReason)) {
				t.Fatalf("Ready is %+v, want %s %s", c, wantReady, tc.wantReason)
			}
			if !strings.Contains(c.Message, tc.wantMessage) {
				t.Errorf("message %q, want %q in it", c.Message, tc.wantMessage)
			}
			if s := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionSchemaValid); s == nil || s.Status != tc.wantSchema {
				t.Errorf("SchemaValid is %+v, want %s", s, tc.wantSchema)
			}
			if p.RequeueAfter != tc.wantRequeue {
				t.Errorf("requeue after %s, want %s", p.RequeueAfter, tc.wantRequeue)
			}
			if err := status.CheckKstatus(g.Generation, g.Status.ObservedGeneration, g.Status.Conditions, v1alpha1.ConditionReady); err != nil {
				t.Error(err)
			}
			if g.Status.DeclarationDigest == "" {
				t.Error("no declaration digest")
			}
			// A second look finds nothing to write.
			s.Grant = g
			if d := cmp.Diff(g.Status, toolgrant.Settle(s, toolgrant.Decide(s))); d != "" {
				t.Errorf("a second look changes the status: %s", d)
			}
		})
	}
}

// TestDecideIsOrderFree holds that who wins a name does not depend on the order
// in which the others are seen.
func TestDecideIsOrderFree(t *testing.T) {
	var all []v1alpha1.ToolGrant
	for i, n := range []string{"c", "a", "b"} {
		all = append(all, *builders.MakeGrant(n, "x").Created(now.Add(time.Duration(i/2) * time.Second)).Obj())
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		var winners []string
		for i := range all {
			s := toolgrant.Snapshot{Now: now, Grant: &all[i]}
			for _, j := range order {
				s.Others = append(s.Others, all[j])
			}
			if toolgrant.Decide(s).Verb == toolgrant.VerbAccept {
				winners = append(winners, all[i].Name)
			}
		}
		if d := cmp.Diff([]string{"a"}, winners); d != "" {
			t.Errorf("order %v: %s", order, d)
		}
	}
}
