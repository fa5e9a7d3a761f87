package node_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/node"
)

// The wait for a device to be freed leaves time to report who keeps it.
func TestDetachTime(t *testing.T) {
	for _, limit := range []struct{ request, want time.Duration }{
		{0, time.Second}, {2 * time.Minute, 10 * time.Second}, {6 * time.Second, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			service, err := node.New(t.Context(), node.Config{NodeID: "node-1", StateDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if limit.request > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, limit.request)
				defer cancel()
			}
			if got := service.DetachTime(ctx); got != limit.want {
				t.Errorf("of a request of %s the wait is %s, want %s", limit.request, got, limit.want)
			}
		})
	}
}
