package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// warn says what a cluster would have in conditions and events of the run that is
// about to begin, and what cannot be reached from this process.
func (l *localRun) warn(b contract.Bundle) {
	c := meta.FindStatusCondition(l.m.run.Status.Conditions, v1alpha1.ConditionCatalogueComplete)
	if c != nil && c.Status == metav1.ConditionFalse {
		_, _ = fmt.Fprintf(l.errs, "%s: %s\n", c.Reason, c.Message)
	}
	creds := newSecretFiles(l.m, b)
	for _, t := range b.Tools {
		if t.Backend.CA != nil {
			_, _ = fmt.Fprintf(l.errs, "tool %s cannot be called here: the certificates of a caBundle need a cluster\n", t.Tool.Name)
		}
		if t.Auth.Type == contract.AuthNone {
			continue
		}
		if _, err := creds.Credential(t.Tool.Name); err != nil {
			_, _ = fmt.Fprintf(l.errs, "tool %s cannot be called here: %v\n", t.Tool.Name, err)
		}
	}
	if b.Agent == nil || b.Agent.Model.Auth.Type == contract.AuthNone {
		return
	}
	if _, err := creds.Credential(b.Agent.Model.Tool); err != nil {
		_, _ = fmt.Fprintf(l.errs, "the model cannot be asked here: %v\n", err)
	}
}
