package driver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/stowage-csi/stowage/pkg/scrape"
)

// ServeHTTP answers /metrics and /healthz on the listener until the context ends.
func ServeHTTP(ctx context.Context, listener net.Listener, metrics *Metrics) error {
	server := scrape.Server(metrics.Registry, map[string]http.HandlerFunc{
		"/healthz": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "ok\n") // If this fails, the client is gone.
		},
	})
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // Only listeners and idle scrapes are left.
	if err := server.Serve(scrape.Limit(listener)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
