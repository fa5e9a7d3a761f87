package driver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// exported returns what the metrics of a test's own export: the values of counters, gauges and sums, by series. The
// names of such metrics begin with "x_".
func exported(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, pair := range metric.GetLabel() {
				labels = append(labels, pair.GetName()+"="+pair.GetValue())
			}
			if name, ok := strings.CutPrefix(family.GetName(), "x_"); ok {
				all[fmt.Sprintf("%s %s", name, strings.Join(labels, " "))] = metric.GetCounter().GetValue() +
					metric.GetGauge().GetValue() + metric.GetHistogram().GetSampleSum()
			}
		}
	}
	return all
}

// measuredBackend has a metric of its own.
type measuredBackend struct {
	backends.Backend
	prometheus.Collector
}

func TestBackendsMetricsAreExported(t *testing.T) {
	own := prometheus.NewCounter(prometheus.CounterOpts{Name: "x_total", Help: "x"})
	own.Inc()
	m := NewMetrics("d", "v")
	m.watchBackend(&backends.Instance{Controller: measuredBackend{Collector: own}})
	if got := exported(t, m); len(got) != 1 || got["total driver=d"] != 1 {
		t.Errorf("exported %v, want the backend's metric with the driver's name", got)
	}
}
