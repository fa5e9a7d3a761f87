package powerloss

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
)

const mib = 1 << 20

// The pools and their capacities, which are smaller than the drive, so that the accounts must be correct to the byte.
const (
	imagePool         = "image"
	directoryPool     = "directory"
	imageCapacity     = 40 * mib
	directoryCapacity = 48 * mib
)

// backend is the local backend on a mounted drive.
type backend struct {
	instance   *backends.Instance
	controller controller
	node       node
	dataDir    string
	complaints *complaints
}

// controller lists the methods of the local backend that the script uses.
type controller interface {
	volumeKeeper
	snapshotKeeper
	backends.CapacityReporter
}

type volumeKeeper interface {
	backends.Backend
	backends.Expander
	backends.Modifier
	backends.Cloner
	backends.Lister
}

type snapshotKeeper interface {
	backends.Snapshotter
	backends.SnapshotLister
	backends.GroupSnapshotter
}

// node lists the methods of the node backend that the script uses.
type node interface {
	backends.NodeBackend
	backends.Releaser
}

// openBackend opens the local backend in a directory of the mounted drive.
func openBackend(ctx context.Context, mountpoint string) (*backend, error) {
	b := &backend{dataDir: filepath.Join(mountpoint, "data"), complaints: &complaints{}}
	config := &local.Config{
		Pools: []local.PoolConfig{
			{Name: imagePool, Type: "image", Capacity: fmt.Sprint(imageCapacity)},
			{Name: directoryPool, Type: "directory", SharesDisk: true, Capacity: fmt.Sprint(directoryCapacity)},
		},
		Limits: local.Limits{Open: openLimit, Look: openLimit, Reclaim: openLimit},
	}
	var err error
	b.instance, err = local.Definition().Open(ctx, backends.Options{
		Driver: "local.csi.stowage.dev", NodeID: "node-1", DataDir: b.dataDir, Config: config, Log: slog.New(b.complaints),
	})
	if err != nil {
		return nil, err
	}
	b.controller, b.node = b.instance.Controller.(controller), b.instance.Node.(node)
	return b, nil
}

// pool returns the directory of a pool.
func (b *backend) pool(name string) string { return filepath.Join(b.dataDir, "pools", name) }

// complaints collects the warnings and errors that the backend logs.
type complaints struct {
	mu   sync.Mutex
	list []string
}

// Enabled accepts only warnings and errors.
func (c *complaints) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

// Handle records a complaint.
func (c *complaints) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, text)
	return nil
}

// WithAttrs changes nothing: a complaint contains enough information.
func (c *complaints) WithAttrs([]slog.Attr) slog.Handler { return c }

// WithGroup changes nothing.
func (c *complaints) WithGroup(string) slog.Handler { return c }

func (c *complaints) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list
}
