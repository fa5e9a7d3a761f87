package recycler

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// metrics holds the metrics of the leader.
type metrics struct {
	scrubs  *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	waits   waits
}

// newMetrics registers the metrics. Each driver has its longest wait from the start.
func newMetrics(registry prometheus.Registerer, drivers ...string) (*metrics, error) {
	m := &metrics{
		waits: waits{since: map[string]waitOf{}},
		scrubs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stowage_recycler_scrubs_total",
			Help: "Scrubs of released volumes by how they ended: clean, failed, or given_up for a volume that has no attempt " +
				"left.",
		}, []string{"driver", "ending"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stowage_recycler_scrub_seconds", Help: "How long the pods of successful scrubs ran.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 9), // From a second to 18 hours.
		}, []string{"driver"}),
	}
	all := []prometheus.Collector{m.scrubs, m.seconds}
	for _, driver := range slices.Compact(slices.Sorted(slices.Values(drivers))) {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "stowage_recycler_longest_wait_seconds", ConstLabels: prometheus.Labels{"driver": driver},
			Help: "How long the released volume that has waited longest has waited for the end of its use.",
		}, func() float64 { return m.waits.longest(driver) }))
	}
	for _, one := range all {
		if err := registry.Register(one); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// count counts a step that was taken, if it ends a scrub or a volume's recycling.
func (m *metrics) count(v view, next step) {
	ending, ends := map[step]string{passed: "clean", broke: "failed", giveUp: "given_up"}[next]
	if !ends {
		return
	}
	driver := v1alpha1.RecycledDriver(v.volume)
	m.scrubs.WithLabelValues(driver, ending).Inc()
	if next != passed || v.pod == nil {
		return
	}
	for _, s := range v.pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil {
			m.seconds.WithLabelValues(driver).Observe(t.FinishedAt.Sub(t.StartedAt.Time).Seconds())
		}
	}
}
