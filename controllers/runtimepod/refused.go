package runtimepod

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// RetryQuota is how long a launch that was refused waits for the next try.
const RetryQuota = 5 * time.Second

// Refused words a refusal by quota or policy, which is something to wait for; the
// reason is empty for no error, and for one that may be a hiccup.
func Refused(err error, what string) (reason, message string) {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return v1alpha1.ReasonWaiting, "the namespace is being deleted"
	case apierrors.IsForbidden(err) && quota(err.Error()):
		return string(contract.ReasonQuotaExceeded), err.Error()
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return v1alpha1.ReasonWaiting, "the API server refuses to launch " + what + ": " + err.Error()
	}
	return "", ""
}

// quota tells the refusals of ResourceQuota and LimitRange, which say
// Forbidden like any other, by the words of the two admission plugins.
func quota(msg string) bool {
	for _, w := range []string{"exceeded quota", "failed quota", "unknown for quota", " usage per ", "limit to request ratio"} {
		if strings.Contains(msg, w) {
			return true
		}
	}
	return false
}
