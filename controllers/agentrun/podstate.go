package agentrun

import (
	"fmt"

	"github.com/codeact-dev/codeact-operator/controllers/runtimepod"
)

// podEnd words how the pod ended. It never quotes what the pod said.
func (l *look) podEnd() string {
	if l.pod == nil {
		return fmt.Sprintf("pod %s is gone and left no report", Name(l.Run, l.generation))
	}
	pod := l.pod
	why := ""
	if t := runtimepod.Terminated(pod); t != nil {
		why = fmt.Sprintf(" (%s, exit code %d)", orElse(t.Reason, "Terminated"), t.ExitCode)
	}
	if pod.Status.Reason != "" {
		why += fmt.Sprintf(" (%s: %s)", pod.Status.Reason, pod.Status.Message)
	}
	if !runtimepod.Ended(pod) {
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
