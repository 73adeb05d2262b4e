package policy

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// mediaMap is what a runtime pod leaves behind, under another name if it is told
// one, changed by the edits.
func mediaMap(name string, edits ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	yes := true
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "codeact.dev/v1alpha1", Kind: "AgentRun", Name: "run", UID: "run-uid", Controller: &yes,
		}}},
		Immutable: &yes,
		Data:      map[string]string{contract.MediaKey: "{}"},
	}
	for _, e := range edits {
		e(cm)
	}
	return cm
}

// transcriptMap is the other one.
func transcriptMap(name string, edits ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	return mediaMap(name, append([]func(*corev1.ConfigMap){func(cm *corev1.ConfigMap) {
		cm.Data, cm.BinaryData = nil, map[string][]byte{contract.TranscriptKey: []byte("lines")}
	}}, edits...)...)
}

func kubeWith(token string) kubernetes.Interface {
	GinkgoHelper()
	c := rest.AnonymousClientConfig(cfg)
	c.BearerToken = token
	return kubernetes.NewForConfigOrDie(c)
}

// keep creates the ConfigMap as the bearer of the token.
func (s *stage) keep(ctx context.Context, token string, cm *corev1.ConfigMap) error {
	GinkgoHelper()
	_, err := kubeWith(token).CoreV1().ConfigMaps(s.ns).Create(ctx, cm, metav1.CreateOptions{})
	return err
}

