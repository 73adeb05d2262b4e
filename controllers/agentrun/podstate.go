package agentrun

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// podEnded reports whether the pod can do nothing any more. Its phase alone says
// nothing about success.
func podEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || terminated(pod) != nil
}

// podEnd words how the pod ended. It never quotes what the pod said.
func (l *look) podEnd() string {
	if l.pod == nil {
		return fmt.Sprintf("pod %s is gone and left no report", Name(l.Run, l.generation))
	}
	pod := l.pod
	why := ""
	if t := terminated(pod); t != nil {
		why = fmt.Sprintf(" (%s, exit code %d)", orElse(t.Reason, "Terminated"), t.ExitCode)
	}
	if pod.Status.Reason != "" {
		why += fmt.Sprintf(" (%s: %s)", pod.Status.Reason, pod.Status.Message)
	}
	if !podEnded(pod) {
		return fmt.Sprintf("pod %s does not end", pod.Name)
	}
	return fmt.Sprintf("pod %s ended without a report%s", pod.Name, why)
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// patience is how long a pod may be created before its run says that it waits.
const patience = 30 * time.Second

// startsBy is when a pod that has not started gets to be a trouble; zero for one
// that has.
func startsBy(pod *corev1.Pod) time.Time {
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" {
		return time.Time{}
	}
	return pod.CreationTimestamp.Add(patience)
}

const imageTrouble = "the image of the runtime cannot be pulled"

// podTrouble says what keeps a pod from starting, or "" when nothing does.
func podTrouble(pod *corev1.Pod, now time.Time) string {
	if pod == nil || startsBy(pod).IsZero() {
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
	if !now.Before(startsBy(pod)) {
		return fmt.Sprintf("pod %s has not started for more than %s: a volume may be missing, such as the Secret of a tool's credential or the ConfigMap of its caBundle; see kubectl describe pod", pod.Name, patience)
	}
	return ""
}

// sameTrouble reports whether a status may keep its message: a pull that is
// tried again and again has two words for one trouble.
func sameTrouble(a, b string) bool {
	return strings.HasPrefix(a, imageTrouble) && strings.HasPrefix(b, imageTrouble)
}
