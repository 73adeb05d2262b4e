package policy

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// answer is an entry of spec.resolutions, changed by the edits.
func answer(id, decision, by string, edits ...func(map[string]any)) map[string]any {
	a := map[string]any{"id": id, "decision": decision, "by": by}
	for _, e := range edits {
		e(a)
	}
	return a
}

// answerAs replaces all answers of the stage's run.
func answerAs(ctx context.Context, who actor, s *stage, answers []any) error {
	return patchAs(ctx, who, s, types.MergePatchType, map[string]any{"spec": map[string]any{"resolutions": answers}})
}

func patchAs(ctx context.Context, who actor, s *stage, kind types.PatchType, patch any) error {
	GinkgoHelper()
	body, err := json.Marshal(patch)
	Expect(err).NotTo(HaveOccurred())
	_, err = who.runs(s.ns).Patch(ctx, s.run.Name, kind, body, metav1.PatchOptions{})
	return err
}

// bind gives a user, or a group, a ClusterRole in the stage's namespace.
func (s *stage) bind(ctx context.Context, role, kind, name string) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: role + "-" + strings.ToLower(kind) + "-" + name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: kind, APIGroup: rbacv1.GroupName, Name: name}},
	})).To(Succeed())
}

func manifest(s *stage, name string, answers ...any) *unstructured.Unstructured {
	spec := map[string]any{"code": map[string]any{"source": "function main() { return 1 }"}}
	if len(answers) > 0 {
		spec["resolutions"] = answers
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "codeact.dev/v1alpha1", "kind": "AgentRun",
		"metadata": map[string]any{"name": name, "namespace": s.ns}, "spec": spec,
	}}
}

const notAllowed = "only who may update agentruns/approve may change it"

