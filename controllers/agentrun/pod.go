package agentrun

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

const (
	// runtimeUser is the user and group of the runtime: nobody in particular.
	runtimeUser = 65532
	// tokenSeconds is how long a projected token lasts; the kubelet renews it.
	tokenSeconds = 3600
	// memoryHeadroom is what the runtime needs beside heap and stack, in bytes.
	memoryHeadroom = 64 << 20
)

// NewPod returns the one pod that executes the pin.
func NewPod(rt settings.Runtime, run *v1alpha1.AgentRun, pin *Pin) *corev1.Pod {
	no, yes, user, grace := false, true, int64(runtimeUser), int64(contract.PodGraceSeconds)
	deadline := int64((run.Timeout() + podSlack + time.Second - 1) / time.Second)
	volumes, mounts := volumesOf(pin)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: run.Namespace, Name: pin.Name,
			Labels:          labelsOf(run, pin.Bundle.Run.Generation),
			Annotations:     pin.annotations(),
			OwnerReferences: ownedBy(run),
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ServiceAccountName:            contract.RuntimeServiceAccount,
			AutomountServiceAccountToken:  &yes,
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
				Command:                  rt.Command,
				ImagePullPolicy:          rt.PullPolicy,
				Resources:                resourcesOf(run, pin.Bundle),
				VolumeMounts:             mounts,
				TerminationMessagePath:   contract.TerminationPath,
				TerminationMessagePolicy: corev1.TerminationMessageReadFile,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
			Volumes: volumes,
		},
	}
	c := &pod.Spec.Containers[0]
	c.Env = slices.Concat(envOf(pin, c.Resources), tracingOf(rt), proxyOf(rt.Proxy, pin.Bundle.Operator))
	place(&pod.Spec, run.Spec.Pod)
	return pod
}

// place applies what a tenant may choose of the pod.
func place(spec *corev1.PodSpec, o *v1alpha1.PodOptions) {
	if o == nil {
		return
	}
	spec.NodeSelector, spec.Tolerations = o.NodeSelector, o.Tolerations
	spec.RuntimeClassName, spec.PriorityClassName = o.RuntimeClassName, o.PriorityClassName
}

func envOf(pin *Pin, r corev1.ResourceRequirements) []corev1.EnvVar {
	field := func(name, p string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: p}}}
	}
	env := []corev1.EnvVar{
		{Name: contract.EnvBundleDigest, Value: pin.Digest},
		field(contract.EnvPodName, "metadata.name"),
		field(contract.EnvPodUID, "metadata.uid"),
	}
	if m, ok := r.Limits[corev1.ResourceMemory]; ok {
		// The collector works harder near the container's limit instead of being killed at it.
		env = append(env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: strconv.FormatInt(m.Value()/10*9, 10)})
	}
	return env
}

// tracingOf names the collector of traces, if there is one.
func tracingOf(rt settings.Runtime) []corev1.EnvVar {
	if rt.TraceEndpoint == "" {
		return nil
	}
	return []corev1.EnvVar{{Name: contract.EnvTraceEndpoint, Value: literal(rt.TraceEndpoint)}}
}

// proxyOf names the proxies for calls of tools, where the run may use them. The
// API server is never reached through one: the kubelet fills in its address.
func proxyOf(p settings.Proxy, o contract.OperatorPolicy) []corev1.EnvVar {
	if !o.ProxyFromEnvironment || p.HTTP == "" && p.HTTPS == "" {
		return nil
	}
	no := "$(KUBERNETES_SERVICE_HOST)"
	if p.No != "" {
		no = literal(p.No) + "," + no
	}
	var env []corev1.EnvVar
	for _, x := range []corev1.EnvVar{
		{Name: settings.EnvHTTPProxy, Value: literal(p.HTTP)}, {Name: settings.EnvHTTPSProxy, Value: literal(p.HTTPS)},
		{Name: settings.EnvNoProxy, Value: no},
	} {
		if x.Value != "" {
			env = append(env, x)
		}
	}
	return env
}

// literal keeps the kubelet from taking a part of the value for a variable.
func literal(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// volumesOf mounts the pin, and one folder for each tool, and for the model, that
// has a credential, or root certificates of its own. A folder, not a file: the
// kubelet renews it when what it holds changes.
func volumesOf(pin *Pin) ([]corev1.Volume, []corev1.VolumeMount) {
	volumes := []corev1.Volume{{Name: "bundle", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: pin.Name},
		Items:                []corev1.KeyToPath{{Key: contract.BundleKey, Path: contract.BundleKey}},
	}}}}
	mounts := []corev1.VolumeMount{{Name: "bundle", MountPath: contract.BundleDir, ReadOnly: true}}
	add := func(kind, file string, source corev1.VolumeSource) {
		name := fmt.Sprintf("%s-%d", kind, len(volumes))
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: source})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: path.Dir(file), ReadOnly: true})
	}
	mount := func(tool string, a contract.Auth, ca *contract.CABundle) {
		if p := credential(a); p != nil {
			add("auth", contract.CredentialPath(tool), corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{*p}},
			})
		}
		if ca != nil {
			file := contract.CAPath(tool)
			add("ca", file, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: ca.ConfigMap},
				Items:                []corev1.KeyToPath{{Key: ca.Key, Path: path.Base(file)}},
			}})
		}
	}
	for _, t := range pin.Bundle.Tools {
		mount(t.Tool.Name, t.Auth, t.Backend.CA)
	}
	if a := pin.Bundle.Agent; a != nil {
		mount(a.Model.Tool, a.Model.Auth, a.Model.CA)
	}
	return volumes, mounts
}

func credential(a contract.Auth) *corev1.VolumeProjection {
	file := path.Base(contract.CredentialPath("x"))
	switch a.Type {
	case contract.AuthSecretRef:
		return &corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: a.SecretName},
			Items:                []corev1.KeyToPath{{Key: a.SecretKey, Path: file}},
		}}
	case contract.AuthServiceAccountToken:
		seconds := int64(tokenSeconds)
		return &corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: a.Audience, ExpirationSeconds: &seconds, Path: file,
		}}
	case contract.AuthNone:
	}
	return nil
}

// resourcesOf are the tenant's, filled up with what the limits of the program
// need. A default request never exceeds a limit that the tenant has set.
func resourcesOf(run *v1alpha1.AgentRun, b contract.Bundle) corev1.ResourceRequirements {
	beside := int64(memoryHeadroom)
	if b.Agent != nil {
		beside += agentHeadroom
	}
	var out corev1.ResourceRequirements
	if run.Spec.Pod != nil && run.Spec.Pod.Resources != nil {
		asked := run.Spec.Pod.Resources.DeepCopy()
		out.Requests, out.Limits = asked.Requests, asked.Limits
	}
	if out.Limits == nil {
		out.Limits = corev1.ResourceList{}
	}
	if out.Requests == nil {
		out.Requests = corev1.ResourceList{}
	}
	if _, ok := out.Limits[corev1.ResourceMemory]; !ok {
		need := resource.NewQuantity(roundUp(b.Limits.HeapBytes+b.Limits.StackBytes+beside, 1<<20), resource.BinarySI)
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
