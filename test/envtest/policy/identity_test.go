package policy

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

var _ = Describe("codeact-runtime-identity", func() {
	var s *stage
	BeforeEach(func(ctx SpecContext) { s = newStage(ctx) })

	patch := func(ctx SpecContext, who actor, body string) error {
		_, err := who.CoreV1().Pods(s.ns).Patch(ctx, s.pod.Name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}

	It("refuses a pod with the runtime's ServiceAccount from anyone but the manager", func(ctx SpecContext) {
		for _, who := range []actor{
			tenant(), as("system:serviceaccount:" + s.ns + ":codeact-runtime"), as("system:serviceaccount:kube-system:replicaset-controller"),
			as("system:serviceaccount:" + s.ns + ":codeact-operator-manager"), as("root", "system:masters"),
		} {
			_, err := who.CoreV1().Pods(s.ns).Create(ctx, runtimePod("mine"), metav1.CreateOptions{})
			Expect(err).To(beForbidden("only the operator launches pods"))
		}
		By("naming the ServiceAccount by its old field")
		old := runtimePod("mine")
		old.Spec.ServiceAccountName, old.Spec.DeprecatedServiceAccount = "", contract.RuntimeServiceAccount
		_, err := tenant().CoreV1().Pods(s.ns).Create(ctx, old, metav1.CreateOptions{})
		Expect(err).To(beForbidden("only the operator launches pods"))
	})

	It("leaves all other pods alone", func(ctx SpecContext) {
		pod := runtimePod("mine")
		pod.Spec.ServiceAccountName = "default"
		_, err := tenant().CoreV1().Pods(s.ns).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	})

	It("refuses tokens of the runtime's ServiceAccount to anyone but a kubelet", func(ctx SpecContext) {
		for _, who := range []actor{tenant(), manager(), as("root", "system:masters")} {
			for _, ref := range []*authenticationv1.BoundObjectReference{nil, {Kind: "Pod", APIVersion: "v1", Name: s.pod.Name, UID: s.pod.UID}} {
				_, err := who.CoreV1().ServiceAccounts(s.ns).CreateToken(ctx, contract.RuntimeServiceAccount,
					&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: ref}}, metav1.CreateOptions{})
				Expect(err).To(beForbidden("only a kubelet gets tokens"))
			}
		}
	})

	It("refuses ephemeral containers in a runtime pod", func(ctx SpecContext) {
		pod := s.pod.DeepCopy()
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "debug", Image: "example.test/shell", ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}}}
		_, err := tenant().CoreV1().Pods(s.ns).UpdateEphemeralContainers(ctx, pod.Name, pod, metav1.UpdateOptions{})
		Expect(err).To(beForbidden("takes no ephemeral containers"))
	})

	DescribeTable("keeps a runtime pod as the manager made it",
		func(ctx SpecContext, body string) {
			Expect(patch(ctx, tenant(), body)).To(beForbidden("belongs to the operator"))
			Expect(patch(ctx, manager(), body)).To(Succeed())
		},
		Entry("its image", `{"spec":{"containers":[{"name":"runtime","image":"example.test/mine"}]}}`),
		Entry("its deadline", `{"spec":{"activeDeadlineSeconds":1}}`),
		Entry("a label of ours", `{"metadata":{"labels":{"codeact.dev/run-uid":"other"}}}`),
		Entry("a label of ours taken away", `{"metadata":{"labels":{"codeact.dev/run-uid":null}}}`),
		Entry("a new annotation of ours", `{"metadata":{"annotations":{"codeact.dev/bundle-digest":"other"}}}`),
		Entry("its finalizers", `{"metadata":{"finalizers":["example.test/hold"]}}`),
		Entry("its owner", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"y"}]}}`),
	)

	It("lets others label it, and the control plane and the kubelet do their work", func(ctx SpecContext) {
		Expect(patch(ctx, tenant(), `{"metadata":{"labels":{"team":"a"},"annotations":{"note":"x"}}}`)).To(Succeed())
		owner := `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"y"}]}}`
		Expect(patch(ctx, as("system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccounts", "system:serviceaccounts:kube-system"), owner)).To(Succeed())
		Expect(patch(ctx, as("system:kube-controller-manager", "system:authenticated"), `{"metadata":{"ownerReferences":null}}`)).To(Succeed())
		_, err := kubelet().CoreV1().Pods(s.ns).Patch(ctx, s.pod.Name, types.StrategicMergePatchType, []byte(`{"status":{"phase":"Running"}}`), metav1.PatchOptions{}, "status")
		Expect(err).NotTo(HaveOccurred())
		err = admin.SubResource("binding").Create(ctx, s.pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(tenant().CoreV1().Pods(s.ns).Delete(ctx, s.pod.Name, metav1.DeleteOptions{})).To(Succeed())
	})
})
