package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// warn says what a cluster would have in conditions and events of the run that is
// about to begin, and which tools cannot be called in this process.
func (l *localRun) warn(tools []contract.PinnedTool) {
	c := meta.FindStatusCondition(l.m.run.Status.Conditions, v1alpha1.ConditionCatalogueComplete)
	if c != nil && c.Status == metav1.ConditionFalse {
		_, _ = fmt.Fprintf(l.errs, "%s: %s\n", c.Reason, c.Message)
	}
	for _, t := range tools {
		if t.Backend.CA != nil {
			_, _ = fmt.Fprintf(l.errs, "tool %s cannot be called here: the certificates of a caBundle need a cluster\n", t.Tool.Name)
		}
		if t.Auth.Type == contract.AuthNone {
			continue
		}
		if _, err := (secretFiles{l.m, tools}).Credential(t.Tool.Name); err != nil {
			_, _ = fmt.Fprintf(l.errs, "tool %s cannot be called here: %v\n", t.Tool.Name, err)
		}
	}
}
