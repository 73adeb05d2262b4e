package agentrun

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// maxName keeps derived names usable as pod names, host names and label values.
const maxName = 63

// Name derives the name of the pod and of the pinned ConfigMap of one execution
// generation. It is a DNS label of at most 63 bytes, whatever the run is called,
// and depends on the run's UID, so that a run that is created anew never meets
// what its namesake left behind.
func Name(run *v1alpha1.AgentRun, generation int64) string {
	sum := sha256.Sum256([]byte(run.UID))
	suffix := fmt.Sprintf("-%s-%d", hex.EncodeToString(sum[:])[:10], generation)
	prefix := strings.ReplaceAll(run.Name, ".", "-")
	return strings.TrimRight(contract.Truncate(prefix, maxName-len(suffix)), "-") + suffix
}

// labelsOf are the labels of what belongs to one execution generation.
func labelsOf(run *v1alpha1.AgentRun, generation int64) map[string]string {
	return map[string]string{
		v1alpha1.LabelRun:              strings.TrimRight(contract.Truncate(run.Name, maxName), "-."),
		v1alpha1.LabelRunUID:           string(run.UID),
		v1alpha1.LabelGeneration:       fmt.Sprint(generation),
		"app.kubernetes.io/name":       "codeact-runtime",
		"app.kubernetes.io/managed-by": "codeact-operator",
	}
}

// ownedBy makes the garbage collector remove what belongs to the run with it.
func ownedBy(run *v1alpha1.AgentRun) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "AgentRun",
		Name: run.Name, UID: run.UID, Controller: &yes,
	}}
}

// ours reports whether the pod was launched for this run: it belongs to it and
// has the identity that only the manager may give to a pod.
func ours(run *v1alpha1.AgentRun, pod *corev1.Pod) bool {
	return pod != nil && metav1.IsControlledBy(pod, run) && pod.Spec.ServiceAccountName == contract.RuntimeServiceAccount
}
