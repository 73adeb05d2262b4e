package agentrun

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// Metrics counts ended runs. A nil *Metrics counts nothing.
type Metrics struct {
	runs     *prometheus.CounterVec
	duration *prometheus.HistogramVec
	calls    *prometheus.CounterVec
	tokens   *prometheus.CounterVec
}

// NewMetrics registers the metrics of runs.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "codeact_runs_total", Help: "Ended AgentRuns by the reason of their Succeeded condition.",
		}, []string{"reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "codeact_run_duration_seconds", Help: "Time from the first look at an execution to its end.",
			Buckets: []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600},
		}, []string{"succeeded"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "codeact_child_calls_total", Help: "Tool calls in the journals of ended AgentRuns, by effect, state and reason.",
		}, []string{"effect", "state", "reason"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "codeact_model_tokens_total", Help: "Tokens of the models of ended AgentRuns, by direction.",
		}, []string{"direction"}),
	}
	for _, c := range []prometheus.Collector{m.runs, m.duration, m.calls, m.tokens} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) ended(run *v1alpha1.AgentRun, reason, succeeded string) {
	if m == nil {
		return
	}
	m.runs.WithLabelValues(reason).Inc()
	if e := run.Status.Execution; e != nil && e.Generation == run.Status.ExecutionGeneration {
		for _, c := range e.Calls {
			reason := c.Reason
			if !reason.Known() {
				reason = "" // a label has only values that we gave it
			}
			m.calls.WithLabelValues(string(c.Effect), string(c.State), string(reason)).Inc()
		}
		if u := e.Usage; u != nil {
			m.tokens.WithLabelValues("input").Add(float64(max(u.InputTokens, 0)))
			m.tokens.WithLabelValues("output").Add(float64(max(u.OutputTokens, 0)))
		}
	}
	if st := run.Status; st.StartTime != nil && st.CompletionTime != nil {
		m.duration.WithLabelValues(succeeded).Observe(st.CompletionTime.Sub(st.StartTime.Time).Seconds())
	}
}
