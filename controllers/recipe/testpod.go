package recipe

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/runtimepod"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

// Check is what one check pod is to run, with its bytes and digest.
type Check struct {
	contract.Check
	// Raw are the canonical bytes, Digest is their digest.
	Raw    []byte
	Digest string
}

const (
	// mostTestTime bounds the tests of one recipe, however many there are.
	mostTestTime = 10 * time.Minute
	// testSlack is what the tests of one recipe have beside the sum of their limits.
	testSlack = 10 * time.Second
	// podSlack is what a check pod has beside the time of its tests.
	podSlack = 60 * time.Second
)

// newCheck gathers what the tests of a recipe need. A fault is one of the recipe.
func newCheck(op settings.Operator, r *v1alpha1.Recipe) (*Check, *contract.Fault) {
	digest, err := r.ManifestDigest()
	if err != nil {
		return nil, contract.Faultf(contract.ReasonSchemaInvalid, "%v", err)
	}
	limits := op.Limits(r.Spec.Limits, nil)
	timeout := min(time.Duration(len(r.Spec.Tests))*limits.WallClock()+testSlack, mostTestTime)
	c := &Check{Check: contract.Check{
		Recipe: r.EffectiveToolName(), ManifestDigest: digest,
		Source: r.Spec.Source, InputSchema: r.InputSchema(), OutputSchema: r.OutputSchema(), Tools: r.Spec.Tools,
		Limits: limits, TimeoutMs: timeout.Milliseconds(), Tests: r.Spec.Tests,
	}}
	if c.Raw, c.Digest, err = c.Encode(); err != nil {
		return nil, asFault(err, contract.ReasonSchemaInvalid)
	}
	return c, nil
}

// deadline is when the kubelet ends the pod, from its start.
func (c *Check) deadline() time.Duration {
	return time.Duration(c.TimeoutMs)*time.Millisecond + podSlack
}

// maxName keeps derived names usable as pod names and label values.
const maxName = 63

// CheckName derives the name of the check pod, and of its ConfigMap, of one attempt
// to run the tests of one manifest of one recipe. It is a DNS label of at most 63
// bytes, and depends on the UID, so that a recipe that is created anew never meets
// what its namesake left behind.
func CheckName(r *v1alpha1.Recipe, manifestDigest string, attempt int64) string {
	sum := sha256.Sum256([]byte(string(r.UID) + " " + manifestDigest))
	suffix := fmt.Sprintf("-check-%s-%d", hex.EncodeToString(sum[:])[:10], attempt)
	prefix := strings.ReplaceAll(r.Name, ".", "-")
	return strings.TrimRight(contract.Truncate(prefix, maxName-len(suffix)), "-") + suffix
}

func checkLabels(r *v1alpha1.Recipe) map[string]string {
	return map[string]string{
		contract.LabelPod:              contract.PodOfCheck,
		v1alpha1.LabelRecipe:           strings.TrimRight(contract.Truncate(r.Name, maxName), "-."),
		v1alpha1.LabelRecipeUID:        string(r.UID),
		"app.kubernetes.io/name":       "codeact-check",
		"app.kubernetes.io/managed-by": "codeact-operator",
	}
}

// NewCheckPod returns the pod that runs the tests. It has the runtime's identity, so
// that nobody else may launch or change it, and no token of it.
func NewCheckPod(rt settings.Runtime, r *v1alpha1.Recipe, c *Check, attempt int64) *corev1.Pod {
	name := CheckName(r, c.ManifestDigest, attempt)
	resources := runtimepod.Resources(corev1.ResourceRequirements{}, c.Limits, 0)
	command := rt.Command
	if n := len(command); n > 1 && command[n-1] == "run" {
		command = command[:n-1]
	}
	yes := true
	return runtimepod.New(rt, runtimepod.Shape{
		Namespace: r.Namespace, Name: name,
		Labels:      checkLabels(r),
		Annotations: map[string]string{v1alpha1.AnnotationCheckDigest: c.Digest},
		Owner: metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "Recipe", Name: r.Name, UID: r.UID, Controller: &yes,
		},
		Deadline: c.deadline(),
		Command:  command, Args: []string{contract.CheckCommand},
		Env:       append([]corev1.EnvVar{{Name: contract.EnvCheckDigest, Value: c.Digest}}, runtimepod.MemoryEnv(resources)...),
		Resources: resources,
		Volumes: []corev1.Volume{{Name: "check", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name},
			Items:                []corev1.KeyToPath{{Key: contract.CheckKey, Path: contract.CheckKey}},
		}}}},
		Mounts: []corev1.VolumeMount{{Name: "check", MountPath: contract.CheckDir, ReadOnly: true}},
	})
}

// ConfigMap returns the immutable ConfigMap that the pod mounts, and goes with.
func (c *Check) ConfigMap(r *v1alpha1.Recipe, pod *corev1.Pod) *corev1.ConfigMap {
	yes := true
	labels := checkLabels(r)
	delete(labels, contract.LabelPod)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, Labels: labels,
			Annotations:     map[string]string{v1alpha1.AnnotationCheckDigest: c.Digest},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: &yes}},
		},
		Immutable: &yes,
		Data:      map[string]string{contract.CheckKey: string(c.Raw)},
	}
}

// ours reports whether the pod was launched for this recipe: it belongs to it and
// has the identity that only the manager may give to a pod.
func ours(r *v1alpha1.Recipe, pod *corev1.Pod) bool {
	return pod != nil && metav1.IsControlledBy(pod, r) && pod.Spec.ServiceAccountName == contract.RuntimeServiceAccount
}
