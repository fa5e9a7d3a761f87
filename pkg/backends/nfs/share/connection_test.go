package share_test

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// connections counts the open mounts when another one is made: the kernel would use their connection.
type connections struct {
	counting
	before atomic.Pointer[export.Root]
	shared atomic.Int64
}

func (c *connections) Open(ctx context.Context, address export.Address) (*export.Root, error) {
	if last := c.before.Load(); last != nil {
		if _, err := last.Dir.Stat(); !errors.Is(err, os.ErrClosed) {
			c.shared.Add(1)
		}
	}
	root, err := c.counting.Open(ctx, address)
	c.before.Store(root)
	return root, err
}

// An idle mount is closed before one of the same server with another connection is made. A mount in use is not, and a
// request for no connection takes the existing one.
func TestConnection(t *testing.T) {
	m := &connections{counting: counting{dir: t.TempDir()}}
	p := newPool(t, m, time.Minute)
	at := func(path, connection string) export.Address {
		return export.Address{Server: "a", Path: path, Connection: connection}
	}
	with := func(path, connection string, mounts int64) {
		t.Helper()
		if err := p.With(t.Context(), at(path, connection), "work", nothing); err != nil {
			t.Fatal(err)
		}
		if n := m.opened.Load(); n != mounts {
			t.Errorf("with %q there were %d mounts, want %d", connection, n, mounts)
		}
	}
	with("/x", "", 1)
	with("/x", "nconnect=4", 2)
	with("/x", "nconnect=4", 2)
	with("/x", "", 2)
	with("/y", "nconnect=8", 3) // Of the same server, whose connections are shared by all its exports.
	if n := m.shared.Load(); n != 0 {
		t.Errorf("%d mounts were made while one with another connection was there", n)
	}
	err := p.With(t.Context(), at("/y", ""), "work", func(ctx context.Context, s *share.Share) error {
		if err := p.With(ctx, at("/y", "nconnect=2"), "work", nothing); err != nil {
			return err
		}
		var stat unix.Statfs_t
		return unix.Fstatfs(int(s.Dir().Fd()), &stat)
	})
	if n := m.opened.Load(); err != nil || n != 3 {
		t.Errorf("what is used was taken away: %v, %d mounts, want 3", err, n)
	}
}
