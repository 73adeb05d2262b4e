// Package envtest runs the API types and the reconcilers against a real etcd and
// kube-apiserver. KUBEBUILDER_ASSETS names the folder with the two; without it
// the suite is skipped.
package envtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/codeact-dev/codeact-operator/controllers"
)

var (
	cluster *envtest.Environment
	cfg     *rest.Config
	// admin talks to the API server without a cache.
	admin client.WithWatch
)

func TestEnvtest(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "envtest")
}

var _ = BeforeSuite(func() {
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	cluster = &envtest.Environment{
		CRDDirectoryPaths:        []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 3 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	var err error
	cfg, err = cluster.Start()
	Expect(err).NotTo(HaveOccurred())
	cfg.QPS, cfg.Burst = 500, 1000
	scheme, err := controllers.Scheme()
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
})

var _ = AfterSuite(func() {
	if cluster != nil {
		Expect(cluster.Stop()).To(Succeed())
	}
})

// namespace makes a namespace of its own for one case, with the strictest Pod
// Security profile: every pod that the manager makes must pass it.
func namespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "case-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	Expect(admin.Create(ctx, ns)).To(Succeed())
	return ns.Name
}

// must fails the case on an error.
func must[T any](v T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred(), fmt.Sprintf("%T", v))
	return v
}
