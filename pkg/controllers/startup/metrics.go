package startup

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	waiting, longest  prometheus.GaugeFunc
	removed, failures prometheus.Counter

	mu    sync.Mutex
	since map[string]time.Time // when each node that has the taint was first seen with it
}

func newMetrics(driver string) *metrics {
	labels := prometheus.Labels{"driver": driver}
	m := &metrics{since: map[string]time.Time{}}
	m.waiting = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stowage_startup_waiting_nodes", ConstLabels: labels, Help: "Nodes whose startup taint waits for the driver.",
	}, func() float64 {
		m.mu.Lock()
		defer m.mu.Unlock()
		return float64(len(m.since))
	})
	// In a cluster where nodes join continuously some node always waits, so alerts need the longest wait.
	m.longest = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stowage_startup_longest_wait_seconds", ConstLabels: labels,
		Help: "How long the node that has waited longest was seen to wait for the driver.",
	}, m.longestWait)
	m.removed = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "stowage_startup_removed_total", ConstLabels: labels,
		Help: "Startup taints that were removed because the driver is registered on the node.",
	})
	m.failures = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "stowage_startup_failures_total", ConstLabels: labels,
		Help: "Reads and writes about startup taints that failed.",
	})
	return m
}

func (m *metrics) register(registry prometheus.Registerer) error {
	return errors.Join(registry.Register(m.waiting), registry.Register(m.longest), registry.Register(m.removed),
		registry.Register(m.failures))
}

// wait records whether a node has the taint.
func (m *metrics) wait(node string, waits bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.since[node]; waits && !known {
		m.since[node] = time.Now()
	} else if !waits {
		delete(m.since, node)
	}
}

func (m *metrics) longestWait() (seconds float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, since := range m.since {
		seconds = max(seconds, time.Since(since).Seconds())
	}
	return seconds
}
