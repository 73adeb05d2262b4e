// Package runtimepod is what all pods of the runtime have in common, whoever launches
// them: how they are hardened, the identity that they have, and what their state says.
package runtimepod

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

const (
	// runtimeUser is the user and group of the runtime: nobody in particular.
	runtimeUser = 65532
	// memoryHeadroom is what the runtime needs beside heap and stack, in bytes.
	memoryHeadroom = 64 << 20
)

// Shape is in what the pods of the runtime differ.
type Shape struct {
	Namespace, Name     string
	Labels, Annotations map[string]string
	// Owner is what the pod belongs to, and goes with.
	Owner metav1.OwnerReference
	// Token mounts the token of the runtime's ServiceAccount.
	Token bool
	// Deadline is when the kubelet ends the pod, from its start.
	Deadline time.Duration
	// Command is the program; empty is the image's own. Args are its arguments.
	Command, Args []string
	Env           []corev1.EnvVar
	Resources     corev1.ResourceRequirements
	Volumes       []corev1.Volume
	Mounts        []corev1.VolumeMount
}

// New returns a pod of the runtime. It passes the restricted Pod Security profile,
// and has the one identity that only the manager may give to a pod.
func New(rt settings.Runtime, s Shape) *corev1.Pod {
	no, yes, user, grace := false, true, int64(runtimeUser), int64(contract.PodGraceSeconds)
	deadline := int64((s.Deadline + time.Second - 1) / time.Second)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.Name, Labels: s.Labels, Annotations: s.Annotations,
			OwnerReferences: []metav1.OwnerReference{s.Owner},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ServiceAccountName:            contract.RuntimeServiceAccount,
			AutomountServiceAccountToken:  &s.Token,
			EnableServiceLinks:            &no,
			ActiveDeadlineSeconds:         &deadline,
			TerminationGracePeriodSeconds: &grace,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:                     contract.RuntimeContainer,
				Image:                    rt.Image,
				Command:                  s.Command,
				Args:                     s.Args,
				Env:                      s.Env,
				ImagePullPolicy:          rt.PullPolicy,
				Resources:                s.Resources,
				VolumeMounts:             s.Mounts,
				TerminationMessagePath:   contract.TerminationPath,
				TerminationMessagePolicy: corev1.TerminationMessageReadFile,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
			Volumes: s.Volumes,
		},
	}
}

// Resources fills up what is asked for with what a program under these limits needs,
// and so many bytes of memory beside it. A default request never exceeds a limit
// that is asked for. The argument is changed.
func Resources(asked corev1.ResourceRequirements, l contract.Limits, beside int64) corev1.ResourceRequirements {
	out := asked
	if out.Limits == nil {
		out.Limits = corev1.ResourceList{}
	}
	if out.Requests == nil {
		out.Requests = corev1.ResourceList{}
	}
	if _, ok := out.Limits[corev1.ResourceMemory]; !ok {
		need := resource.NewQuantity(roundUp(l.HeapBytes+l.StackBytes+memoryHeadroom+beside, 1<<20), resource.BinarySI)
		if asked, ok := out.Requests[corev1.ResourceMemory]; ok && asked.Cmp(*need) > 0 {
			*need = asked
		}
		out.Limits[corev1.ResourceMemory] = *need
	}
	for name, q := range map[corev1.ResourceName]resource.Quantity{
		corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
	} {
		if _, ok := out.Requests[name]; ok {
			continue
		}
		if most, ok := out.Limits[name]; ok && most.Cmp(q) < 0 {
			q = most
		}
		out.Requests[name] = q
	}
	return out
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// MemoryEnv tells the collector of the runtime the container's limit, so that it
// works harder near it instead of being killed at it. Without a limit there is none.
func MemoryEnv(r corev1.ResourceRequirements) []corev1.EnvVar {
	m, ok := r.Limits[corev1.ResourceMemory]
	if !ok {
		return nil
	}
	return []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: strconv.FormatInt(m.Value()/10*9, 10)}}
}