var _ = Describe("codeact-approve", func() {
	var (
		s             *stage
		ted, ann, bob actor // ted edits, ann and bob approve
	)
	BeforeEach(func(ctx SpecContext) {
		s = newStage(ctx)
		ted, ann, bob = as("ted", "editors"), as("ann", "people"), as("bob", "approvers")
		s.bind(ctx, "codeact-edit", rbacv1.UserKind, "ted")
		s.bind(ctx, "codeact-approver", rbacv1.UserKind, "ann")
		s.bind(ctx, "codeact-approver", rbacv1.GroupKind, "approvers")
		Eventually(func() error { // RBAC learns of the bindings in the background
			for _, who := range []actor{ted, ann, bob} {
				if err := patchAs(ctx, who, s, types.MergePatchType, map[string]any{}); err != nil {
					return err
				}
			}
			return nil
		}).WithContext(ctx).WithTimeout(bound).Should(Succeed())
	})

	stored := func(ctx SpecContext) []v1alpha1.Resolution {
		GinkgoHelper()
		var run v1alpha1.AgentRun
		Expect(admin.Get(ctx, types.NamespacedName{Namespace: s.ns, Name: s.run.Name}, &run)).To(Succeed())
		return run.Spec.Resolutions
	}

	It("lets an approver answer, in the own name", func(ctx SpecContext) {
		Expect(answerAs(ctx, ann, s, []any{answer("1-1-aa", "Approve", "ann")})).To(Succeed())
		Expect(answerAs(ctx, bob, s, []any{answer("1-1-aa", "Approve", "ann"), answer("1-2-bb", "Deny", "bob")})).To(Succeed())
		Expect(stored(ctx)).To(HaveLen(2))
		By("a JSON patch behind the last one")
		add := []any{map[string]any{"op": "add", "path": "/spec/resolutions/-", "value": answer("1-3-cc", "Approve", "ann", func(a map[string]any) {
			a["result"] = map[string]any{"n": []any{nil, 1.5}}
		})}}
		Expect(patchAs(ctx, ann, s, types.JSONPatchType, add)).To(Succeed())
		Expect(string(stored(ctx)[2].Result.Raw)).To(MatchJSON(`{"n":[null,1.5]}`))
		By("taking all of them away")
		Expect(patchAs(ctx, ann, s, types.MergePatchType, map[string]any{"spec": map[string]any{"resolutions": nil}})).To(Succeed())
		Expect(stored(ctx)).To(BeEmpty())
	})

	It("takes the JSON patches of the page, and the first answer only once", func(ctx SpecContext) {
		first := func(by string) []any {
			return []any{
				map[string]any{"op": "test", "path": "/spec/resolutions", "value": nil},
				map[string]any{"op": "add", "path": "/spec/resolutions", "value": []any{answer("1-1-aa", "Approve", by)}},
			}
		}
		Expect(patchAs(ctx, ann, s, types.JSONPatchType, first("ann"))).To(Succeed())
		Expect(apierrors.IsInvalid(patchAs(ctx, bob, s, types.JSONPatchType, first("bob")))).To(BeTrue())
		later := []any{map[string]any{"op": "add", "path": "/spec/resolutions/-", "value": answer("1-2-bb", "Deny", "bob")}}
		Expect(patchAs(ctx, bob, s, types.JSONPatchType, later)).To(Succeed())
		Expect(stored(ctx)).To(HaveLen(2))
	})

	It("refuses who may edit runs, by every way to write", func(ctx SpecContext) {
		mine := answer("1-1-aa", "Approve", "ted")
		Expect(answerAs(ctx, ted, s, []any{mine})).To(beForbidden(notAllowed))
		add := []any{map[string]any{"op": "add", "path": "/spec/resolutions", "value": []any{mine}}}
		Expect(patchAs(ctx, ted, s, types.JSONPatchType, add)).To(beForbidden(notAllowed))
		_, err := ted.runs(s.ns).Apply(ctx, s.run.Name, manifest(s, s.run.Name, mine), metav1.ApplyOptions{FieldManager: "ted", Force: true})
		Expect(err).To(beForbidden(notAllowed))
		u, err := ted.runs(s.ns).Get(ctx, s.run.Name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(unstructured.SetNestedSlice(u.Object, []any{mine}, "spec", "resolutions")).To(Succeed())
		_, err = ted.runs(s.ns).Update(ctx, u, metav1.UpdateOptions{})
		Expect(err).To(beForbidden(notAllowed))
		_, err = ted.runs(s.ns).Create(ctx, manifest(s, "copied", mine), metav1.CreateOptions{})
		Expect(err).To(beForbidden(notAllowed))
		generated := manifest(s, "", mine)
		generated.SetGenerateName("copied-")
		_, err = ted.runs(s.ns).Create(ctx, generated, metav1.CreateOptions{})
		Expect(err).To(beForbidden(notAllowed))
		By("through the status, which he may not write at all")
		_, err = ted.runs(s.ns).UpdateStatus(ctx, u, metav1.UpdateOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue())
		Expect(stored(ctx)).To(BeEmpty())
	})

	It("refuses who may edit runs to take answers away or change them", func(ctx SpecContext) {
		Expect(answerAs(ctx, ann, s, []any{answer("1-1-aa", "Deny", "ann")})).To(Succeed())
		for _, answers := range []any{nil, []any{}, []any{answer("1-1-aa", "Approve", "ann")}, []any{answer("1-1-aa", "Deny", "ted")}} {
			patch := map[string]any{"spec": map[string]any{"resolutions": answers}}
			Expect(patchAs(ctx, ted, s, types.MergePatchType, patch)).To(beForbidden(notAllowed))
		}
		_, err := ted.runs(s.ns).Update(ctx, func() *unstructured.Unstructured {
			u, err := ted.runs(s.ns).Get(ctx, s.run.Name, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			unstructured.RemoveNestedField(u.Object, "spec", "resolutions")
			return u
		}(), metav1.UpdateOptions{})
		Expect(err).To(beForbidden(notAllowed))
	})

	It("leaves everything else of an answered run to who may edit it", func(ctx SpecContext) {
		Expect(answerAs(ctx, ann, s, []any{answer("1-1-aa", "Deny", "ann")})).To(Succeed())
		Expect(patchAs(ctx, ted, s, types.MergePatchType, map[string]any{"spec": map[string]any{"cancel": true}})).To(Succeed())
		_, err := ted.runs(s.ns).Apply(ctx, s.run.Name, manifest(s, s.run.Name), metav1.ApplyOptions{FieldManager: "gitops", Force: true})
		Expect(err).NotTo(HaveOccurred())
		Expect(stored(ctx)).To(HaveLen(1))
		_, err = ted.runs(s.ns).Create(ctx, manifest(s, "another"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(ted.runs(s.ns).Delete(ctx, s.run.Name, metav1.DeleteOptions{})).To(Succeed())
	})

	It("refuses an answer in the name of another", func(ctx SpecContext) {
		const want = "must be the name of the user who answers: ann"
		Expect(answerAs(ctx, ann, s, []any{answer("1-1-aa", "Approve", "bob")})).To(beForbidden(want))
		Expect(answerAs(ctx, ann, s, []any{answer("1-1-aa", "Approve", "ann"), answer("1-2-bb", "Deny", "ted")})).To(beForbidden(want))
		_, err := ann.runs(s.ns).Apply(ctx, s.run.Name, manifest(s, s.run.Name, answer("1-1-aa", "Deny", "system:admin")),
			metav1.ApplyOptions{FieldManager: "ann", Force: true})
		Expect(err).To(beForbidden(want))
		Expect(stored(ctx)).To(BeEmpty())
	})

	It("refuses an approver to change an answer, also the own one", func(ctx SpecContext) {
		Expect(answerAs(ctx, ann, s, []any{answer("1-1-aa", "Deny", "ann")})).To(Succeed())
		const want = "an answer in spec.resolutions never changes"
		Expect(answerAs(ctx, bob, s, []any{answer("1-1-aa", "Approve", "bob")})).To(beForbidden(want))
		Expect(answerAs(ctx, bob, s, []any{answer("1-1-aa", "Approve", "ann")})).To(beForbidden(want))
		Expect(answerAs(ctx, ann, s, []any{answer("1-1-aa", "Approve", "ann")})).To(beForbidden(want))
		Expect(answerAs(ctx, ann, s, []any{answer("1-1-aa", "Deny", "ann", func(a map[string]any) { a["result"] = 1 })})).To(beForbidden(want))
	})

	It("takes an answer that waits for nothing, and the same one again", func(ctx SpecContext) {
		apply := func() error {
			_, err := ann.runs(s.ns).Apply(ctx, s.run.Name, manifest(s, s.run.Name, answer("1-9-99", "Approve", "ann")),
				metav1.ApplyOptions{FieldManager: "gitops", Force: true})
			return err
		}
		Expect(apply()).To(Succeed())
		Expect(apply()).To(Succeed())
		Expect(stored(ctx)).To(HaveLen(1))
	})

	It("needs both rights", func(ctx SpecContext) {
		Expect(admin.Create(ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "only-approve-" + s.ns},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"codeact.dev"}, Resources: []string{"agentruns/approve"}, Verbs: []string{"update"}}},
		})).To(Succeed())
		s.bind(ctx, "only-approve-"+s.ns, rbacv1.UserKind, "cid")
		s.bind(ctx, "codeact-admin", rbacv1.UserKind, "dot")
		err := answerAs(ctx, as("cid", "people"), s, []any{answer("1-1-aa", "Approve", "cid")})
		Expect(apierrors.IsForbidden(err)).To(BeTrue())
		Expect(err).NotTo(MatchError(ContainSubstring("ValidatingAdmissionPolicy")))
		Eventually(func() error {
			return answerAs(ctx, as("dot", "people"), s, []any{answer("1-1-aa", "Approve", "dot")})
		}).WithContext(ctx).WithTimeout(bound).Should(beForbidden(notAllowed))
	})

	It("knows namespaces apart", func(ctx SpecContext) {
		other := newStage(ctx)
		other.bind(ctx, "codeact-edit", rbacv1.UserKind, "ann")
		Eventually(func() error {
			return answerAs(ctx, ann, other, []any{answer("1-1-aa", "Approve", "ann")})
		}).WithContext(ctx).WithTimeout(bound).Should(beForbidden(notAllowed))
	})

	It("keeps within the API server's budget with as many answers as there may be", func(ctx SpecContext) {
		var all []any
		for i := range 256 {
			all = append(all, answer(strings.Repeat("x", 100)+string(rune('a'+i%26))+string(rune('a'+i/26)), "Approve", "ann", func(a map[string]any) {
				a["result"] = map[string]any{"text": strings.Repeat("y", 1000)}
			}))
		}
		Expect(answerAs(ctx, ann, s, all[:255])).To(Succeed())
		Expect(answerAs(ctx, ann, s, all)).To(Succeed())
	})
})
