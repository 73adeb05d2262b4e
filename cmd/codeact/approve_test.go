package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/test/builders"
)

// asAnn is a cluster with the runs, which takes the caller for ann.
func asAnn(t *testing.T, runs ...client.Object) client.Client {
	t.Helper()
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(runs...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if r, ok := o.(*authenticationv1.SelfSubjectReview); ok {
				r.Status.UserInfo.Username = "ann"
				return nil
			}
			return c.Create(ctx, o, opts...)
		},
	}).Build()
}

func waitingRun(name string, pending ...contract.Pending) *v1alpha1.AgentRun {
	run := builders.MakeRun(name).Obj()
	run.UID = types.UID("uid-of-" + name)
	run.Status.Pending = pending
	return run
}

var (
	payment = contract.Pending{ID: "1-1-aa", Kind: contract.PendingApproval, Tool: "pay", Grant: "payments", Effect: contract.EffectEffectful,
		Arguments: `{"to":"` + "\x1b" + `[2J"}`, ArgumentsDigest: contract.Digest(nil), Since: "2026-03-01T12:00:00Z"}
	counting = contract.Pending{ID: "1-2-bb", Kind: contract.PendingResult, Tool: "count", Arguments: `{"a`, ArgumentsCut: true, ArgumentsDigest: "sha256:00"}
)

func TestAnswerACall(t *testing.T) {
	seven := &apiextensionsv1.JSON{Raw: []byte(`7`)}
	tests := map[string]struct {
		pending  []contract.Pending
		had      []v1alpha1.Resolution
		r        v1alpha1.Resolution
		want     []v1alpha1.Resolution
		wantSaid string
		wantErr  string
	}{
		"the one that waits": {
			pending: []contract.Pending{payment}, r: v1alpha1.Resolution{Decision: "Approve"},
			want:     []v1alpha1.Resolution{{ID: "1-1-aa", Decision: "Approve", By: "ann"}},
			wantSaid: "approved by ann: 1-1-aa of run team-a/r, pay with {\"to\":\"\\u001b[2J\"}",
		},
		"behind another answer": {
			pending: []contract.Pending{payment, counting}, r: v1alpha1.Resolution{ID: "1-2-bb", Decision: "Approve", Result: seven},
			had:      []v1alpha1.Resolution{{ID: "1-0-zz", Decision: "Deny", By: "bob"}},
			want:     []v1alpha1.Resolution{{ID: "1-0-zz", Decision: "Deny", By: "bob"}, {ID: "1-2-bb", Decision: "Approve", By: "ann", Result: seven}},
			wantSaid: "count with {\"a… (cut; the digest of all is sha256:00)",
		},
		"a result that is refused": {
			pending: []contract.Pending{counting}, r: v1alpha1.Resolution{Decision: "Deny"},
			want: []v1alpha1.Resolution{{ID: "1-2-bb", Decision: "Deny", By: "ann"}}, wantSaid: "denied by ann",
		},
		"nothing waits":       {r: v1alpha1.Resolution{Decision: "Deny"}, wantErr: "no call of run team-a/r waits"},
		"several wait":        {pending: []contract.Pending{payment, counting}, r: v1alpha1.Resolution{Decision: "Deny"}, wantErr: "name one of 1-1-aa, 1-2-bb"},
		"another waits":       {pending: []contract.Pending{payment}, r: v1alpha1.Resolution{ID: "1-1-a", Decision: "Deny"}, wantErr: "what waits: 1-1-aa"},
		"approved w/o result": {pending: []contract.Pending{counting}, r: v1alpha1.Resolution{Decision: "Approve"}, wantErr: "give it with --result"},
		"approved w/ result":  {pending: []contract.Pending{payment}, r: v1alpha1.Resolution{Decision: "Approve", Result: seven}, wantErr: "leave out --result"},
		"answered before": {
			pending: []contract.Pending{payment}, r: v1alpha1.Resolution{ID: "1-1-aa", Decision: "Approve"},
			had:     []v1alpha1.Resolution{{ID: "1-1-aa", Decision: "Deny", By: "bob"}},
			wantErr: "1-1-aa has been answered by bob: Deny",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run := waitingRun("r", tc.pending...)
			run.Spec.Resolutions = tc.had
			api := asAnn(t, run)
			said, err := answer(t.Context(), api, client.ObjectKeyFromObject(run), tc.r)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got v1alpha1.AgentRun
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(run), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Spec.Resolutions); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if !strings.Contains(said, tc.wantSaid) {
				t.Errorf("said %q, want %q in it", said, tc.wantSaid)
			}
		})
	}
}

