package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// handledMetric is the driver's histogram of the handling time of each RPC, without the transport and the client's
// part.
const handledMetric = "stowage_rpc_duration_seconds"

// handled returns the time that the driver has spent on calls of the methods so far, from its metrics.
func (d *driver) handled(ctx context.Context, methods ...string) (sum time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.metrics+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	client := http.Client{Timeout: rpcTimeout}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }() // read only
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return 0, fmt.Errorf("the driver's metrics: %w", err)
	}
	seconds := map[string]float64{}
	for _, metric := range families[handledMetric].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "method" {
				seconds[path.Base(label.GetValue())] += metric.GetHistogram().GetSampleSum()
			}
		}
	}
	for _, method := range methods {
		spent, known := seconds[method]
		if !known {
			return 0, fmt.Errorf("the driver's metrics have no %s of method %s", handledMetric, method)
		}
		sum += time.Duration(spent * float64(time.Second))
	}
	return sum, nil
}

// freeAddress returns a loopback address with an unused port.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := listener.Addr().String()
	return address, listener.Close()
}
