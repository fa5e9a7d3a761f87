package driver

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Metrics are the driver's metrics, for --http-endpoint's /metrics.
type Metrics struct {
	Registry   *prometheus.Registry
	labels     prometheus.Labels // of every metric
	requests   *prometheus.HistogramVec
	inFlight   *prometheus.GaugeVec
	operations *prometheus.HistogramVec
	trimmed    prometheus.Counter
	ownership  *ownershipMetrics
}

// NewMetrics returns metrics in a registry of their own.
func NewMetrics(driver, version string) *Metrics {
	// From a stat of a mount to an attachment that takes a cloud minutes.
	buckets := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
	labels := prometheus.Labels{"driver": driver}
	m := &Metrics{
		labels:   labels,
		Registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stowage_rpc_duration_seconds", Help: "Time that a CSI call took, by method and gRPC code.",
			ConstLabels: labels, Buckets: buckets,
		}, []string{"method", "code"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stowage_rpc_in_flight", Help: "CSI calls under way, by method.", ConstLabels: labels,
		}, []string{"method"}),
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:        "stowage_backend_operation_duration_seconds",
			Help:        "Time that a backend operation took, by operation and outcome.",
			ConstLabels: labels, Buckets: buckets,
		}, []string{"operation", "outcome"}),
	}
	m.trimmed = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "stowage_trimmed_bytes_total", Help: "Bytes that devices were told to be free by periodic fstrim.",
		ConstLabels: labels,
	})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "stowage_build_info", Help: "Always 1; the version is a label.",
		ConstLabels: prometheus.Labels{"driver": driver, "version": version},
	})
	build.Set(1)
	m.ownership = newOwnershipMetrics(labels, m.Registry)
	m.Registry.MustRegister(m.requests, m.inFlight, m.operations, m.trimmed, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Operation counts one backend operation; it is volume.Observer.
func (m *Metrics) Operation(operation string, took time.Duration, err error) {
	outcome := "ok"
	if err != nil {
		outcome = backends.KindOf(err).String()
	}
	m.operations.WithLabelValues(operation, outcome).Observe(took.Seconds())
}

// watchBackend exports the metrics that the sides of a backend have of their own, with the labels of all others.
func (m *Metrics) watchBackend(instance *backends.Instance) {
	for _, side := range []any{instance.Controller, instance.Node} {
		if own, ok := side.(prometheus.Collector); ok {
			prometheus.WrapRegistererWith(m.labels, m.Registry).MustRegister(own)
		}
	}
}

// watchGivenUp exports how many calls into the kernel have not returned.
func (m *Metrics) watchGivenUp(count func() int) {
	m.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stowage_node_calls_given_up", ConstLabels: m.labels,
		Help: "Calls into the kernel that were given up at the end of their request and have not come back: storage that " +
			"does not answer.",
	}, func() float64 { return float64(count()) }))
}

// watchStorage exports how many storage issues a backend reports.
func (m *Metrics) watchStorage() (count func(unreachable, degraded int)) {
	issues := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "stowage_storage_issues", ConstLabels: m.labels,
		Help: "Pools, shares and the like that a node cannot use (unreachable) or not as it should (degraded), as of the " +
			"last minute.",
	}, []string{"health"})
	m.Registry.MustRegister(issues)
	count = func(unreachable, degraded int) {
		issues.WithLabelValues("unreachable").Set(float64(unreachable))
		issues.WithLabelValues("degraded").Set(float64(degraded))
	}
	count(0, 0)
	return count
}

// Trimmed counts the bytes that a trim freed; it is node.Config.Trimmed.
func (m *Metrics) Trimmed(bytes uint64) { m.trimmed.Add(float64(bytes)) }

func (m *Metrics) measure() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		flying := m.inFlight.WithLabelValues(info.FullMethod)
		flying.Inc()
		defer flying.Dec()
		start := time.Now()
		response, err := handler(ctx, request)
		m.requests.WithLabelValues(info.FullMethod, status.Code(err).String()).Observe(time.Since(start).Seconds())
		return response, err
	}
}