func TestPending(t *testing.T) {
	other := waitingRun("s", counting)
	other.Namespace = "team-b"
	api := asAnn(t, waitingRun("r", payment), waitingRun("idle"), other)
	tests := map[string]struct {
		ns, name string
		want     string // of each call
	}{
		"of a run":             {"team-a", "r", "team-a/r 1-1-aa"},
		"of a run that is not": {"team-a", "idle", ""},
		"of a namespace":       {"team-b", "", "team-b/s 1-2-bb"},
		"of all":               {"", "", "team-a/r 1-1-aa, team-b/s 1-2-bb"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			list, err := waiting(t.Context(), api, tc.ns, tc.name)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range list {
				got = append(got, c.Namespace+"/"+c.Run+" "+c.ID)
			}
			if s := strings.Join(got, ", "); s != tc.want {
				t.Errorf("%s, want %s", s, tc.want)
			}
		})
	}
	if _, err := waiting(t.Context(), api, "", "r"); err == nil {
		t.Error("a run without its namespace was found")
	}
	if _, err := waiting(t.Context(), api, "team-a", "absent"); err == nil {
		t.Error("a run that is not there was found")
	}
}

func TestPrintWaiting(t *testing.T) {
	list := []waitingCall{{"team-a", "r", payment}}
	var text, empty, raw bytes.Buffer
	if err := printWaiting(&text, "text", list); err != nil {
		t.Fatal(err)
	}
	const want = "team-a/r 1-1-aa\n" +
		"  Approval of pay (Effectful), by the grant payments, since 2026-03-01T12:00:00Z\n" +
		"  {\"to\":\"\\u001b[2J\"}\n"
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if err := printWaiting(&empty, "text", nil); err != nil || empty.String() != "Nothing waits.\n" {
		t.Errorf("text of nothing %q, error %v", empty.String(), err)
	}
	if err := printWaiting(&raw, "json", list); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(raw.Bytes(), &got); err != nil || len(got) != 1 || got[0]["id"] != "1-1-aa" || got[0]["run"] != "r" {
		t.Errorf("JSON %s, error %v", raw.String(), err)
	}
}

// TestAnswerNeedsACluster: what is wrong with the command line is said before a
// cluster is looked for, and then that there is none.
func TestAnswerNeedsACluster(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"no run":          {[]string{"approve"}, "accepts between 1 and 2 arg"},
		"no JSON":         {[]string{"approve", "r", "--result", "{"}, "not JSON"},
		"no file":         {[]string{"approve", "r", "--result", "@absent"}, "absent"},
		"deny a result":   {[]string{"deny", "r", "--result", "1"}, "unknown flag"},
		"unknown output":  {[]string{"pending", "-o", "yaml"}, "want json or text"},
		"no kubeconfig":   {[]string{"pending", "--kubeconfig", "absent"}, "absent"},
		"no cluster":      {[]string{"deny", "r"}, "no configuration"},
		"several to list": {[]string{"pending", "a", "b"}, "accepts at most 1 arg"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, v := range []string{"HOME", "KUBECONFIG"} {
				t.Setenv(v, t.TempDir()+"/none")
			}
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			code, _, errs := command(t, nil, "", tc.args...)
			if code != exitUsage || !strings.Contains(errs, tc.want) {
				t.Errorf("code %d, %s", code, errs)
			}
		})
	}
}
