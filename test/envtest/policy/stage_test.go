package policy

import (
	"context"
	"encoding/json"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// stage is a namespace with one run that the operator has launched.
type stage struct {
	ns    string
	run   *v1alpha1.AgentRun
	pod   *corev1.Pod
	token string
}

func newStage(ctx context.Context) *stage {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "policy-"}}
	Expect(admin.Create(ctx, ns)).To(Succeed())
	s := &stage{ns: ns.Name}
	Expect(admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: contract.RuntimeServiceAccount}})).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: contract.RuntimeServiceAccount},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: contract.RuntimeServiceAccount},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.ns, Name: contract.RuntimeServiceAccount}},
	})).To(Succeed())
	s.run, s.pod = s.launch(ctx, "run", "pod")
	s.token = s.tokenFor(ctx, s.pod)
	return s
}

// launch makes a run whose status says that the operator launched the pod.
func (s *stage) launch(ctx context.Context, name, podName string) (*v1alpha1.AgentRun, *corev1.Pod) {
	GinkgoHelper()
	run := &v1alpha1.AgentRun{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name, Labels: map[string]string{"team": "a"}}}
	run.Spec.Code = &v1alpha1.CodeSpec{Source: "function main() { return 1 }"}
	Expect(admin.Create(ctx, run)).To(Succeed())
	pod, err := manager().CoreV1().Pods(s.ns).Create(ctx, runtimePod(podName), metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	run.Status = v1alpha1.AgentRunStatus{
		ObservedGeneration: 1, ExecutionGeneration: 1, PodName: podName, Launches: 1,
		Pinned: &v1alpha1.PinnedStatus{ConfigMap: "pin", Digest: contract.Digest([]byte("bundle"))},
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionPinned, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPinned, LastTransitionTime: metav1.Now()},
			{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonRunning, LastTransitionTime: metav1.Now()},
		},
	}
	Expect(admin.Status().Update(ctx, run)).To(Succeed())
	return run, pod
}

// tokenFor returns what the kubelet would mount into the pod.
func (s *stage) tokenFor(ctx context.Context, pod *corev1.Pod) string {
	GinkgoHelper()
	return s.requestToken(ctx, &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID})
}

func (s *stage) requestToken(ctx context.Context, to *authenticationv1.BoundObjectReference) string {
	GinkgoHelper()
	seconds := int64(600)
	t, err := kubelet().CoreV1().ServiceAccounts(s.ns).CreateToken(ctx, contract.RuntimeServiceAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: to, ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return t.Status.Token
}

// report is what the run's pod would say, changed by the edits.
func (s *stage) report(edits ...map[string]any) map[string]any {
	r := map[string]any{
		"generation":   s.run.Status.ExecutionGeneration,
		"runUID":       string(s.run.UID),
		"bundleDigest": s.run.Status.Pinned.Digest,
		"claim":        claim(s.pod),
	}
	for _, e := range edits {
		maps.Copy(r, e)
	}
	return r
}

func claim(pod *corev1.Pod) map[string]any {
	return map[string]any{"podName": pod.Name, "podUID": string(pod.UID), "time": "2026-01-02T03:04:05Z"}
}

// apply writes a report as the runtime does: server-side apply on the status.
func (s *stage) apply(ctx context.Context, token string, report map[string]any) error {
	return s.applyStatus(ctx, token, map[string]any{"execution": report})
}

func (s *stage) applyStatus(ctx context.Context, token string, status map[string]any) error {
	GinkgoHelper()
	body, err := json.Marshal(map[string]any{
		"apiVersion": "codeact.dev/v1alpha1", "kind": "AgentRun",
		"metadata": map[string]any{"name": s.run.Name, "namespace": s.ns}, "status": status,
	})
	Expect(err).NotTo(HaveOccurred())
	u := &unstructured.Unstructured{}
	Expect(u.UnmarshalJSON(body)).To(Succeed())
	_, err = withToken(token).Resource(runsResource).Namespace(s.ns).
		ApplyStatus(ctx, s.run.Name, u, metav1.ApplyOptions{FieldManager: contract.RuntimeFieldManager, Force: true})
	return err
}

// merge writes with a JSON merge patch, on the status or, without it, on the object.
func (s *stage) merge(ctx context.Context, token string, patch map[string]any, subresources ...string) error {
	GinkgoHelper()
	body, err := json.Marshal(patch)
	Expect(err).NotTo(HaveOccurred())
	_, err = withToken(token).Resource(runsResource).Namespace(s.ns).
		Patch(ctx, s.run.Name, types.MergePatchType, body, metav1.PatchOptions{}, subresources...)
	return err
}

// change lets the manager change the run's status.
func (s *stage) change(ctx context.Context, edit func(*v1alpha1.AgentRunStatus)) {
	GinkgoHelper()
	fresh := &v1alpha1.AgentRun{}
	Expect(admin.Get(ctx, types.NamespacedName{Namespace: s.ns, Name: s.run.Name}, fresh)).To(Succeed())
	edit(&fresh.Status)
	Expect(admin.Status().Update(ctx, fresh)).To(Succeed())
	s.run = fresh
}

// replacePod deletes the run's pod and makes one of the same name, with a new UID.
func (s *stage) replacePod(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	now := int64(0)
	Expect(manager().CoreV1().Pods(s.ns).Delete(ctx, s.pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})).To(Succeed())
	pod, err := manager().CoreV1().Pods(s.ns).Create(ctx, runtimePod(s.pod.Name), metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return pod
}
