package agentrun

import (
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/codeact-dev/codeact-operator/api/contract"
	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
	"github.com/codeact-dev/codeact-operator/controllers/settings"
	"github.com/codeact-dev/codeact-operator/controllers/status"
)

// Settle words a look, its plan and what came of it as the run's status.
func Settle(op settings.Operator, s Snapshot, p Plan, done Done) v1alpha1.AgentRunStatus {
	st := *s.Run.Status.DeepCopy()
	switch p.Verb {
	case VerbWait, VerbLaunch, VerbStop, VerbSettle:
	case VerbRest:
		st.ObservedGeneration = s.Run.Generation
		status.On(&st.Conditions, s.Run.Generation, s.Now).Observed()
		return st
	case VerbSupersede:
		return supersede(s, p)
	case VerbIgnore, VerbExpire:
		return st
	default:
		return st
	}
	l, err := newLook(op, s)
	if err != nil && p.Outcome == nil {
		return st
	}
	st.ObservedGeneration = s.Run.Generation
	st.ExecutionGeneration, st.ExecutionDigest = p.Generation, p.ExecutionDigest
	if st.StartTime == nil {
		st.StartTime = at(s.Now)
	}
	l.record(&st, p, done)
	c := status.On(&st.Conditions, s.Run.Generation, s.Now)
	catalogueComplete(c, &st, p.Pin)
	outcome, reason, message := l.verdict(p, done)
	if outcome == nil {
		// An ended run that is executed again has no end any more.
		st.Output, st.OutputDigest, st.Media, st.CompletionTime = nil, "", nil, nil
		c.Set(v1alpha1.ConditionSucceeded, metav1.ConditionUnknown, reason, message)
		c.Working(reason, message)
		pinned(c, st.Pinned, metav1.ConditionUnknown, reason, message)
		return st
	}
	st.CompletionTime = at(s.Now)
	end(c, &st, outcome)
	nothingWaits(&st)
	return st
}

// nothingWaits takes the calls out of the report that a lost pod left waiting: who
// reads it would answer a call that nobody makes any more. The journal keeps them,
// Awaiting: they were never sent.
func nothingWaits(st *v1alpha1.AgentRunStatus) {
	if st.Execution != nil {
		st.Execution.Pending = nil
	}
}

// record writes down what is there: pin, pod and report.
func (l *look) record(st *v1alpha1.AgentRunStatus, p Plan, done Done) {
	if st.Pinned == nil && p.Pin != nil && (p.Verb != VerbLaunch || done.Pinned) {
		st.Pinned = p.Pin.Status()
	}
	switch {
	case done.Launched:
		st.PodName, st.LaunchTime = p.Pin.Name, at(l.Now)
		st.Launches = l.launches() + 1
	case l.pod != nil && st.PodName == "":
		// The status write after the launch was lost.
		st.PodName, st.LaunchTime, st.Launches = l.pod.Name, l.pod.CreationTimestamp.DeepCopy(), l.launches()
	}
	if p.Report != nil {
		st.Execution = p.Report.DeepCopy()
	}
	st.Pending = slices.Clone(p.Pending)
}

// verdict is how the run ended, or what it waits for.
func (l *look) verdict(p Plan, done Done) (*Outcome, string, string) {
	switch {
	case p.Outcome != nil:
		return p.Outcome, "", ""
	case done.Fault != nil:
		return faulted(done.Fault), "", ""
	case done.Refused != nil:
		return l.refusal(done.Refused)
	case p.Verb == VerbLaunch && !done.Launched && l.Run.Status.Launches == 0 && !l.Now.Before(l.startBy()):
		return l.waited(string(contract.ReasonStartDeadlineExceeded), "the pod could not be launched; the manager's log says why"), "", ""
	case p.Verb == VerbLaunch && !done.Launched:
		return nil, v1alpha1.ReasonStarting, "the pod could not be launched yet"
	}
	return nil, p.Reason, p.Message
}

// refusal waits, like any wait before a launch, until the startDeadline. A pod
// that is launched again has the run's timeout instead.
func (l *look) refusal(r *Refusal) (*Outcome, string, string) {
	message := r.Message
	if c := l.succeeded(); c.Reason == r.Reason && r.Reason == string(contract.ReasonQuotaExceeded) {
		// Its numbers change with every try; that is not worth a write.
		message = c.Message
	}
	if l.Run.Status.Launches > 0 || l.Now.Before(l.startBy()) {
		return nil, r.Reason, message
	}
	if r.Reason == string(contract.ReasonQuotaExceeded) {
		return l.waited(r.Reason, r.Message), "", ""
	}
	return l.waited(string(contract.ReasonStartDeadlineExceeded), r.Message), "", ""
}

// end writes the final conditions.
func end(c status.Conditions, st *v1alpha1.AgentRunStatus, o *Outcome) {
	st.Media = o.Media.DeepCopy()
	if o.Succeeded {
		if len(o.Output) > 0 {
			st.Output = &apiextensionsv1.JSON{Raw: o.Output}
		}
		st.OutputDigest = o.OutputDigest
		c.Set(v1alpha1.ConditionSucceeded, metav1.ConditionTrue, o.Reason, o.Message)
		c.Done()
	} else {
		c.Set(v1alpha1.ConditionSucceeded, metav1.ConditionFalse, o.Reason, o.Message)
		c.Stuck(o.Reason, o.Message)
	}
	pinned(c, st.Pinned, metav1.ConditionFalse, o.Reason, o.Message)
}

func pinned(c status.Conditions, p *v1alpha1.PinnedStatus, otherwise metav1.ConditionStatus, reason, message string) {
	if p == nil {
		c.Set(v1alpha1.ConditionPinned, otherwise, reason, message)
		return
	}
	c.Set(v1alpha1.ConditionPinned, metav1.ConditionTrue, v1alpha1.ReasonPinned, "all that the run may see is in ConfigMap "+p.ConfigMap)
}

// supersede closes an execution generation and opens the next. What the old one
// may have done stays in status.previous.
func supersede(s Snapshot, p Plan) v1alpha1.AgentRunStatus {
	digest, _ := s.Run.ExecutionDigest()
	st := v1alpha1.AgentRunStatus{
		ObservedGeneration:  s.Run.Generation,
		ExecutionGeneration: p.Generation + 1,
		ExecutionDigest:     digest,
		StartTime:           at(s.Now),
		Previous:            s.Run.Status.Previous.DeepCopy(),
		Conditions:          s.Run.Status.DeepCopy().Conditions,
	}
	if p.Report != nil {
		st.Previous = p.Report.DeepCopy()
	}
	c := status.On(&st.Conditions, s.Run.Generation, s.Now)
	const message = "the spec has changed: a new execution begins"
	c.Drop(v1alpha1.ConditionCatalogueComplete)
	c.Set(v1alpha1.ConditionPinned, metav1.ConditionUnknown, v1alpha1.ReasonPending, message)
	c.Set(v1alpha1.ConditionSucceeded, metav1.ConditionUnknown, v1alpha1.ReasonPending, message)
	c.Working(v1alpha1.ReasonPending, message)
	return st
}

func at(t time.Time) *metav1.Time {
	m := metav1.NewTime(t)
	return &m
}
