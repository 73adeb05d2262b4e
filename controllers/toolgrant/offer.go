package toolgrant

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// The indexes by which ToolGrants are found.
const (
	// IndexTool is the name of the grant's tool.
	IndexTool = "spec.tool.name"
	// IndexOffered is the same, of the grants only that runs of other namespaces
	// may use.
	IndexOffered = "offered"
	// IndexOfferedModel is the name of the ToolGrant, of the grants of models that
	// runs of other namespaces may use.
	IndexOfferedModel = "offeredModel"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// Offer is what a namespace could have its tools from.
type Offer struct {
	// Grants are all of the namespace, and those of others that are offered to some
	// namespace: whether it is this one is for contract.Eligible to say.
	Grants []v1alpha1.ToolGrant
	// NamespaceLabels are those of the namespace. They are only there beside a grant
	// of another one.
	NamespaceLabels map[string]string
}

// FindOffer reads the grants of these tools that runs of a namespace could use.
func FindOffer(ctx context.Context, c client.Reader, namespace string, tools []string) (Offer, error) {
	var o Offer
	foreign := false
	for _, tool := range tools {
		var own, offered v1alpha1.ToolGrantList
		if err := c.List(ctx, &own, client.InNamespace(namespace), client.MatchingFields{IndexTool: tool}); err != nil {
			return o, fmt.Errorf("list the ToolGrants of tool %s: %w", tool, err)
		}
		if err := c.List(ctx, &offered, client.MatchingFields{IndexOffered: tool}); err != nil {
			return o, fmt.Errorf("list the offered ToolGrants of tool %s: %w", tool, err)
		}
		o.Grants = append(o.Grants, own.Items...)
		for i := range offered.Items {
			if g := offered.Items[i]; g.Namespace != namespace {
				o.Grants, foreign = append(o.Grants, g), true
			}
		}
	}
	return o, o.labels(ctx, c, namespace, foreign)
}

// FindModel reads the grants that an agent of the namespace may mean by the name
// of its model: the one of its own, and those of models that others offer.
func FindModel(ctx context.Context, c client.Reader, namespace, name string) (Offer, error) {
	var o Offer
	own := &v1alpha1.ToolGrant{}
	switch err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, own); {
	case err == nil:
		o.Grants = append(o.Grants, *own)
	case client.IgnoreNotFound(err) != nil:
		return o, fmt.Errorf("get the ToolGrant of the model: %w", err)
	}
	var offered v1alpha1.ToolGrantList
	if err := c.List(ctx, &offered, client.MatchingFields{IndexOfferedModel: name}); err != nil {
		return o, fmt.Errorf("list the offered ToolGrants of model %s: %w", name, err)
	}
	foreign := false
	for i := range offered.Items {
		if g := offered.Items[i]; g.Namespace != namespace {
			o.Grants, foreign = append(o.Grants, g), true
		}
	}
	return o, o.labels(ctx, c, namespace, foreign)
}

// labels reads those of the namespace, where a foreign grant asks for them. Only
// the metadata is read, and cached.
func (o *Offer) labels(ctx context.Context, c client.Reader, namespace string, foreign bool) error {
	if !foreign {
		return nil
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	switch err := c.Get(ctx, client.ObjectKey{Name: namespace}, ns); {
	case apierrors.IsNotFound(err):
		// The cache has not seen it yet: a selector that asks for the absence of a
		// label would take it. When it comes, who waits for it is judged again.
		o.Grants = slices.DeleteFunc(o.Grants, func(g v1alpha1.ToolGrant) bool { return g.Namespace != namespace })
	case err != nil:
		return fmt.Errorf("get the Namespace: %w", err)
	}
	o.NamespaceLabels = ns.Labels
	return nil
}
