package agentrun

import "github.com/codeact-dev/codeact-operator/api/v1alpha1"

// Slim takes out of a run what is never looked at again once it has ended:
// program, prompt, input, answers, output, calls and steps. It is for the cache, which holds all runs of
// the cluster, for as long as they live. A run whose spec was edited since is
// left whole, because the edit must be compared; see settledSpec.
func Slim(run *v1alpha1.AgentRun) {
	if !settledSpec(run) {
		return
	}
	run.Spec.Input, run.Spec.Resolutions = nil, nil
	if c := run.Spec.Code; c != nil {
		c.Source, c.Tools = "", nil
	}
	if a := run.Spec.Agent; a != nil {
		run.Spec.Agent = &v1alpha1.AgentSpec{Model: a.Model}
	}
	run.Status.Output = nil
	if e := run.Status.Execution; e != nil {
		e.Output, e.Calls, e.Steps, e.Pending = "", nil, nil, nil
	}
	if e := run.Status.Previous; e != nil {
		e.Calls, e.Steps = nil, nil
	}
}

// settledSpec reports whether the run has ended and its spec is the one that it
// ended with. Its digest need not be computed again, and cannot be when it is slim.
func settledSpec(run *v1alpha1.AgentRun) bool {
	return isFinished(run) && run.Status.ObservedGeneration == run.Generation
}
