package driver

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ownershipMetrics measure the walks that give files to a group. They implement node.OwnershipObserver. The volume is
// not a label: a node may see any number of volumes in its life.
type ownershipMetrics struct {
	running   prometheus.Gauge
	entries   *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

func newOwnershipMetrics(labels prometheus.Labels, registry prometheus.Registerer) *ownershipMetrics {
	m := &ownershipMetrics{
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "stowage_node_ownership_walks_in_progress", Help: "Volumes whose files are being given to a group.",
			ConstLabels: labels,
		}),
		entries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stowage_node_ownership_entries_total", ConstLabels: labels,
			Help: "Files, directories and symlinks that were looked at to give them to a group, by result: unchanged, changed " +
				"or denied.",
		}, []string{"result"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stowage_node_ownership_walk_duration_seconds", ConstLabels: labels,
			Help:    "Time that it took to give a volume's files to a group, by outcome: complete or cut_short.",
			Buckets: []float64{.001, .01, .1, 1, 5, 10, 30, 60, 120, 300, 600, 1800},
		}, []string{"outcome"}),
	}
	registry.MustRegister(m.running, m.entries, m.durations)
	return m
}

// WalkBegan implements node.OwnershipObserver.
func (m *ownershipMetrics) WalkBegan() { m.running.Inc() }

// WalkProgressed implements node.OwnershipObserver.
func (m *ownershipMetrics) WalkProgressed(entries, changed, denied int64) {
	m.entries.WithLabelValues("changed").Add(float64(changed))
	m.entries.WithLabelValues("denied").Add(float64(denied))
	m.entries.WithLabelValues("unchanged").Add(float64(entries - changed - denied))
}

// WalkEnded implements node.OwnershipObserver.
func (m *ownershipMetrics) WalkEnded(took time.Duration, err error) {
	m.running.Dec()
	outcome := "complete"
	if err != nil {
		outcome = "cut_short"
	}
	m.durations.WithLabelValues(outcome).Observe(took.Seconds())
}
