package driver

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
)

// scrapeTime bounds the time that a scrape waits for the volumes' devices. Prometheus waits for ten seconds unless
// configured.
const scrapeTime = 5 * time.Second

// volumeMetrics are the metrics that the storage itself keeps of the volumes on this node.
type volumeMetrics struct {
	measure func(context.Context) []node.Measured
	labels  prometheus.Labels // of every metric
}

// watchVolumes exports the metrics of volumes. Their labels are those of aws-ebs-csi-driver, beside the driver's own.
func (m *Metrics) watchVolumes(nodeID string, measure func(context.Context) []node.Measured) {
	m.Registry.MustRegister(volumeMetrics{measure,
		prometheus.Labels{"driver": m.labels["driver"], "instance_id": nodeID}})
}

// Describe implements prometheus.Collector. Only the backend knows the metrics.
func (v volumeMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. A metric that Prometheus cannot take would fail the whole scrape, so it is
// left out.
func (v volumeMetrics) Collect(all chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	for _, one := range v.measure(ctx) {
		for _, value := range one.Values {
			if metric, err := v.metric(one.Volume, value); err == nil {
				all <- metric
			}
		}
	}
}

func (v volumeMetrics) metric(volume string, m backends.Measurement) (prometheus.Metric, error) {
	desc := prometheus.NewDesc(m.Name, m.Help, []string{"volume_id"}, v.labels)
	switch {
	case m.Buckets != nil:
		return prometheus.NewConstHistogram(desc, m.Count, m.Value, m.Buckets, volume)
	case m.Counter:
		return prometheus.NewConstMetric(desc, prometheus.CounterValue, m.Value, volume)
	}
	return prometheus.NewConstMetric(desc, prometheus.GaugeValue, m.Value, volume)
}
