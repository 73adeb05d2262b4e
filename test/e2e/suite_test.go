// Package e2e tries the product on a real cluster. hack/e2e.sh starts the
// cluster, loads the images and runs the suite.
package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

const (
	operatorNamespace = "codeact-system"
	managerName       = "codeact-operator-manager"
	managerUser       = "system:serviceaccount:" + operatorNamespace + ":" + managerName
	toolsNamespace    = "codeact-e2e-tools"

	// patience bounds every wait for a run; a run takes about two seconds.
	patience = 90 * time.Second
	// often is how often a condition is looked at.
	often = 200 * time.Millisecond
)

var (
	cfg   *rest.Config
	k8s   client.Client
	kube  *kubernetes.Clientset
	image string
)

func TestE2E(t *testing.T) {
	if os.Getenv("CODEACT_IMAGE") == "" {
		t.Skip("CODEACT_IMAGE is not set: run make e2e")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "E2E Suite")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(often)
	image = os.Getenv("CODEACT_IMAGE")
	var err error
	cfg, err = clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	Expect(err).NotTo(HaveOccurred())
	cfg.QPS, cfg.Burst = 200, 400
	Expect(v1alpha1.AddToScheme(clientgoscheme.Scheme)).To(Succeed())
	k8s, err = client.New(cfg, client.Options{Scheme: clientgoscheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	kube = kubernetes.NewForConfigOrDie(cfg)

	installOperator(ctx)
	installToolServer(ctx)
}, NodeTimeout(5*time.Minute))

// installOperator installs config/default with the image under test.
func installOperator(ctx context.Context) {
	GinkgoHelper()
	again := k8s.Get(ctx, types.NamespacedName{Namespace: operatorNamespace, Name: managerName}, &appsv1.Deployment{}) == nil
	kubectlApply(ctx, operatorManifests(ctx))
	if again { // the image under test may have the name of an older one
		kubectl(ctx, "-n", operatorNamespace, "rollout", "restart", "deployment", managerName)
	}
	waitForManager(ctx)
}

func operatorManifests(ctx context.Context) string {
	GinkgoHelper()
	manifests := command(ctx, os.Getenv("KUSTOMIZE"), "build", filepath.Join("..", "..", "config", "default"))
	manifests = strings.ReplaceAll(manifests, "localhost/codeact/operator:dev", image)
	traced := strings.Replace(manifests, "- --leader-elect\n", "- --leader-elect\n        - --trace-endpoint="+toolURL("")+"\n", 1)
	Expect(traced).NotTo(Equal(manifests))
	return traced
}

func waitForManager(ctx context.Context) {
	GinkgoHelper()
	waitForDeployment(ctx, operatorNamespace, managerName)
}

func waitForDeployment(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		d := &appsv1.Deployment{}
		g.Expect(k8s.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, d)).To(Succeed())
		g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
		g.Expect(d.Status.UpdatedReplicas).To(Equal(*d.Spec.Replicas))
		g.Expect(d.Status.AvailableReplicas).To(Equal(*d.Spec.Replicas))
		g.Expect(d.Status.Replicas).To(Equal(*d.Spec.Replicas))
	}).WithContext(ctx).Should(Succeed())
}

// scaleManager starts or stops the manager, and waits until it is so.
func scaleManager(ctx context.Context, replicas int32) {
	GinkgoHelper()
	patch := []byte(`{"spec":{"replicas":` + map[int32]string{0: "0", 1: "1"}[replicas] + `}}`)
	_, err := kube.AppsV1().Deployments(operatorNamespace).Patch(ctx, managerName, types.MergePatchType, patch, metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
	waitForManager(ctx)
	if replicas > 0 {
		return
	}
	Eventually(func(g Gomega) {
		pods, err := kube.CoreV1().Pods(operatorNamespace).List(ctx, metav1.ListOptions{LabelSelector: "control-plane=manager"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pods.Items).To(BeEmpty())
	}).WithContext(ctx).Should(Succeed())
}

// installToolServer starts one tool server and one scripted model for all specs.
// The tool server may review tokens; both know the credential that they expect.
func installToolServer(ctx context.Context) {
	GinkgoHelper()
	apply(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: toolsNamespace}})
	apply(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: toolsNamespace, Name: "expected"},
		StringData: map[string]string{"token": credential},
	})
	apply(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: toolsNamespace + "-reviewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: toolsNamespace, Name: "default"}},
	})
	manifests := command(ctx, os.Getenv("KUSTOMIZE"), "build", filepath.Join("testdata", "toolserver"))
	manifests = strings.ReplaceAll(manifests, "localhost/codeact/toolserver:dev", os.Getenv("CODEACT_TOOLSERVER_IMAGE"))
	kubectlApply(ctx, manifests)
	manifests = command(ctx, os.Getenv("KUSTOMIZE"), "build", filepath.Join("testdata", "modelserver"))
	kubectlApply(ctx, strings.ReplaceAll(manifests, "localhost/codeact/modelserver:dev", os.Getenv("CODEACT_MODELSERVER_IMAGE")))
	waitForDeployment(ctx, toolsNamespace, "toolserver")
	waitForDeployment(ctx, toolsNamespace, "modelserver")
}

// apply creates an object that may be there from an earlier run of the suite.
func apply(ctx context.Context, o client.Object) {
	GinkgoHelper()
	err := k8s.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) {
		return
	}
	Expect(err).NotTo(HaveOccurred())
}

// command runs a program and returns its output.
func command(ctx context.Context, name string, args ...string) string {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	why := ""
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		why = string(exit.Stderr)
	}
	Expect(err).NotTo(HaveOccurred(), "%s %s: %s", name, strings.Join(args, " "), why)
	return string(out)
}

func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return command(ctx, os.Getenv("CODEACT_CLUSTER"), append([]string{"kubectl"}, args...)...)
}

// kubectlApply applies manifests by server-side apply.
func kubectlApply(ctx context.Context, manifests string, args ...string) {
	GinkgoHelper()
	kubectlWith(ctx, manifests, append([]string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, args...)...)
}

// kubectlWith gives kubectl its standard input.
func kubectlWith(ctx context.Context, in string, args ...string) {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, os.Getenv("CODEACT_CLUSTER"), append([]string{"kubectl"}, args...)...)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}
