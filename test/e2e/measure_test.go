package e2e

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// These specs take long and judge little: make e2e MEASURE=1 runs them, on a
// machine that does nothing else.
var _ = Describe("measured", Label("measure"), Serial, func() {
	var s *scene
	BeforeEach(func(ctx SpecContext) {
		if os.Getenv("MEASURE") == "" {
			Skip("MEASURE is not set")
		}
		s = newScene(ctx)
	})

	It("a run costs little more than a bare pod", func(ctx SpecContext) {
		kinds := []string{"pod", "job", "run"}
		times := map[string][]time.Duration{}
		for i := range 21 {
			for _, kind := range kinds {
				o := s.subject(kind, fmt.Sprintf("%s-%d", kind, i))
				d := untilDone(ctx, o)
				if i > 0 { // the first of each warms the caches
					times[kind] = append(times[kind], d)
				}
				Expect(k8s.Delete(ctx, o, client.PropagationPolicy("Background"))).To(Succeed())
			}
		}
		pod := median(times["pod"])
		for _, kind := range kinds {
			AddReportEntry(kind, fmt.Sprintf("median %v, max %v, %.2f times a pod",
				median(times[kind]).Round(time.Millisecond), slices.Max(times[kind]).Round(time.Millisecond), float64(median(times[kind]))/float64(pod)))
		}
	}, SpecTimeout(10*time.Minute))

	It("a run costs few writes", func(ctx SpecContext) {
		const n = 10
		for _, kind := range []string{"pod", "job", "run"} {
			sub := newScene(ctx)
			untilDone(ctx, sub.subject(kind, kind+"-first")) // makes what a namespace has once
			first := settledWrites(ctx, sub.ns)
			for i := range n {
				untilDone(ctx, sub.subject(kind, fmt.Sprintf("%s-%d", kind, i)))
			}
			all, total := settledWrites(ctx, sub.ns), 0
			for resource := range all {
				all[resource] -= first[resource]
				total += all[resource]
			}
			AddReportEntry(kind, fmt.Sprintf("%.1f writes: %v", float64(total)/n, all))
		}
	}, SpecTimeout(10*time.Minute))

	It("a hundred at once", func(ctx SpecContext) {
		const n = 100
		for _, kind := range []string{"pod", "run"} {
			sub := newScene(ctx)
			begin := time.Now()
			for i := range n {
				Expect(k8s.Create(ctx, sub.subject(kind, fmt.Sprintf("%s-%d", kind, i)))).To(Succeed())
			}
			Eventually(func() int { return sub.done(ctx, kind) }).WithContext(ctx).WithTimeout(8 * time.Minute).Should(Equal(n))
			d := time.Since(begin)
			AddReportEntry(kind, fmt.Sprintf("%d in %v: %.2f a second", n, d.Round(time.Millisecond), n/d.Seconds()))
			Expect(k8s.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(sub.ns), client.GracePeriodSeconds(0))).To(Succeed())
		}
	}, SpecTimeout(20*time.Minute))
})

// subject is one thing to time, with the same image and the same resources.
func (s *scene) subject(kind, name string) client.Object {
	m := metav1.ObjectMeta{Namespace: s.ns, Name: name}
	if kind == "run" {
		r := &v1alpha1.AgentRun{ObjectMeta: m}
		r.Spec.Code = &v1alpha1.CodeSpec{Source: plain}
		return r
	}
	no, yes, user := false, true, int64(65532)
	spec := corev1.PodSpec{
		RestartPolicy:                corev1.RestartPolicyNever,
		AutomountServiceAccountToken: &no,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: &yes, RunAsUser: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: contract.RuntimeContainer, Image: image, Command: []string{"/manager", "-h"},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
	if kind == "job" {
		return &batchv1.Job{ObjectMeta: m, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}
	}
	return &corev1.Pod{ObjectMeta: m, Spec: spec}
}

// finished reports how o ended, or "" while it goes on.
func finished(o client.Object) string {
	switch o := o.(type) {
	case *v1alpha1.AgentRun:
		if c := succeededOf(o); c.Status != metav1.ConditionUnknown {
			return string(c.Status)
		}
	case *corev1.Pod:
		if o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed {
			return string(o.Status.Phase)
		}
	case *batchv1.Job:
		for _, c := range o.Status.Conditions {
			if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
				return string(c.Type)
			}
		}
	}
	return ""
}

