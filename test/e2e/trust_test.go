package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

func configOf(user string, groups ...string) *rest.Config {
	c := rest.CopyConfig(cfg)
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return c
}

func asUser(user string, groups ...string) *kubernetes.Clientset {
	GinkgoHelper()
	return kubernetes.NewForConfigOrDie(configOf(user, groups...))
}

func clientOf(c *rest.Config) client.Client {
	GinkgoHelper()
	k, err := client.New(c, client.Options{Scheme: k8s.Scheme(), Mapper: k8s.RESTMapper()})
	Expect(err).NotTo(HaveOccurred())
	return k
}

// tokenOf is the token that the kubelet gives to a running pod.
func tokenOf(ctx context.Context, pod *corev1.Pod) string {
	GinkgoHelper()
	t, err := asUser("system:node:"+pod.Spec.NodeName, "system:nodes").CoreV1().ServiceAccounts(pod.Namespace).
		CreateToken(ctx, contract.RuntimeServiceAccount, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return t.Status.Token
}

var _ = Describe("who may do what", func() {
	var s *scene
	BeforeEach(func(ctx SpecContext) { s = newScene(ctx) })

	It("binds the token of a running pod to its own run", func(ctx SpecContext) {
		run := s.held(ctx, contract.EffectReadOnly)
		other := s.run(ctx, "other", ofRecipe("nowhere"))
		waits(ctx, other, string(contract.ReasonRecipeNotFound))
		pod, err := kube.CoreV1().Pods(s.ns).Get(ctx, run.Status.PodName, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		c := rest.AnonymousClientConfig(cfg)
		c.BearerToken = tokenOf(ctx, pod)
		podClient := clientOf(c)
		patch := func(name, body string) error {
			r := &v1alpha1.AgentRun{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
			return podClient.Status().Patch(ctx, r, client.RawPatch(types.MergePatchType, []byte(body)))
		}
		Expect(patch("other", `{"status":{"execution":{"generation":1}}}`)).NotTo(Succeed())
		Expect(patch("other", `{"status":{"podName":"`+pod.Name+`"}}`)).To(MatchError(ContainSubstring("codeact-runtime-report")))
		Expect(patch("run", `{"status":{"podName":"x"}}`)).To(MatchError(ContainSubstring("nothing of the status but status.execution")))
		Expect(patch("run", `{"status":{"execution":{"claim":{"podUID":"x"}}}}`)).To(MatchError(ContainSubstring("must name the pod of this token")))

		By("having no other rights")
		Expect(apierrors.IsForbidden(podClient.List(ctx, &v1alpha1.AgentRunList{}, client.InNamespace(s.ns)))).To(BeTrue())
		Expect(apierrors.IsForbidden(podClient.List(ctx, &corev1.SecretList{}, client.InNamespace(s.ns)))).To(BeTrue())
		Expect(apierrors.IsForbidden(podClient.Delete(ctx, get(ctx, run)))).To(BeTrue())

		By("closing the report with the run")
		s.release(ctx)
		run = succeeds(ctx, run)
		Expect(patch("run", `{"status":{"execution":{"refusedCalls":7}}}`)).NotTo(Succeed())
		Expect(get(ctx, run).Status.Execution.RefusedCalls).To(BeZero())
	})

	It("lets an editor of the namespace submit runs, and nothing that gives authority", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "eve"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "eve"}},
		})).To(Succeed())
		eve := clientOf(configOf("eve"))
		run := &v1alpha1.AgentRun{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "run"}}
		run.Spec.Code = &v1alpha1.CodeSpec{Source: plain}
		Eventually(func() error { return eve.Create(ctx, run.DeepCopy()) }).WithContext(ctx).Should(Succeed(), "the role is aggregated")
		run = succeeds(ctx, run)
		Expect(eve.List(ctx, &v1alpha1.ToolGrantList{}, client.InNamespace(s.ns))).To(Succeed())

		recipe := &v1alpha1.Recipe{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "r"}, Spec: v1alpha1.RecipeSpec{Source: plain}}
		Expect(apierrors.IsForbidden(eve.Create(ctx, recipe))).To(BeTrue())
		grant := &v1alpha1.ToolGrant{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "t"}}
		grant.Spec.Tool.Name, grant.Spec.Backend.HTTP = "t", &v1alpha1.HTTPBackend{URL: "http://x.test/"}
		Expect(apierrors.IsForbidden(eve.Create(ctx, grant))).To(BeTrue())
		Expect(apierrors.IsForbidden(eve.Status().Update(ctx, run))).To(BeTrue())

		By("not becoming a runtime pod")
		pod, err := kube.CoreV1().Pods(s.ns).Get(ctx, run.Status.PodName, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		mine := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "mine"}, Spec: *pod.Spec.DeepCopy()}
		mine.Spec.NodeName = ""
		Expect(eve.Create(ctx, mine)).To(MatchError(ContainSubstring("codeact-runtime-identity")))
		_, err = asUser("eve").CoreV1().ServiceAccounts(s.ns).CreateToken(ctx, contract.RuntimeServiceAccount,
			&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		Expect(err).To(MatchError(ContainSubstring("codeact-runtime-identity")))
	})

	It("has policies that the API server understands without warnings", func(ctx SpecContext) {
		for _, name := range []string{"codeact-runtime-report", "codeact-runtime-identity"} {
			Eventually(func(g Gomega) {
				p := &admissionv1.ValidatingAdmissionPolicy{}
				g.Expect(k8s.Get(ctx, types.NamespacedName{Name: name}, p)).To(Succeed())
				g.Expect(p.Status.TypeChecking).NotTo(BeNil())
				g.Expect(p.Status.TypeChecking.ExpressionWarnings).To(BeEmpty())
			}).WithContext(ctx).Should(Succeed())
		}
	})
})
