package backendtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Backends that are wrong about copies and the node.

type restoresNothing struct{ parts }

func (b restoresNothing) Restore(ctx context.Context, spec backends.Spec, snapshot string) (*backends.Volume, error) {
	if _, err := b.GetSnapshot(ctx, snapshot); err != nil {
		return nil, err
	}
	return b.Create(ctx, spec)
}

type looksForTheSourceFirst struct{ parts }

func (b looksForTheSourceFirst) Clone(ctx context.Context, spec backends.Spec,
	source string) (*backends.Volume, error) {
	if _, err := b.Get(ctx, source); err != nil {
		return nil, err
	}
	return b.parts.Clone(ctx, spec, source)
}

type clonesTheLatestData struct {
	parts
	sources *sync.Map
}

func (b clonesTheLatestData) Clone(ctx context.Context, spec backends.Spec, source string) (*backends.Volume, error) {
	v, err := b.parts.Clone(ctx, spec, source)
	if v != nil {
		b.sources.Store(v.Handle, source)
	}
	return v, err
}

func (b clonesTheLatestData) Source(ctx context.Context, attachment backends.Attachment) (backends.Source, error) {
	if source, ok := b.sources.Load(attachment.Handle); ok {
		attachment.Handle = source.(string)
	}
	return b.parts.Source(ctx, attachment)
}

func (b clonesTheLatestData) Release(ctx context.Context, handle string) error {
	if source, ok := b.sources.Load(handle); ok {
		handle = source.(string)
	}
	return b.parts.Release(ctx, handle)
}

type groupsOneByOne struct{ parts }

func (b groupsOneByOne) CreateGroup(ctx context.Context, spec backends.GroupSpec) (*backends.Group, error) {
	for i, volume := range spec.Volumes {
		if _, err := b.CreateSnapshot(ctx,
			backends.SnapshotSpec{Name: fmt.Sprint(spec.Name, i), Volume: volume}); err != nil {
			return nil, err
		}
	}
	return b.parts.CreateGroup(ctx, spec)
}

type forgetsGroupsFingerprint struct{ parts }

func (b forgetsGroupsFingerprint) CreateGroup(ctx context.Context, spec backends.GroupSpec) (*backends.Group, error) {
	spec.Fingerprint = ""
	return b.parts.CreateGroup(ctx, spec)
}

type deletesMembers struct{ parts }

func (b deletesMembers) DeleteSnapshot(ctx context.Context, handle string) error {
	err := b.parts.DeleteSnapshot(ctx, handle)
	if backends.Is(err, backends.InUse) {
		return nil
	}
	return err
}

type listsAllSnapshots struct{ parts }

func (b listsAllSnapshots) ListSnapshots(ctx context.Context, _ string,
	page backends.Page) ([]backends.Snapshot, string, error) {
	return b.parts.ListSnapshots(ctx, "", page)
}

type sourceDiffersEachTime struct{ parts }

func (b sourceDiffersEachTime) Source(ctx context.Context, attachment backends.Attachment) (backends.Source, error) {
	source, err := b.parts.Source(ctx, attachment)
	if d, ok := source.(backends.Directory); ok {
		dir, err := os.MkdirTemp(d.Path, "mount-")
		return backends.Directory{Path: dir}, err
	}
	return source, err
}

type sourceWrites struct{ parts }

func (b sourceWrites) Source(ctx context.Context, attachment backends.Attachment) (backends.Source, error) {
	source, err := b.parts.Source(ctx, attachment)
	if d, ok := source.(backends.Directory); ok {
		return source, os.WriteFile(filepath.Join(d.Path, "mounted"), nil, 0o600)
	}
	return source, err
}

type oneSourceForAll struct {
	parts
	first *sync.Map
}

func (b oneSourceForAll) Source(ctx context.Context, attachment backends.Attachment) (backends.Source, error) {
	source, err := b.parts.Source(ctx, attachment)
	if err != nil {
		return nil, err
	}
	same, _ := b.first.LoadOrStore(attachment.Type, source)
	return same.(backends.Source), nil
}

type sourceWithoutProof struct{ parts }

func (b sourceWithoutProof) Source(ctx context.Context, attachment backends.Attachment) (backends.Source, error) {
	source, err := b.parts.Source(ctx, attachment)
	if d, ok := source.(backends.Device); ok {
		return backends.Device{Path: d.Path}, err
	}
	return source, err
}

type releasesOnce struct{ parts }

func (b releasesOnce) Release(ctx context.Context, handle string) error {
	if _, err := b.Get(ctx, handle); err != nil {
		return err
	}
	return b.parts.Release(ctx, handle)
}

type locatesInPart struct{ parts }

func (locatesInPart) Topology(context.Context) (backends.Topology, error) {
	return backends.Topology{"another-key": "here"}, nil
}

// listsWithoutSnapshots has an interface that requires another one, which it lacks.
type listsWithoutSnapshots struct {
	backends.Backend
	backends.SnapshotLister
}
