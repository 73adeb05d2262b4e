package runtimepod

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// Ended reports whether the pod can do nothing any more. Its phase alone says
// nothing about success.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || Terminated(pod) != nil
}

// Terminated is the end of the runtime container, or nil.
func Terminated(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	if pod == nil {
		return nil
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == contract.RuntimeContainer {
			return c.State.Terminated
		}
	}
	return nil
}

// patience is how long a pod may be created before it is said that it waits.
const patience = 30 * time.Second

// StartsBy is when a pod that has not started gets to be a trouble; zero for one
// that has.
func StartsBy(pod *corev1.Pod) time.Time {
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" {
		return time.Time{}
	}
	return pod.CreationTimestamp.Add(patience)
}

const imageTrouble = "the image of the runtime cannot be pulled"

// Trouble says what keeps a pod from starting, or "" when nothing does.
func Trouble(pod *corev1.Pod, now time.Time) string {
	if pod == nil || StartsBy(pod).IsZero() {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s cannot be scheduled: %s", pod.Name, c.Message)
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		w := c.State.Waiting
		if w == nil {
			continue
		}
		switch w.Reason {
		case "", "ContainerCreating", "PodInitializing":
		case "ErrImagePull", "ImagePullBackOff":
			return fmt.Sprintf("%s (%s): %s", imageTrouble, w.Reason, w.Message)
		default:
			return fmt.Sprintf("pod %s cannot start: %s: %s", pod.Name, w.Reason, w.Message)
		}
	}
	if !now.Before(StartsBy(pod)) {
		return fmt.Sprintf("pod %s has not started for more than %s: a volume may be missing, such as the Secret of a tool's credential or the ConfigMap of its caBundle; see kubectl describe pod", pod.Name, patience)
	}
	return ""
}

// SameTrouble reports whether a status may keep its message: a pull that is
// tried again and again has two words for one trouble.
func SameTrouble(a, b string) bool {
	return strings.HasPrefix(a, imageTrouble) && strings.HasPrefix(b, imageTrouble)
}
