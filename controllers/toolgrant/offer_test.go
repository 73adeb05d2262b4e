package toolgrant_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/toolgrant"
)

// cache has the grants of one tool, and knows the namespace or not.
type cache struct {
	own, offered []v1alpha1.ToolGrant
	labels       map[string]string // nil: it does not know the namespace
}

func (c cache) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	to := list.(*v1alpha1.ToolGrantList)
	if to.Items = c.offered; o.Namespace != "" {
		to.Items = c.own
	}
	return nil
}

func (c cache) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if c.labels == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
	}
	o.SetLabels(c.labels)
	return nil
}

// TestOfferOfANamespaceThatIsNotKnown: a selector may ask for a label that is not
// there, and of a namespace that the cache has not seen yet none is known to be
// absent.
func TestOfferOfANamespaceThatIsNotKnown(t *testing.T) {
	grant := func(namespace, name string) v1alpha1.ToolGrant {
		return v1alpha1.ToolGrant{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	c := cache{own: []v1alpha1.ToolGrant{grant("team", "own")}, offered: []v1alpha1.ToolGrant{grant("platform", "offered")}}
	tests := map[string]struct {
		labels map[string]string
		want   []string
	}{
		"known":     {map[string]string{"env": "prod"}, []string{"own", "offered"}},
		"not known": {nil, []string{"own"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c.labels = tc.labels
			o, err := toolgrant.FindOffer(t.Context(), c, "team", []string{"x"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, g := range o.Grants {
				got = append(got, g.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("grants (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.labels, o.NamespaceLabels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}