var _ = Describe("codeact-runtime-results", func() {
	var s *stage
	BeforeEach(func(ctx SpecContext) { s = newStage(ctx) })

	It("lets a pod leave the media of its own run, once", func(ctx SpecContext) {
		cm := mediaMap(contract.MediaName(s.pod.Name))
		Expect(s.keep(ctx, s.token, cm)).To(Succeed())
		Expect(apierrors.IsAlreadyExists(s.keep(ctx, s.token, cm))).To(BeTrue())
	})

	It("lets a pod leave the transcript of its own run, up to its bound, once", func(ctx SpecContext) {
		cm := transcriptMap(contract.TranscriptName(s.pod.Name), func(cm *corev1.ConfigMap) {
			cm.BinaryData[contract.TranscriptKey] = make([]byte, contract.MaxTranscriptBytes)
		})
		Expect(s.keep(ctx, s.token, cm)).To(Succeed())
		Expect(apierrors.IsAlreadyExists(s.keep(ctx, s.token, cm))).To(BeTrue())
	})

	DescribeTable("refuses every other transcript",
		func(ctx SpecContext, edit func(*corev1.ConfigMap), want string) {
			Expect(s.keep(ctx, s.token, transcriptMap(contract.TranscriptName(s.pod.Name), edit))).To(beForbidden(want))
		},
		Entry("one that can change", func(cm *corev1.ConfigMap) { cm.Immutable = nil }, "must be immutable"),
		Entry("another key", func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{"x": nil} }, "transcript.jsonl.gz alone"),
		Entry("a second key", func(cm *corev1.ConfigMap) { cm.BinaryData["x"] = []byte("y") }, "transcript.jsonl.gz alone"),
		Entry("text", func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"x": "y"} }, "transcript.jsonl.gz alone"),
		Entry("too much", func(cm *corev1.ConfigMap) {
			cm.BinaryData[contract.TranscriptKey] = make([]byte, contract.MaxTranscriptBytes+1)
		}, "900000 bytes"),
		Entry("media", func(cm *corev1.ConfigMap) { cm.BinaryData, cm.Data = nil, map[string]string{contract.MediaKey: "{}"} }, "transcript.jsonl.gz alone"),
		Entry("no owner", func(cm *corev1.ConfigMap) { cm.OwnerReferences = nil }, "belong to one AgentRun"),
	)

	DescribeTable("refuses every other ConfigMap",
		func(ctx SpecContext, name func() string, edit func(*corev1.ConfigMap), want string) {
			Expect(s.keep(ctx, s.token, mediaMap(name(), edit))).To(beForbidden(want))
		},
		Entry("another name", func() string { return "mine" }, func(*corev1.ConfigMap) {}, "with the name"),
		Entry("the pod's own name, which is the pin's", own(&s, ""), func(*corev1.ConfigMap) {}, "with the name"),
		Entry("a generated name", func() string { return "" }, func(cm *corev1.ConfigMap) { cm.GenerateName = "pod-media" }, "with the name"),
		Entry("one that can change", own(&s, "-media"), func(cm *corev1.ConfigMap) { cm.Immutable = nil }, "must be immutable"),
		Entry("another key", own(&s, "-media"), func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"bundle.json": "{}"} }, "media.json alone"),
		Entry("a second key", own(&s, "-media"), func(cm *corev1.ConfigMap) { cm.Data["x"] = "y" }, "media.json alone"),
		Entry("binary data", own(&s, "-media"), func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{"x": []byte("y")} }, "media.json alone"),
		Entry("too much", own(&s, "-media"), func(cm *corev1.ConfigMap) { cm.Data[contract.MediaKey] = strings.Repeat("x", 900_001) }, "900000"),
		Entry("no owner", own(&s, "-media"), func(cm *corev1.ConfigMap) { cm.OwnerReferences = nil }, "belong to one AgentRun"),
		Entry("another owner", own(&s, "-media"), func(cm *corev1.ConfigMap) { cm.OwnerReferences[0].Kind = "Recipe" }, "belong to one AgentRun"),
		Entry("a finalizer", own(&s, "-media"), func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"codeact.dev/stay"} }, "belong to one AgentRun"),
	)

	It("refuses every token that is bound to no pod, or to one elsewhere", func(ctx SpecContext) {
		cm := mediaMap(contract.MediaName(s.pod.Name))
		Expect(s.keep(ctx, s.requestToken(ctx, nil), cm)).To(beForbidden("with the name"))
		Expect(s.keep(ctx, newStage(ctx).token, cm)).To(beForbidden("in its own namespace"))
	})

	It("lets a pod neither change nor delete one, whatever RBAC says", func(ctx SpecContext) {
		cm := mediaMap("pin")
		cm.Immutable = nil
		Expect(admin.Create(ctx, func() *corev1.ConfigMap { cm.Namespace = s.ns; return cm }())).To(Succeed())
		maps := kubeWith(s.token).CoreV1().ConfigMaps(s.ns)
		_, err := maps.Patch(ctx, "pin", types.MergePatchType, []byte(`{"data":{"media.json":"mine"}}`), metav1.PatchOptions{})
		Expect(err).To(beForbidden("neither change nor delete"))
		Expect(maps.Delete(ctx, "pin", metav1.DeleteOptions{})).To(beForbidden("neither change nor delete"))
	})

	It("lets a report name that ConfigMap only", func(ctx SpecContext) {
		media := func(name string) map[string]any {
			return map[string]any{"media": map[string]any{
				"configMap": name, "digest": contract.Digest([]byte("{}")), "seq": int64(1),
				"geometry": map[string]any{"width": int64(1), "height": int64(1)},
			}}
		}
		Expect(s.apply(ctx, s.token, s.report(media("other-media")))).To(beForbidden("must name the ConfigMap of the pod"))
		Expect(s.apply(ctx, s.token, s.report(media(contract.MediaName(s.pod.Name))))).To(Succeed())
	})

	It("lets a report name that transcript only, or none that is stored", func(ctx SpecContext) {
		transcript := func(name string) map[string]any {
			x := map[string]any{"lastHash": contract.Digest(nil), "records": int64(1)}
			if name != "" {
				x["configMap"] = name
			}
			return map[string]any{"transcript": x}
		}
		Expect(s.apply(ctx, s.token, s.report(transcript("other-transcript")))).To(beForbidden("must name the ConfigMap of the pod"))
		Expect(s.apply(ctx, s.token, s.report(transcript("")))).To(Succeed())
		Expect(s.apply(ctx, s.token, s.report(transcript(contract.TranscriptName(s.pod.Name))))).To(Succeed())
	})

	It("does not stand in anybody else's way", func(ctx SpecContext) {
		_, err := tenant().CoreV1().ConfigMaps(s.ns).Create(ctx, mediaMap("a", func(cm *corev1.ConfigMap) { cm.OwnerReferences = nil }), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	})
})

// own is the name of the stage's pod with a suffix, once there is a stage.
func own(s **stage, suffix string) func() string {
	return func() string { return (*s).pod.Name + suffix }
}
