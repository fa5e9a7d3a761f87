package report_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/pkg/scrape"
)

// TestIdleConnectionsAreBounded checks that a client cannot take all descriptors of the process that opens disks: the
// oldest connection goes, although it has asked something and could ask again.
func TestIdleConnectionsAreBounded(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "disks.sock")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- report.Serve(ctx, listener, &keeper{changes: make(chan report.State)}) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	var first net.Conn
	for range scrape.MaxConnections + 1 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if first != nil {
			continue
		}
		first = conn
		if _, err := io.WriteString(first, "GET /nothing HTTP/1.1\r\nHost: disks\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := io.Copy(io.Discard, first); errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("the first of %d connections is still open", scrape.MaxConnections+1)
	}
}
