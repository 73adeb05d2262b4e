package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

var _ = Describe("the Helm chart", Serial, func() {
	chart := filepath.Join("..", "..", "charts", "codeact-operator")

	helm := func(ctx context.Context, args ...string) string {
		GinkgoHelper()
		return command(ctx, os.Getenv("HELM"), append(args, "--namespace", operatorNamespace, "--kubeconfig", os.Getenv("KUBECONFIG"))...)
	}

	It("installs, upgrades and uninstalls the operator", func(ctx SpecContext) {
		By("taking away what config/default installed")
		DeferCleanup(func(ctx SpecContext) { installOperator(ctx) }, NodeTimeout(3*time.Minute))
		kubectlWith(ctx, operatorManifests(ctx), "delete", "--wait", "--ignore-not-found", "-f", "-")

		repository, tag := image, ""
		if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
			repository, tag = image[:i], image[i+1:]
		}
		values := []string{"--set", "image.repository=" + repository, "--set", "image.tag=" + tag}

		By("installing")
		helm(ctx, append([]string{"install", "codeact-operator", chart, "--create-namespace"}, values...)...)
		waitForManager(ctx)
		s := newScene(ctx)
		run := succeeds(ctx, s.code(ctx, plain, nil))

		By("upgrading with other limits")
		helm(ctx, append([]string{"upgrade", "codeact-operator", chart, "--set", "limits.defaults.wallClockMs=200,limits.ceilings.wallClockMs=200"}, values...)...)
		waitForManager(ctx)
		loop := s.run(ctx, "loop", func(r *v1alpha1.AgentRunSpec) { r.Code = &v1alpha1.CodeSpec{Source: `function main() { for (;;) {} }`} })
		fails(ctx, loop, contract.ReasonTimeout)
		Expect(succeeds(ctx, run).Status.ExecutionGeneration).To(BeEquivalentTo(1), "an upgrade starts nothing again")

		By("uninstalling, which leaves the objects of users")
		helm(ctx, "uninstall", "codeact-operator", "--wait")
		err := k8s.Get(ctx, types.NamespacedName{Namespace: operatorNamespace, Name: managerName}, &appsv1.Deployment{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		Expect(get(ctx, run).Status.Output).NotTo(BeNil())
	}, SpecTimeout(6*time.Minute))
})
