package agentrun

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/runtimepod"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
)

// tokenSeconds is how long a projected token lasts; the kubelet renews it.
const tokenSeconds = 3600

// NewPod returns the one pod that executes the pin.
func NewPod(rt settings.Runtime, run *v1alpha1.AgentRun, pin *Pin) *corev1.Pod {
	volumes, mounts := volumesOf(pin)
	r := resourcesOf(run, pin.Bundle)
	pod := runtimepod.New(rt, runtimepod.Shape{
		Namespace: run.Namespace, Name: pin.Name,
		Labels:      labelsOf(run, pin.Bundle.Run.Generation),
		Annotations: pin.annotations(),
		Owner:       ownedBy(run)[0],
		Token:       true,
		Deadline:    run.Timeout() + podSlack,
		Command:     rt.Command,
		Env:         slices.Concat(envOf(pin, r), tracingOf(rt), proxyOf(rt.Proxy, pin.Bundle.Operator)),
		Resources:   r,
		Volumes:     volumes, Mounts: mounts,
	})
	pod.Labels[contract.LabelPod] = contract.PodOfRun
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
	return append([]corev1.EnvVar{
		{Name: contract.EnvBundleDigest, Value: pin.Digest},
		field(contract.EnvPodName, "metadata.name"),
		field(contract.EnvPodUID, "metadata.uid"),
	}, runtimepod.MemoryEnv(r)...)
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

// resourcesOf are the tenant's, filled up with what the limits of the program need.
func resourcesOf(run *v1alpha1.AgentRun, b contract.Bundle) corev1.ResourceRequirements {
	beside := int64(0)
	if b.Agent != nil {
		beside = agentHeadroom
	}
	var asked corev1.ResourceRequirements
	if run.Spec.Pod != nil && run.Spec.Pod.Resources != nil {
		r := run.Spec.Pod.Resources.DeepCopy()
		asked.Requests, asked.Limits = r.Requests, r.Limits
	}
	return runtimepod.Resources(asked, b.Limits, beside)
}
