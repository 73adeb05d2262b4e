package recipe

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/status"
)

// Settle words the plan as the recipe's status.
func Settle(s Snapshot, p Plan) v1alpha1.RecipeStatus {
	r := s.Recipe
	st := *r.Status.DeepCopy()
	st.ObservedGeneration = r.Generation
	st.ToolName = r.EffectiveToolName()
	st.SourceDigest = r.SourceDigest()
	st.InputSchemaDigest, st.ManifestDigest = "", ""
	if b, err := contract.Canonical(r.InputSchema()); err == nil {
		st.InputSchemaDigest = contract.Digest(b)
	}
	if d, err := r.ManifestDigest(); err == nil {
		st.ManifestDigest = d
	}
	st.Tools, st.Tests = p.Tools, p.Tests.Record

	c := status.On(&st.Conditions, r.Generation, s.Now)
	part(c, v1alpha1.ConditionSourceVerified, v1alpha1.ReasonVerified, sourceMessage(p.Note), p.Source)
	part(c, v1alpha1.ConditionSchemaValid, v1alpha1.ReasonValid, "every schema compiles", p.Schema)
	c.Set(v1alpha1.ConditionTestsPassed, p.Tests.Condition.Status, p.Tests.Condition.Reason, p.Tests.Condition.Message)
	part(c, v1alpha1.ConditionToolsResolved, v1alpha1.ReasonResolved, toolsMessage(len(p.Tools)), missing(p.Tools))
	enabled := metav1.ConditionTrue
	reason, message, accepted := v1alpha1.ReasonEnabled, "runs may execute recipes in this namespace", "runs may execute this recipe"
	if p.Disabled != "" {
		enabled = metav1.ConditionFalse
		reason, message, accepted = string(contract.ReasonDisabled), p.Disabled, "runs may execute this recipe wherever it is enabled; here they end as Disabled"
	}
	c.Set(v1alpha1.ConditionEnabled, enabled, reason, message)
	switch p.Verb {
	case VerbAccept:
		c.Set(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, accepted)
		c.Done()
	case VerbWait:
		reason, message := p.Tests.Condition.Reason, p.Tests.Condition.Message
		if p.Fault != nil {
			reason, message = string(p.Fault.Reason), p.Fault.Message
		}
		c.Set(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
		c.Working(reason, message)
	case VerbRefuse:
		c.Set(v1alpha1.ConditionReady, metav1.ConditionFalse, string(p.Fault.Reason), status.Describe(p.Fault))
		c.Stuck(string(p.Fault.Reason), status.Describe(p.Fault))
	}
	return st
}

// part writes the condition of one part of the recipe: True, or the fault.
func part(c status.Conditions, kind, reason, message string, f *contract.Fault) {
	if f != nil {
		c.Set(kind, metav1.ConditionFalse, string(f.Reason), status.Describe(f))
		return
	}
	c.Set(kind, metav1.ConditionTrue, reason, message)
}

func sourceMessage(note string) string {
	if note == "" {
		return "the source passes the static check"
	}
	return "the source passes the static check; warning: " + note
}

func toolsMessage(n int) string {
	if n == 0 {
		return "the recipe calls no tools"
	}
	return fmt.Sprintf("all %d tools have a usable grant", n)
}
