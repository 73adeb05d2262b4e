package envtest

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

var _ = Describe("The samples", func() {
	DescribeTable("are accepted, Ready, and their run is launched", func(ctx SpecContext, folder, run string) {
		k := newKit(ctx)
		files, err := filepath.Glob(filepath.Join("..", "..", "config", "samples", folder, "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		for _, f := range files {
			if filepath.Base(f) == "kustomization.yaml" {
				continue
			}
			for doc := range strings.SplitSeq(string(must(os.ReadFile(f))), "\n---\n") {
				o := &unstructured.Unstructured{}
				Expect(yaml.Unmarshal([]byte(doc), &o.Object)).To(Succeed())
				o.SetNamespace(k.ns)
				Expect(admin.Create(ctx, o, client.FieldValidation("Strict"))).To(Succeed(), f)
			}
		}
		var gl v1alpha1.ToolGrantList
		Expect(admin.List(ctx, &gl, client.InNamespace(k.ns))).To(Succeed())
		var rl v1alpha1.RecipeList
		Expect(admin.List(ctx, &rl, client.InNamespace(k.ns))).To(Succeed())
		for i := range gl.Items {
			Expect(k.judge(&gl.Items[i]).Status).To(Equal(metav1.ConditionTrue), gl.Items[i].Name)
		}
		for i := range rl.Items {
			Expect(k.judge(&rl.Items[i]).Status).To(Equal(metav1.ConditionTrue), rl.Items[i].Name)
		}
		expectEnd(k.look(run), metav1.ConditionUnknown, v1alpha1.ReasonRunning)
	},
		Entry("of a recipe", "", "reorder-bolts"),
		Entry("of an agent", "agent", "which-runs-out"),
	)
})
