package nfs

import (
	"context"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
)

// lagging is a client that caches files' attributes for a while.
type lagging struct {
	export.Mounter
	lag time.Duration
}

func (l lagging) Open(ctx context.Context, address export.Address) (*export.Root, error) {
	root, err := l.Mounter.Open(ctx, address)
	if err == nil {
		root.Lag = l.lag
	}
	return root, err
}

// A copy of a volume begins after the client has dropped its older cache, and ends after it has noticed the changes
// made meanwhile. Snapshots are never written to. Whether a kernel's client is up to date then is tested in
// tests/vm/suites/nfsdriver.
func TestCopiesWaitForTheClient(t *testing.T) {
	w := newWorld(t)
	const lag = 300 * time.Millisecond
	w.mount = lagging{w.mount, lag}
	w.reopen()
	v := w.make(specOf("one"))
	begun := time.Now()
	s, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "snap", Volume: v.Handle})
	w.must(err)
	if took := time.Since(begun); took < 2*lag {
		t.Errorf("the snapshot took %v, want %v at least", took, 2*lag)
	}
	begun = time.Now()
	_, err = w.Restore(t.Context(), specOf("two"), s.Handle)
	w.must(err)
	t.Logf("restoring took %v", time.Since(begun))
}
