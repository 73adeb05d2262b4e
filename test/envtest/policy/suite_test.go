// Package policy tries config/policy on a real API server with real tokens.
package policy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

const (
	managerUser = "system:serviceaccount:codeact-system:codeact-operator-manager"
	bound       = 20 * time.Second
)

var (
	runsResource = schema.GroupVersionResource{Group: "codeact.dev", Version: "v1alpha1", Resource: "agentruns"}

	env   *envtest.Environment
	cfg   *rest.Config
	admin client.Client
)

func TestPolicy(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set: make test sets it")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "Policy Suite")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	root := filepath.Join("..", "..", "..", "config")
	env = &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join(root, "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	var err error
	cfg, err = env.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)

	scheme := clientgoscheme.Scheme
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	admin, err = client.New(cfg, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())

	install(ctx, filepath.Join(root, "rbac", "runtime_role.yaml"))
	install(ctx, filepath.Join(root, "policy", "runtime_report.yaml"))
	install(ctx, filepath.Join(root, "policy", "runtime_identity.yaml"))
	install(ctx, filepath.Join(root, "policy", "runtime_results.yaml"))
	install(ctx, filepath.Join(root, "rbac", "tenant_roles.yaml"))
	install(ctx, filepath.Join(root, "policy", "approve.yaml"))
	grantEverything(ctx)
	waitForPolicies(ctx)
})

// install creates every object of a manifest file.
func install(ctx context.Context, file string) {
	GinkgoHelper()
	text, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var u unstructured.Unstructured
		err := d.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		Expect(err).NotTo(HaveOccurred())
		Expect(admin.Create(ctx, &u)).To(Succeed())
	}
}

// grantEverything lets RBAC allow all that the policies must refuse, so that a
// refusal in these tests is never RBAC's.
func grantEverything(ctx context.Context) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "everything"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{
			{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts"},
			{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "tenants"},
			{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:nodes"},
			{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "system:kube-controller-manager"},
		},
	})).To(Succeed())
}

// waitForPolicies waits until every policy refuses something: the API server
// takes them up in the background.
func waitForPolicies(ctx context.Context) {
	GinkgoHelper()
	probe := newStage(ctx)
	Eventually(func(g Gomega) {
		err := as("system:serviceaccount:"+probe.ns+":codeact-runtime").runs(probe.ns).
			Delete(ctx, probe.run.Name, metav1.DeleteOptions{DryRun: []string{"All"}})
		g.Expect(err).To(MatchError(ContainSubstring("codeact-runtime-report")))
		_, err = tenant().CoreV1().Pods(probe.ns).
			Create(ctx, runtimePod("probe"), metav1.CreateOptions{DryRun: []string{"All"}})
		g.Expect(err).To(MatchError(ContainSubstring("codeact-runtime-identity")))
		g.Expect(probe.keep(ctx, probe.token, mediaMap("other"))).To(MatchError(ContainSubstring("codeact-runtime-results")))
		g.Expect(answerAs(ctx, tenant(), probe, []any{answer("x", "Approve", "not eve")})).To(MatchError(ContainSubstring("codeact-approve")))
	}).WithContext(ctx).WithTimeout(bound).WithPolling(100 * time.Millisecond).Should(Succeed())
}

// actor is one user's way to the API server.
type actor struct {
	*kubernetes.Clientset
	dynamic dynamic.Interface
}

// runs are the AgentRuns of a namespace as the actor may touch them.
func (a actor) runs(ns string) dynamic.ResourceInterface {
	return a.dynamic.Resource(runsResource).Namespace(ns)
}

// as returns that user, authenticated by nothing but impersonation.
func as(user string, groups ...string) actor {
	GinkgoHelper()
	c := rest.CopyConfig(cfg)
	if len(groups) == 0 {
		groups = []string{"system:serviceaccounts"}
	}
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return actor{kubernetes.NewForConfigOrDie(c), dynamic.NewForConfigOrDie(c)}
}

func manager() actor { return as(managerUser) }
func kubelet() actor { return as("system:node:n1", "system:nodes") }
func tenant() actor  { return as("eve", "tenants") }

// withToken returns a client that has nothing but the token.
func withToken(token string) dynamic.Interface {
	GinkgoHelper()
	c := rest.AnonymousClientConfig(cfg)
	c.BearerToken = token
	return dynamic.NewForConfigOrDie(c)
}

func runtimePod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelRunUID: "x"}},
		Spec: corev1.PodSpec{
			ServiceAccountName: contract.RuntimeServiceAccount,
			Containers:         []corev1.Container{{Name: contract.RuntimeContainer, Image: "example.test/runtime"}},
		},
	}
}

// beForbidden matches a refusal by a policy with this part of its message.
func beForbidden(part string) OmegaMatcher {
	return And(
		WithTransform(apierrors.IsForbidden, BeTrue()),
		MatchError(ContainSubstring("ValidatingAdmissionPolicy")),
		MatchError(ContainSubstring(part)),
	)
}
