package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/stowage-csi/stowage/pkg/scrape"
)

// healthWait is how long a readiness probe waits for the cache: it answers before the kubelet gives up.
const healthWait = 500 * time.Millisecond

// serveHTTP returns the server for the metrics and the kubelet's probes; nil without an endpoint. It replaces
// controller-runtime's server, which bounds neither connections nor the time of an answer.
func (p *process) serveHTTP(ctx context.Context, probes *health) (*manager.Server, error) {
	if p.httpEndpoint == "0" || p.httpEndpoint == "" { // To listen at "" is to listen at any port, on every network.
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.httpEndpoint)
	if err != nil {
		return nil, fmt.Errorf("--http-endpoint: %w", err)
	}
	return &manager.Server{Name: "metrics", Server: scrape.Server(p.metrics, probes.handlers()),
		Listener: scrape.Limit(listener)}, nil
}

// health answers the kubelet's probes at the address of the metrics. A manager that loses its lease ends by itself.
type health struct{ cache cache.Cache }

// handlers returns the handlers of the probes.
func (h *health) handlers() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"/healthz": h.live, "/readyz": h.ready}
}

// live reports that the process serves.
func (h *health) live(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// ready reports whether the manager has read the cluster's objects, as the leader or on standby.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthWait)
	defer cancel()
	if !h.cache.WaitForCacheSync(ctx) {
		http.Error(w, "not all objects of the cluster have been read yet", http.StatusServiceUnavailable)
	}
}
