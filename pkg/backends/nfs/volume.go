package nfs

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// access returns the access of a directory on a server, for the NFS version of its class, if any.
func access(version string) backends.Access {
	return backends.Access{
		Types: []backends.AccessType{backends.Mount},
		Modes: append(backends.SingleNodeModes(), backends.MultiNodeReaderOnly, backends.MultiNodeSingleWriter,
			backends.MultiNodeMultiWriter),
		Mountable: mountable{version},
	}
}

// mountable is the backends.Mountable of an export.
type mountable struct{ version string }

// Check refuses filesystems other than NFS, options that are not allowed for it, and options of another version. Kinds:
// Invalid.
func (m mountable) Check(filesystem string, options []string) error {
	if filesystem != "" && filesystem != "nfs" && filesystem != "nfs4" {
		return backends.Errorf(backends.Invalid,
			"filesystem %q is asked for, but the volume is a directory on an NFS server: use nfs or nfs4, or name none",
			secret.Option(filesystem))
	}
	if err := mountoptions.Check(options); err != nil {
		return err
	}
	asked, err := checkOptions(options)
	if err != nil {
		return err
	}
	if filesystem == "nfs4" && (m.version == "3" || asked == "3") {
		return backends.Errorf(backends.Invalid,
			"filesystem %q is asked for, and NFS 3 by the class or its mount options: use nfs, or name none", filesystem)
	}
	return nfsVersion{inClass, m.version}.agree(asked)
}

// describe returns the backends.Volume of a record.
func (e *engine) describe(r *record, address export.Address) *backends.Volume {
	return &backends.Volume{
		Handle: r.Handle, Name: r.Name, CapacityBytes: r.SizeBytes, Fingerprint: r.Fingerprint, Settings: r.Settings,
		Source: backends.ContentSource{Snapshot: r.SourceSnapshot, Volume: r.SourceVolume},
		Access: access(r.NFSVersion), Topology: e.places.of(r),
		// For people: the node reads the record instead.
		Attributes: map[string]string{"server": address.Server, "share": address.Path, "subDir": r.SubDir},
	}
}

// Find returns the volume of the spec's name. Kinds: NotFound.
func (e *controllerSide) Find(ctx context.Context, spec backends.Spec) (result *backends.Volume, err error) {
	defer annotate(&err, "find volume", spec.Name)
	p, err := e.target(spec)
	if err != nil {
		return nil, err
	}
	var found atomic.Pointer[backends.Volume] // A call that was given up may still write to it.
	err = e.pool.With(ctx, p.Address, "finding a volume", func(_ context.Context, s *share.Share) error {
		h, err := s.Home(false)
		if errors.Is(err, fs.ErrNotExist) {
			return backends.Errorf(backends.NotFound, "there is no volume on %s", s.Address)
		}
		if err != nil {
			return err
		}
		r, err := e.called(h, volumeKind, spec.Name)
		if err == nil {
			found.Store(e.describe(r, s.Address))
		}
		return err
	})
	return orNothing(&found, err)
}

// orNothing returns the result, unless there was a failure.
func orNothing[T any](found *atomic.Pointer[T], err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return found.Load(), nil
}

// Get returns the volume with the handle. Kinds: NotFound.
func (e *controllerSide) Get(ctx context.Context, handle string) (result *backends.Volume, err error) {
	defer annotate(&err, "get volume", handle)
	var found atomic.Pointer[backends.Volume]
	err = e.found(ctx, volumeKind, handle, "reading a volume's record",
		func(_ context.Context, s *share.Share, _ *share.Home, r *record) error {
			found.Store(e.describe(r, s.Address))
			return nil
		})
	return orNothing(&found, err)
}
