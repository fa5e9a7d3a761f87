package main

import (
	"context"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// healthWait is how long a question for readiness waits for the cache: it answers before the kubelet gives up.
const healthWait = 500 * time.Millisecond

// health answers the kubelet's probes at the address of the metrics. A manager that loses its lease ends by itself.
type health struct{ cache cache.Cache }

// beside serves the probes with the metrics, at an address; 0 serves neither.
func (h *health) beside(address string) metrics.Options {
	return metrics.Options{BindAddress: address, ExtraHandlers: h.handlers()}
}

// handlers are those of the probes.
func (h *health) handlers() map[string]http.Handler {
	return map[string]http.Handler{"/healthz": http.HandlerFunc(h.live), "/readyz": http.HandlerFunc(h.ready)}
}

// live says that the process serves.
func (h *health) live(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// ready says that the manager sees the cluster, whether it leads or stands by.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthWait)
	defer cancel()
	if !h.cache.WaitForCacheSync(ctx) {
		http.Error(w, "not all objects of the cluster have been read yet", http.StatusServiceUnavailable)
	}
}
