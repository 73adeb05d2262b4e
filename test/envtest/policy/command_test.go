package policy

import (
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// The command is built and called as its users do: with the kubeconfig of a user.
var _ = Describe("codeact approve", func() {
	It("answers what waits in the user's own name, and nothing without the right to", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		binary := filepath.Join(dir, "codeact")
		build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/codeact")
		build.Dir = filepath.Join("..", "..", "..")
		text, err := build.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(text))

		s := newStage(ctx)
		s.bind(ctx, "codeact-edit", rbacv1.UserKind, "ted")
		s.bind(ctx, "codeact-approver", rbacv1.UserKind, "ann")
		codeact := func(user string, args ...string) (string, error) {
			GinkgoHelper()
			u, err := env.AddUser(envtest.User{Name: user}, nil)
			Expect(err).NotTo(HaveOccurred())
			config, err := u.KubeConfig()
			Expect(err).NotTo(HaveOccurred())
			file := filepath.Join(dir, user)
			Expect(os.WriteFile(file, config, 0o600)).To(Succeed())
			out, err := exec.CommandContext(ctx, binary, append(args, "--kubeconfig", file, "-n", s.ns)...).CombinedOutput()
			return string(out), err
		}
		waits := func(ids ...string) {
			GinkgoHelper()
			s.change(ctx, func(st *v1alpha1.AgentRunStatus) {
				st.Pending = nil
				for _, id := range ids {
					st.Pending = append(st.Pending, contract.Pending{
						ID: id, Kind: contract.PendingApproval, Tool: "pay", Effect: contract.EffectEffectful, Arguments: `{"n":1}`, ArgumentsDigest: contract.Digest(nil),
					})
				}
			})
		}

		waits("1-1-aa")
		Eventually(func() (string, error) { return codeact("ted", "pending") }).WithContext(ctx).WithTimeout(bound).
			Should(And(ContainSubstring("run 1-1-aa"), ContainSubstring(`{"n":1}`)))
		out, err := codeact("ted", "approve", "run")
		Expect(err).To(MatchError("exit status 1"))
		Expect(out).To(ContainSubstring(notAllowed))
		Eventually(func() (string, error) { return codeact("ann", "approve", "run") }).WithContext(ctx).WithTimeout(bound).
			Should(HavePrefix("approved by ann: 1-1-aa of run " + s.ns + "/run, pay with"))
		out, err = codeact("ann", "deny", "run", "1-1-aa")
		Expect(err).To(MatchError("exit status 1"))
		Expect(out).To(ContainSubstring("has been answered by ann: Approve"))
		waits("1-2-bb", "1-3-cc")
		out, err = codeact("ann", "deny", "run")
		Expect(err).To(MatchError("exit status 1"))
		Expect(out).To(ContainSubstring("name one of 1-2-bb, 1-3-cc"))
		out, err = codeact("ann", "deny", "run", "1-3-cc")
		Expect(err).NotTo(HaveOccurred(), out)

		var run v1alpha1.AgentRun
		Expect(admin.Get(ctx, types.NamespacedName{Namespace: s.ns, Name: "run"}, &run)).To(Succeed())
		Expect(run.Spec.Resolutions).To(Equal([]v1alpha1.Resolution{
			{ID: "1-1-aa", Decision: contract.DecisionApprove, By: "ann"}, {ID: "1-3-cc", Decision: contract.DecisionDeny, By: "ann"},
		}))
	})
})
