package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stowage-csi/stowage/pkg/scrape"
)

// seen is a cache that has been read, or not.
type seen struct {
	cache.Cache
	synced bool
}

func (s seen) WaitForCacheSync(context.Context) bool { return s.synced }

func TestHealth(t *testing.T) {
	for _, synced := range []bool{false, true} {
		handlers := (&health{cache: seen{synced: synced}}).handlers()
		for path, want := range map[string]bool{"/healthz": true, "/readyz": synced} {
			answer := httptest.NewRecorder()
			handlers[path].ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			if got := answer.Code == http.StatusOK; got != want {
				t.Errorf("with a cache that is synced: %t, %s says %d", synced, path, answer.Code)
			}
		}
	}
}

// Without an endpoint nothing is served. An empty address would mean any port of every network of the node.
func TestNoEndpoint(t *testing.T) {
	for _, endpoint := range []string{"0", ""} {
		p := process{httpEndpoint: endpoint}
		server, err := p.serveHTTP(t.Context(), &health{})
		if err != nil {
			t.Fatal(err)
		}
		if server != nil {
			t.Errorf("--http-endpoint=%s serves at %s", endpoint, server.Listener.Addr())
			_ = server.Listener.Close()
		}
	}
}

// TestIdleConnectionsAreBounded checks that idle connections do not block a scraper, and that the master's metrics of
// CSI calls are served together with those of the controllers.
func TestIdleConnectionsAreBounded(t *testing.T) {
	p := process{httpEndpoint: "127.0.0.1:0"}
	calls := prometheus.NewRegistry()
	calls.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "stowage_test"}), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	withoutProcess(calls)
	p.metrics = prometheus.Gatherers{calls, registry.Registry}
	server, err := p.serveHTTP(t.Context(), &health{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	address := server.Listener.Addr().String()
	for range scrape.MaxConnections {
		idle, err := net.Dial("tcp", address) //nolint:noctx // a local socket
		if err != nil {
			t.Fatal(err)
		}
		defer idle.Close()
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stowage_test", "go_goroutines", "process_open_fds"} {
		if response.StatusCode != http.StatusOK || !strings.Contains(string(body), name) {
			t.Errorf("status %d, without %s:\n%s", response.StatusCode, name, body)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
