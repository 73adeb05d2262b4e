package agentrun

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/status"
)

// catalogue writes into the bundle of a program that nobody has reviewed what its
// author could be shown of the tools. A program whose author could be shown none
// may call none.
func (l *look) catalogue(b *contract.Bundle) error {
	if l.Run.Spec.Recipe != nil {
		return nil
	}
	c, err := Catalogue(b.Tools)
	if err != nil {
		return err
	}
	b.Catalogue = c.Pinned()
	if l.native() {
		return contract.CheckOffer(b.Tools, b.Agent.Recipes, c)
	}
	if c.Step == contract.CatalogueEmpty {
		b.Tools, b.Labels = []contract.PinnedTool{}, nil
	}
	return nil
}

// Catalogue is the catalogue of those pinned tools that code may call.
func Catalogue(pinned []contract.PinnedTool) (contract.Catalogue, error) {
	return contract.NewCatalogue(contract.FromCode(pinned), contract.MaxCatalogueBytes)
}

// catalogueComplete says in a condition which step the pinned catalogue is at. What
// was said stays as long as the pin does, also when this look did not see it.
func catalogueComplete(c status.Conditions, st *v1alpha1.AgentRunStatus, pin *Pin) {
	set := func(s metav1.ConditionStatus, reason, message string) {
		c.Set(v1alpha1.ConditionCatalogueComplete, s, reason, message)
	}
	if was := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionCatalogueComplete); was != nil {
		set(was.Status, was.Reason, was.Message)
		return
	}
	if st.Pinned == nil || pin == nil || pin.Bundle.Catalogue == nil {
		return
	}
	const todo = "name fewer tools in the run, or shorten descriptions and schemas in their ToolGrants"
	switch pin.Bundle.Catalogue.Step {
	case contract.CatalogueFull:
		set(metav1.ConditionTrue, v1alpha1.ReasonFull, "the catalogue shows everything about the tools")
	case contract.CatalogueWithoutReturnSchemas:
		set(metav1.ConditionFalse, v1alpha1.ReasonReturnSchemasOmitted, fmt.Sprintf(
			"the catalogue of the tools has more than %d bytes, so it shows no outputSchema; to have them shown, %s", contract.MaxCatalogueBytes, todo))
	case contract.CatalogueEmpty:
		set(metav1.ConditionFalse, v1alpha1.ReasonCatalogueEmpty, fmt.Sprintf(
			"the catalogue of the tools has more than %d bytes even without any outputSchema, so it is empty and no tool may be called: %s", contract.MaxCatalogueBytes, todo))
	}
}

// tellCatalogue reports each step down of an execution's catalogue, once.
func (r *Reconciler) tellCatalogue(before, after *v1alpha1.AgentRun) {
	c := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionCatalogueComplete)
	if c == nil || c.Status != metav1.ConditionFalse {
		return
	}
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionCatalogueComplete)
	if was != nil && was.Reason == c.Reason && before.Status.ExecutionGeneration == after.Status.ExecutionGeneration {
		return
	}
	r.Events.Eventf(after, nil, corev1.EventTypeWarning, c.Reason, "Pin", "%s", contract.Truncate(c.Message, maxEventBytes))
}
