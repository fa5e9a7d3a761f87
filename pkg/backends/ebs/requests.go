package ebs

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	"github.com/prometheus/client_golang/prometheus"
)

// requests measure the requests to EC2, under the names and labels that dashboards of aws-ebs-csi-driver know (its
// docs/metrics.md). Each attempt of a request counts: a throttled request that succeeds later is one throttle and one
// duration.
type requests struct {
	durations *prometheus.HistogramVec
	failures  *prometheus.CounterVec
	throttles *prometheus.CounterVec
	codes     codes
}

func newRequests() *requests {
	return &requests{
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "aws_ebs_csi_api_request_duration_seconds", Buckets: prometheus.DefBuckets,
			Help: "Time that EC2 took for requests that succeeded, by action; without the waits before an attempt.",
		}, []string{"request"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aws_ebs_csi_api_request_errors_total",
			Help: "Requests that EC2 refused or did not answer, by action and error code, without throttled ones.",
		}, []string{"request", "error"}),
		throttles: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aws_ebs_csi_api_request_throttles_total", Help: "Requests that EC2 refused for their rate, by action.",
		}, []string{"request"}),
	}
}

// measure makes a client's attempts count. It comes last, so that it times EC2 alone: not the SDK's pauses, not the
// waits for a turn, and no request that is never sent.
func (r *requests) measure(stack *middleware.Stack) error {
	return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("Measure", r.attempt), middleware.After)
}

func (r *requests) attempt(ctx context.Context, in middleware.FinalizeInput,
	next middleware.FinalizeHandler) (out middleware.FinalizeOutput, data middleware.Metadata, err error) {
	began := time.Now()
	out, data, err = next.HandleFinalize(ctx, in)
	r.count(awsmiddleware.GetOperationName(ctx), time.Since(began), err)
	return out, data, err
}

func (r *requests) count(action string, took time.Duration, err error) {
	switch {
	case err == nil:
		r.durations.WithLabelValues(action).Observe(took.Seconds())
	case errors.Is(err, context.Canceled): // Its caller has left: EC2 is not to blame.
	case throttled(err):
		r.throttles.WithLabelValues(action).Inc()
	default:
		r.failures.WithLabelValues(action, r.codes.label(codeOf(err))).Inc()
	}
}

// Describe implements prometheus.Collector.
func (r *requests) Describe(all chan<- *prometheus.Desc) {
	r.durations.Describe(all)
	r.failures.Describe(all)
	r.throttles.Describe(all)
}

// Collect implements prometheus.Collector.
func (r *requests) Collect(all chan<- prometheus.Metric) {
	r.durations.Collect(all)
	r.failures.Collect(all)
	r.throttles.Collect(all)
}

// Describe implements prometheus.Collector.
func (b *backend) Describe(all chan<- *prometheus.Desc) { b.sent.Describe(all) }

// Collect implements prometheus.Collector.
func (b *backend) Collect(all chan<- prometheus.Metric) { b.sent.Collect(all) }

// lone is the node side in a process without the controller side, whose requests it exports instead.
type lone struct {
	*node
	prometheus.Collector
}

// mostCodes is how many error codes have a series of their own. EC2 documents some hundred; a process meets few.
const mostCodes = 100

// codes bound the values of a label that comes from the network.
type codes struct {
	mu    sync.Mutex
	known map[string]bool
}

// label returns an error code as the value of a label. An error without a code is no answer of EC2. A text that no code
// has, or one code too many, is "Other".
func (c *codes) label(code string) string {
	if code == "" {
		return "NoAnswer"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.known[code]:
		return code
	case len(c.known) == mostCodes || !isCode(code):
		return "Other"
	case c.known == nil:
		c.known = map[string]bool{}
	}
	c.known[code] = true
	return code
}

// isCode reports whether a text has the form of an error code: 2 to 64 ASCII letters, digits and dots, of which the
// first is a capital letter.
func isCode(text string) bool {
	isOther := func(r rune) bool {
		return r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	return len(text) >= 2 && len(text) <= 64 && text[0] >= 'A' && text[0] <= 'Z' && !strings.ContainsFunc(text, isOther)
}
