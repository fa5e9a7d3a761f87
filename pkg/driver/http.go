package driver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"
)

// maxHTTPConnections is how many connections are open at a time: scrapers and probes need a few. More would take
// descriptors from the volumes of the node.
const maxHTTPConnections = 64

// httpWriteTime is how long an answer may take.
const httpWriteTime = 30 * time.Second

// ServeHTTP answers /metrics and /healthz on the listener until the context ends.
func ServeHTTP(ctx context.Context, listener net.Listener, metrics *Metrics) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n") // the client is gone if this fails
	})
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: httpWriteTime,
		IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // only listeners and idle scrapes are left
	if err := server.Serve(netutil.LimitListener(listener, maxHTTPConnections)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
