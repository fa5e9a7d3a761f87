package driver

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/scrape"
)

func wantBody(t *testing.T, url string, parts ...string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
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
	for _, part := range parts {
		if !strings.Contains(string(body), part) {
			t.Errorf("%s lacks %q:\n%s", url, part, body)
		}
	}
}

// Idle connections delay scrapers only briefly, and use only a few descriptors.
func TestIdleConnectionsAreBounded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a local socket
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- ServeHTTP(ctx, listener, NewMetrics("test.csi.stowage.dev", "1")) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	for range 2 * scrape.MaxConnections {
		idle, err := net.Dial("tcp", listener.Addr().String()) //nolint:noctx // a local socket
		if err != nil {
			t.Fatal(err)
		}
		defer idle.Close()
	}
	<-time.After(100 * time.Millisecond) // for the accepted connections
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	sockets := 0
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, "socket:") {
			sockets++
		}
	}
	// The test's own ends, and the accepted connections.
	if most := 2*scrape.MaxConnections + scrape.MaxConnections + 32; sockets > most {
		t.Errorf("%d sockets are open, want %d at most", sockets, most)
	}
	wantBody(t, "http://"+listener.Addr().String()+"/healthz", "ok")
}