// untilDone creates o and returns how long it took until a watch saw its end.
func untilDone(ctx context.Context, o client.Object) time.Duration {
	GinkgoHelper()
	var list client.ObjectList
	switch o.(type) {
	case *v1alpha1.AgentRun:
		list = &v1alpha1.AgentRunList{}
	case *corev1.Pod:
		list = &corev1.PodList{}
	default:
		list = &batchv1.JobList{}
	}
	watching, err := client.NewWithWatch(cfg, client.Options{Scheme: k8s.Scheme(), Mapper: k8s.RESTMapper()})
	Expect(err).NotTo(HaveOccurred())
	w, err := watching.Watch(ctx, list, client.InNamespace(o.GetNamespace()),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", o.GetName())})
	Expect(err).NotTo(HaveOccurred())
	defer w.Stop()
	begin := time.Now()
	Expect(k8s.Create(ctx, o)).To(Succeed())
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		select {
		case e, open := <-w.ResultChan():
			Expect(open).To(BeTrue(), "the watch broke off")
			if e.Type != watch.Modified {
				continue
			}
			if end := finished(e.Object.(client.Object)); end != "" {
				Expect(end).To(BeElementOf("True", "Succeeded", "Complete"))
				return time.Since(begin)
			}
		case <-deadline.C:
			Fail("it did not end")
		}
	}
}

// done counts the objects of the kind that have ended.
func (s *scene) done(ctx context.Context, kind string) int {
	GinkgoHelper()
	n := 0
	if kind == "pod" {
		list := &corev1.PodList{}
		Expect(k8s.List(ctx, list, client.InNamespace(s.ns))).To(Succeed())
		for i := range list.Items {
			if finished(&list.Items[i]) != "" {
				n++
			}
		}
		return n
	}
	list := &v1alpha1.AgentRunList{}
	Expect(k8s.List(ctx, list, client.InNamespace(s.ns))).To(Succeed())
	for i := range list.Items {
		if finished(&list.Items[i]) != "" {
			n++
		}
	}
	return n
}

// settledWrites counts when the counts no longer change: the kubelet's and the
// controllers' last writes come after the end.
func settledWrites(ctx context.Context, namespace string) map[string]int {
	GinkgoHelper()
	var last map[string]int
	Eventually(func() bool {
		before := last
		last = writes(namespace)
		return maps.Equal(before, last)
	}).WithContext(ctx).WithPolling(5 * time.Second).Should(BeTrue())
	return last
}

// writes counts the successful writes to a namespace in the audit log, by
// resource. The namespace itself does not count.
func writes(namespace string) map[string]int {
	GinkgoHelper()
	path := strings.TrimSpace(command(context.Background(), os.Getenv("CODEACT_CLUSTER"), "path", "audit"))
	f, err := os.Open(path)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = f.Close() }()
	out := map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Stage     string
			ObjectRef struct{ Resource, Subresource, Namespace string }
			Response  struct{ Code int } `json:"responseStatus"`
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.ObjectRef.Namespace != namespace || e.Stage != "ResponseComplete" || e.Response.Code >= 300 {
			continue
		}
		name := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			name += "/" + e.ObjectRef.Subresource
		}
		if name != "namespaces" && name != "namespaces/finalize" {
			out[name]++
		}
	}
	Expect(lines.Err()).NotTo(HaveOccurred())
	return out
}

func median[T cmp.Ordered](d []T) T {
	slices.Sort(d)
	return d[len(d)/2]
}
