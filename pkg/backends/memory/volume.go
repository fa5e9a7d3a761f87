package memory

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
)

// Sizes in bytes.
const (
	step        = 1 << 20 // sizes are multiples of step, at least one
	defaultSize = 1 << 30
)

// backend implements Backend, NodeBackend and all optional interfaces but MachineReporter and PoolReporter.
type backend struct {
	zone   backends.Topology
	nodes  []string // all nodes that volumes can be attached to
	node   string   // this node
	config Config
	files  *files

	mu        sync.Mutex // guards all fields below and the contents of the tables
	volumes   *table[*volume]
	snapshots *table[*snapshot]
	groups    *table[*group]
	used      int64 // bytes of all volumes and snapshots, including those that are being created
}

type volume struct {
	hold
	handle, name, fingerprint, tier string

	settings     map[string]string
	size         int64 // bytes
	raw          bool  // created as a raw device
	source       backends.ContentSource
	readAheadKiB int
	attached     map[string]attachment // by node
	mounted      bool                  // between Source and Release
	lastType     backends.AccessType   // of the last call of Source
}

// lock takes the mutex unless the context has ended.
func (b *backend) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return backends.Errorf(backends.Unavailable, "not done, because the request has ended: %w", err)
	}
	b.mu.Lock()
	return nil
}

// Create creates an empty volume.
func (b *backend) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	return b.create(ctx, spec, nothing)
}

// Clone creates a volume with the data of another.
func (b *backend) Clone(ctx context.Context, spec backends.Spec, source string) (*backends.Volume, error) {
	return b.create(ctx, spec, func() (origin, error) { return b.volumeOrigin(source) })
}

// Find returns the volume of the spec's name.
func (b *backend) Find(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	v, err := b.volumes.find(spec.Name)
	if err != nil {
		return nil, err
	}
	return b.describe(v), nil
}

// IsAbsent reports whether no volume has the name or is about to get it. Only this process creates volumes, and all are
// in one zone.
func (b *backend) IsAbsent(ctx context.Context, spec backends.Spec) bool {
	if b.lock(ctx) != nil {
		return false
	}
	defer b.mu.Unlock()
	return spec.Topology.IsOnly(b.zone) && b.volumes.free(spec.Name) == nil
}

// IsSnapshotAbsent reports the same for snapshots.
func (b *backend) IsSnapshotAbsent(ctx context.Context, spec backends.SnapshotSpec) bool {
	if b.lock(ctx) != nil {
		return false
	}
	defer b.mu.Unlock()
	return spec.Topology.IsOnly(b.zone) && b.snapshots.free(spec.Name) == nil
}

// IsGroupAbsent reports the same for groups of snapshots.
func (b *backend) IsGroupAbsent(ctx context.Context, spec backends.GroupSpec) bool {
	if b.lock(ctx) != nil {
		return false
	}
	defer b.mu.Unlock()
	return b.groups.free(spec.Name) == nil
}

// Get returns the volume with the handle.
func (b *backend) Get(ctx context.Context, handle string) (*backends.Volume, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	v, err := b.volumes.get(handle)
	if err != nil {
		return nil, err
	}
	return b.describe(v), nil
}

// Delete removes an unused volume. It keeps the record until the files are gone, so that its capacity is not reused too
// early.
func (b *backend) Delete(ctx context.Context, handle string) error {
	v, err := b.beginDelete(ctx, handle)
	if err != nil {
		return err
	}
	err = b.files.remove(v.handle)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		v.removing = false
		return err
	}
	b.volumes.remove(v.handle, v.name)
	b.used -= v.size
	return nil
}

func (b *backend) beginDelete(ctx context.Context, handle string) (*volume, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	v, err := b.volumes.get(handle)
	if err != nil {
		return nil, err
	}
	if len(v.attached) > 0 {
		return nil, backends.Errorf(backends.InUse, "volume %q is attached to %q: detach it first", handle,
			slices.Sorted(maps.Keys(v.attached)))
	}
	if v.mounted {
		return nil, backends.Errorf(backends.InUse, "volume %q is mounted on node %q: unmount it first", handle, b.node)
	}
	return v, v.beginRemoval(handle)
}

// describe returns a value that shares no memory with the backend.
func (b *backend) describe(v *volume) *backends.Volume {
	return &backends.Volume{
		Handle:         v.handle,
		Name:           v.name,
		CapacityBytes:  v.size,
		Fingerprint:    v.fingerprint,
		Source:         v.source,
		Access:         everyAccess().OfRaw(v.raw),
		Topology:       []backends.Topology{maps.Clone(b.zone)},
		PublishedNodes: slices.Sorted(maps.Keys(v.attached)),
		Attributes:     map[string]string{"tier": v.tier},
		Settings:       maps.Clone(v.settings),
	}
}

func everyAccess() backends.Access {
	return backends.Access{
		Types: []backends.AccessType{backends.Mount, backends.Block},
		Modes: append(backends.SingleNodeModes(),
			backends.MultiNodeReaderOnly, backends.MultiNodeSingleWriter, backends.MultiNodeMultiWriter),
		Mountable: mountoptions.Directory{},
	}
}
