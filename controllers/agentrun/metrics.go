package agentrun

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codeact-dev/codeact-operator/api/v1alpha1"
)

// Metrics counts ended runs. A nil *Metrics counts nothing.
type Metrics struct {
	runs     *prometheus.CounterVec
	duration *prometheus.HistogramVec
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
	}
	for _, c := range []prometheus.Collector{m.runs, m.duration} {
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
	if st := run.Status; st.StartTime != nil && st.CompletionTime != nil {
		m.duration.WithLabelValues(succeeded).Observe(st.CompletionTime.Sub(st.StartTime.Time).Seconds())
	}
}
